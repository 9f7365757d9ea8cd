"""What accuracy each epsilon is expected to buy: forecasts from the public mask, as plain numbers."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import NamedTuple

from dpsr.types import Certificate


class Expectation(NamedTuple):
    """Expected squared error at `epsilon`, as a share of one constant's: what cannot be known, what too few ratings
    cost, and what privacy costs. They add up; `share` is the root of their sum."""

    epsilon: float
    unknowable: float
    learning: float
    noise: float

    @property
    def share(self) -> float:
        """Expected RMSE over the constant's RMSE."""
        return sqrt(self.unknowable + self.learning + self.noise)

    @property
    def without_noise(self) -> float:
        """The same if nothing were spent on privacy."""
        return sqrt(self.unknowable + self.learning)


def this_release(forecasts: Sequence[Expectation], certificate: Certificate) -> Expectation | None:
    """The forecast made for the epsilon this release asked for."""
    return next((f for f in forecasts if f.epsilon == certificate.nominal), None)
