"""One job, start to end: numbers in, rows out. Runs in a process of its own (`pool.py`).

The row of a method says what it protects (unit, exact epsilon, delta, what is public), how well it predicts the test
ratings, and what it took: seconds to fit by the clock and by the processor (compiling is not timed: every method is
first fitted to a handful of made-up ratings), and the largest resident memory of its process until it was fitted,
which includes the interpreter and the data; the method `constant` shows how much these are.
"""

from __future__ import annotations

import resource
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from math import isfinite
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np

from dpsr.data import Ratings, realistic
from dpsr.errors import DpsrError
from dpsr.evaluate.attacks.run import BEST_GUESS, MEAN_LEAK, attack_best_guess, attack_leak, attack_method
from dpsr.evaluate.baselines import Constant
from dpsr.evaluate.benchmark.details import Details, listed_users, top_ten
from dpsr.evaluate.benchmark.jobs import Job
from dpsr.evaluate.benchmark.methods import build
from dpsr.evaluate.downstream.inputs import MAKE, released_by
from dpsr.evaluate.downstream.learners import LEARNERS, RANKS_ONLY, RatingTable
from dpsr.evaluate.frontier_methods import noise_seed
from dpsr.evaluate.metrics import rmse
from dpsr.evaluate.peers.base import Peer
from dpsr.evaluate.ranking import Predictor
from dpsr.evaluate.scores import score
from dpsr.types import Model
from dpsr.types.raw import RawRatings

Row = dict[str, Any]

RANKED_USERS = 1000
"""Lists are scored for at most this many users a split: ranking every item for everybody takes longer than fitting."""

_LONGEST = 300
"""Characters of an exception kept in a row."""


def run_method(job: Job, folder: Path) -> list[Row]:
    """Fit on the training part, then look at the test part. The method never meets the latter."""
    _warm_up(job.what, None if job.epsilon is None else 1.0)
    train, test = job.source.split(job.seed)
    own = noise_seed(job.source.name, job.what, job.epsilon, job.seed)
    peer = build(job.what, job.epsilon, job.delta, own)
    forget_peak()
    before, busy = perf_counter(), process_time()
    peer.fit(train)
    seconds, cpu, memory = perf_counter() - before, process_time() - busy, peak_megabytes()
    ranker = _ranker(peer)
    users, items = test.mask.users.astype(np.int64), test.mask.items.astype(np.int64)
    predicted = peer.predict(users, items)
    found = score(ranker, train, ranked_part(test, job.seed))
    lists = top_ten(ranker, train.mask, listed_users(train.mask, job.seed))
    Details(predicted.astype(np.float32), lists).save(folder / f"{job.name}.npz")
    constant = Constant().fit(train.mask, train.values, train.scale)
    row = {
        **_protection(peer),
        "rmse": rmse(test.values, predicted),
        "mae": float(np.mean(np.abs(test.values - predicted))),
        "precision_at_10": found.precision,
        "ndcg_at_10": found.ndcg,
        "share_of_constant": rmse(test.values, predicted) / rmse(test.values, constant.predict(users, items)),
        "fit_seconds": seconds,
        "cpu_seconds": cpu,
        "peak_mb": memory,
    }
    return [finite(row)]


def ranked_part(test: Ratings, seed: int) -> Ratings:
    """The test ratings of at most `RANKED_USERS` users, drawn at random, for lists: the same for every method."""
    users = np.unique(test.mask.users)
    if len(users) <= RANKED_USERS:
        return test
    chosen = np.zeros(test.mask.n_users, dtype=np.bool_)
    chosen[np.random.default_rng(seed).choice(users, RANKED_USERS, replace=False)] = True
    rows = chosen[test.mask.users]
    return Ratings(test.mask.select(rows), test.levels[rows], test.scale)


