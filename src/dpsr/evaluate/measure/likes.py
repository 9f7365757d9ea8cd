"""One method of lists on one split: fitted, scored, timed; a row as that of `measure.method`, with figures of lists."""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from pathlib import Path

from dpsr.data import realistic
from dpsr.evaluate.likes.protocol import LIST_PROTOCOLS, score_lists
from dpsr.evaluate.likes.registry import LIST_METHODS
from dpsr.evaluate.measure.method import cost_of, finite, told
from dpsr.evaluate.registry import built, entry_of
from dpsr.evaluate.runner.jobs import Job, Row
from dpsr.evaluate.runner.store import save_arrays


def measure_likes(job: Job, arrays: Path) -> list[Row]:
    """Fit on the training part, then look at what was hidden. Every person's figures are saved, under their ids."""
    _warm_up(job.what, None if job.epsilon is None else 1.0)
    split = LIST_PROTOCOLS[job.protocol].split(job.set.interactions(job.seed), job.seed)
    method = built(entry_of(LIST_METHODS, job.what), job.epsilon, job.delta, job.noise_seed, job.learner_seed)
    cost = cost_of(lambda: method.fit(split.train))
    scores = score_lists(method, split)
    people = split.hidden.user_ids.to_numpy(zero_copy_only=False).astype(str)
    save_arrays(arrays, {**scores.people, "people": people})
    return [finite({"protocol": job.protocol, **told(method.protection), **scores.means, **cost})]


@cache
def _warm_up(what: str, epsilon: float | None) -> None:
    """Load compiled code and libraries. What goes wrong here goes wrong again, where it is noted."""
    likes = realistic(0, n_users=60, n_items=40, n_ratings=600).liked(at_least=1)
    with suppress(Exception):
        built(entry_of(LIST_METHODS, what), epsilon, 1e-5, 0).fit(likes)
