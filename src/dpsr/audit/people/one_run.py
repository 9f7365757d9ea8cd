"""One run of a whole pipeline with canary people, and what its noisy answers tell of each.

The attacker sees every noisy answer, which is more than the release holds and what the certificate is about. A canary
is sought where nobody else is: in the scores of items that are its own.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dpsr.arrays import Floats
from dpsr.audit.people.crowd import CanaryPeople
from dpsr.audit.people.membership import Told, tell_one_run
from dpsr.audit.replay import Tape
from dpsr.certify.people import NormalPart
from dpsr.pipeline.dpsr import DPSR
from dpsr.types import Scale

CANARIES, OTHERS = 100_000, 2_000
_EACH = {"user": 16, "rating": 1}
"""Ratings of a canary: enough for a full weight in every round, or the one whose existence is at stake."""

_SCORES = ("scores", "scores of people")


def audit_one_run(
    pipeline: DPSR, scale: Scale, *, delta: float, alpha: float, rng: np.random.Generator, canaries: int = CANARIES
) -> Told:
    """Fit once with canary people among others; guess who is there."""
    crowd = CanaryPeople.toss(canaries, _EACH[pipeline.unit], scale, rng)
    tape = Tape()
    pipeline.unfitted().set_params(items=crowd.declared).fit_table(crowd.table(OTHERS), tape)
    return tell_one_run(numbers_of(tape, crowd), crowd.bits, delta, alpha)


def numbers_of(tape: Tape, crowd: CanaryPeople) -> Floats:
    """Of every round of scores, each canary's own numbers, those of low and of high ratings added up."""
    found: list[Any] = []
    for part, values in tape.kept:
        if isinstance(part, NormalPart) and part.name in _SCORES:
            own = values.reshape(len(crowd.declared), -1)[: crowd.n_items]
            own = own.reshape(len(crowd.bits), crowd.each, -1) / np.sqrt(part.variance)
            found += [own[:, place::2].sum(axis=1) for place in range(min(crowd.each, 2))]
    return np.hstack(found)
