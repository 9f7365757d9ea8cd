"""Counts for the plots: ratings per user and item in doubling bins, released ratings in equal ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpsr.types import Scale

_FINEST = 40
"""No plot has more bars; on a phone they would be thinner than a line."""


@dataclass(frozen=True)
class Bin:
    """How many things lie between `low` and `high`."""

    low: float
    high: float
    count: int


def doubling_bins(counts: npt.NDArray[np.int64]) -> list[Bin]:
    """How many users (or items) have 1, 2 to 3, 4 to 7, ... ratings; 0 first, if there is anybody without.

    >>> [(b.low, b.high, b.count) for b in doubling_bins(np.array([0, 1, 3, 5]))]
    [(0, 0, 1), (1, 1, 1), (2, 3, 1), (4, 7, 1)]
    """
    positive = counts[counts > 0]
    powers = np.frexp(positive.astype(np.float64))[1] - 1  # floor(log2 n), exactly
    tally = np.bincount(powers, minlength=1)
    bins = [Bin(2**k, 2 ** (k + 1) - 1, int(n)) for k, n in enumerate(tally)]
    missing = len(counts) - len(positive)
    return [Bin(0, 0, missing), *bins] if missing else bins


def rating_bins(ratings: npt.NDArray[np.float64], scale: Scale) -> list[Bin]:
    """Equal bins over the scale, a whole number of them to each step where the steps are coarse enough."""
    steps = scale.n_levels - 1
    n = steps * max(1, _FINEST // steps) if steps <= _FINEST else _FINEST
    edges = np.linspace(scale.low, scale.high, n + 1)
    tally, _ = np.histogram(ratings, edges)
    return [Bin(float(a), float(b), int(c)) for a, b, c in zip(edges, edges[1:], tally, strict=False)]
