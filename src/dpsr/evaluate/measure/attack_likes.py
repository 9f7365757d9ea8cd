"""Attacks on one method of lists, as rows: what was reached beside what (epsilon, delta) allows."""

from __future__ import annotations

from math import exp, inf
from pathlib import Path

from dpsr.data import Interactions
from dpsr.evaluate.attacks.likes import Planted, attack_likes, plant_interactions, plant_people
from dpsr.evaluate.likes.contract import ListMethod
from dpsr.evaluate.likes.protocol import LIST_PROTOCOLS
from dpsr.evaluate.likes.registry import LIST_METHODS
from dpsr.evaluate.measure.attack import attack_row
from dpsr.evaluate.measure.method import finite
from dpsr.evaluate.registry import built, entry_of
from dpsr.evaluate.runner.jobs import Job, Row


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
