"""Certificates written by hand, for a ledger that judges them by what they say."""

import secrets
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from dpsr.certify import Certificate
from dpsr.certify.parts import Price, PricedPart


@dataclass(frozen=True)
class StatedPart(PricedPart):
    """A part that costs what it says."""

    kind: ClassVar[str] = "stated"

    stated_epsilon: float
    stated_delta: float = 0.0

    @cached_property
    def price(self):
        return Price(self.stated_epsilon, self.stated_delta)

    @property
    def noise(self):
        return "by hand"


def certificate(epsilon=1.0, *, delta=0.0, private=True, name="ratings", charge=None):
    reasons = () if private else ("the noise came from a seed",)
    return Certificate(
        nominal=epsilon,
        nominal_delta=delta,
        parts=(StatedPart(name, epsilon, delta),),
        public={},
        randomness="system" if private else "seeded",
        private=private,
        id=secrets.token_hex(16),
        reasons=reasons,
        charge=charge,
    )