def run_downstream(job: Job, _: Path) -> list[Row]:
    """Every learner on one input, and the model that came with it; a learner that fails is a row of its own."""
    train, test = job.source.split(job.seed)
    family = job.what.partition("-")[0]  # tables made of one release share its noise, so that they can be compared
    own = noise_seed(job.source.name, family, job.epsilon, job.seed)
    given = MAKE[job.what](train, job.epsilon, own)
    table = RatingTable(train.mask, given.values, train.scale)
    rows = [] if given.model is None else [_learner_row("the model itself", lambda: given.model, train, test)]
    rows += [_learner_row(name, partial(learn, table, job.seed), train, test) for name, learn in LEARNERS.items()]
    return [finite(row) for row in rows]


def _learner_row(name: str, learn: Callable[[], Any], train: Ratings, test: Ratings) -> Row:
    before = perf_counter()
    try:
        predictor = learn()
        seconds = perf_counter() - before
        found = score(predictor, train, ranked_part(test, 0))
        cells = test.mask.users.astype(np.int64), test.mask.items.astype(np.int64)
        error_of = None if name in RANKS_ONLY else rmse(test.values, predictor.predict(*cells))
    except Exception as error:
        return {"learner": name, "error": told(error)}
    return {"learner": name, "rmse": error_of, "ndcg_at_10": found.ndcg, "fit_seconds": seconds}


def run_attack(job: Job, _: Path) -> list[Row]:
    """All attacks on one method, or one of the attacks on mechanisms alone."""
    train, test = job.source.split(job.seed)
    own = noise_seed(job.source.name, job.what, job.epsilon, job.seed)
    if job.what == MEAN_LEAK:
        return [finite(row) for row in attack_leak(train.scale, job.epsilon or 0.0, own, job.effort)]
    if job.what == BEST_GUESS:
        return [finite(row) for row in attack_best_guess(train, job.epsilon or 0.0, job.delta, own, job.effort)]

    def fit(ratings: RawRatings) -> tuple[Peer, Any]:
        peer = build(job.what, job.epsilon, job.delta, own).fit(ratings)
        return peer, released_by(job.what, ratings, job.epsilon, own)

    return [finite(row) for row in attack_method(fit, train, test, job.epsilon, own)]


def told(error: BaseException) -> str:
    """An exception as one sentence: its class and its words."""
    words = " ".join(str(error).split()) or "no message"
    kind = type(error).__name__ if isinstance(error, DpsrError) else f"{type(error).__module__}.{type(error).__name__}"
    return f"{kind.removeprefix('builtins.')}: {words}"[:_LONGEST]


def _ranker(peer: Peer) -> Predictor:
    """A `Model` ranks many users at once; whoever wraps one is ranked by it."""
    inner = getattr(peer, "predictor_", None)
    return inner if isinstance(inner, Model) else peer


def _protection(peer: Peer) -> Row:
    protection = peer.protection
    return {
        "unit": protection.unit,
        "exact_epsilon": protection.epsilon,
        "delta": protection.delta,
        "public": protection.public,
        "note": protection.note,
    }


@cache
def _warm_up(what: str, epsilon: float | None) -> None:
    """Load compiled code and libraries. What goes wrong here goes wrong again, where it is noted."""
    with suppress(Exception):
        build(what, epsilon, 1e-5, 0).fit(realistic(0, n_users=40, n_items=30, n_ratings=400))


def forget_peak() -> None:
    """Start the largest resident memory anew at the present one, where the system can (Linux)."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def peak_megabytes() -> float:
    """The largest resident memory of this process since `forget_peak`, or since it began."""
    with suppress(OSError, StopIteration):
        lines = Path("/proc/self/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("VmHWM:")).split()[1]) / 2**10
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / 2**20 if sys.platform == "darwin" else most / 2**10


def finite(row: Row) -> Row:
    """JSON has no infinity and no NaN: what is not a finite number is left empty."""
    return {name: None if isinstance(value, float) and not isfinite(value) else value for name, value in row.items()}


KINDS: dict[str, Callable[[Job, Path], list[Row]]] = {
    "method": run_method,
    "downstream": run_downstream,
    "attack": run_attack,
}
