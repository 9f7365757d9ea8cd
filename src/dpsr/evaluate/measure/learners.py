"""Learners on one table: each is trained on it as if it held ratings, and scored on raw held-out ones.

The job names the table (`what`) and, in its options, the `learners` and the `settings` of the pipeline that makes the
table. A learner that fails is a row of its own. `observed_rmse` is how far the table is from the true training ratings.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import perf_counter

from dpsr.evaluate.downstream.learners import LEARNERS, RANKS_ONLY, RatingTable
from dpsr.evaluate.downstream.training_tables import build_table
from dpsr.evaluate.measure.method import finite
from dpsr.evaluate.metrics.accuracy import rmse
from dpsr.evaluate.metrics.ranking import Predictor
from dpsr.evaluate.protocol import PROTOCOLS, EvaluationProtocol, Split
from dpsr.evaluate.runner.jobs import Job, Row
from dpsr.evaluate.runner.pool import as_sentence

THE_MODEL_ITSELF = "the model itself"
"""The row of the model that came with the table."""

_SAMPLE = 0
"""Lists are scored for one sample of users, whatever the split."""


def measure_learners(job: Job, _: Path) -> list[Row]:
    """The model that came with the table, if one did, then every learner."""
    protocol = PROTOCOLS[job.protocol]
    split = protocol.split(job.set, job.seed)
    released = build_table(job.what, split.train, job.epsilon, job.noise_seed, **dict(job.option("settings", ())))
    table = RatingTable(split.train.mask, released.values, split.train.scale)
    learners: dict[str, Callable[[], Predictor]] = {
        name: partial(LEARNERS[name], table, job.learner_seed) for name in job.option("learners")
    }
    if released.model is not None:
        learners = {THE_MODEL_ITSELF: partial(_given, released.model), **learners}
    observed = rmse(split.train.values, released.values)
    return [
        finite({"observed_rmse": observed, **_measured(name, learn, protocol, split)})
        for name, learn in learners.items()
    ]


def _given(model: Predictor) -> Predictor:
    return model


def _measured(name: str, learn: Callable[[], Predictor], protocol: EvaluationProtocol, split: Split) -> Row:
    before = perf_counter()
    try:
        predictor = learn()
        seconds = perf_counter() - before
        scores = protocol.score(predictor, split, _SAMPLE)
    except Exception as error:  # whatever a learner's library raises is a row
        return {"learner": name, "error": as_sentence(error)}
    dropped = protocol.errors if name in RANKS_ONLY else ()
    kept = {metric: value for metric, value in scores.items() if metric not in dropped}
    return {"learner": name, **kept, "fit_seconds": seconds}
