"""Methods of lists, as rows.

One method on one split, fitted, scored and timed: a row as that of `measure.method`, with figures of lists. And attacks
on one method: what was reached beside what (epsilon, delta) allows.
"""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from math import exp, inf
from pathlib import Path

from dpsr.data import Interactions, realistic
from dpsr.evaluate.attacks.likes import Planted, attack_likes, plant_interactions, plant_people
from dpsr.evaluate.likes.contract import ListMethod
from dpsr.evaluate.likes.protocol import LIST_PROTOCOLS, score_lists
from dpsr.evaluate.likes.registry import LIST_METHODS
from dpsr.evaluate.measure.attack import attack_row
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


def measure_likes_attack(job: Job, _: Path) -> list[Row]:
    """A planted person and a planted interaction, each against the item side and against lists."""
    train = LIST_PROTOCOLS[job.protocol].split(job.set.interactions(job.seed), job.seed).train
    asked = inf if job.epsilon is None else job.epsilon
    method = built(entry_of(LIST_METHODS, job.what), job.epsilon, job.delta, job.noise_seed, job.learner_seed)
    rows = _rows("person", method, plant_people(train, job.seed), job.seed, asked, job.delta)
    twice = (1 + exp(min(asked, 700.0))) * job.delta
    rows += _rows("interaction", method, plant_interactions(train, job.seed), job.seed, 2 * asked, min(twice, 1.0))
    return [finite({**row, "unit": method.protection.unit}) for row in rows]


def _rows(what: str, method: ListMethod, planted: Planted, seed: int, epsilon: float, delta: float) -> list[Row]:
    def fit(likes: Interactions) -> ListMethod:
        return method.fit(likes)

    allowed = delta if epsilon < inf else 0.0
    return [
        attack_row(f"{what}, from the {kind}", found, epsilon, allowed)
        for kind, found in attack_likes(fit, planted, seed).items()
    ]
