"""The paper's Stage 1 exactly as printed, and what it really costs.

Algorithm 1 noises each rating r with Lap(D / (e0 (1 + a w))), e0 = e / (1 + a), w = min(1, |r - mean| / h), h = D/2,
and clips. Two things break its promise: a noise scale that depends on the secret, and the exact mean of all ratings in
every scale. `docs/published.md` proves

    sup over data sets and outputs of the log-ratio  =  max( log(1 + a) + e0, e )  +  2 a max(1, e0).

The first term is the changed rating's own; the second is what the other ratings give away together, because the mean
moves by at most D/N and there are N - 1 of them. It is a supremum over all data sets of every size: each finite one
stays below it, and the families in `worst_data_set` approach it. (On a two-level scale it is an upper bound.)
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from math import log1p

import numpy as np

from dpsr.arrays import Floats
from dpsr.certify.amounts import check_epsilon
from dpsr.certify.unproved import published_price
from dpsr.privacy.channels.additive import check_alpha, information_weights, laplace_around
from dpsr.privacy.channels.channel import Channel
from dpsr.types import Scale


@dataclass(frozen=True)
class AsPublished:
    """Stage 1 of Algorithm 1, mean and all. Not private at the epsilon it names."""

    scale: Scale
    nominal: float
    alpha: float = 0.3

    def __post_init__(self) -> None:
        check_epsilon(self.nominal)
        check_alpha(self.alpha)

    @property
    def base(self) -> float:
        """The paper's base budget, epsilon / (1 + alpha)."""
        return self.nominal / (1 + self.alpha)

    @property
    def epsilon(self) -> float:
        """The true worst case over all data sets, the moving mean included, rounded up."""
        return published_price(self.nominal, self.alpha)

    def channel(self, mean: float) -> Channel:
        """The table it draws from once the mean is known. It depends on every rating, so it is never published."""
        return laplace_around(self.scale, self.base, self.alpha, mean)


def epsilon_with_public_centre(scale: Scale, epsilon: float, alpha: float, centre: float) -> float:
    """The exact price of the continuous, clipped mechanism if `centre` were public: no mean to move.

    The log-ratio of two clipped Laplace densities is piecewise linear in the output, so its extremes lie at the two
    ratings, just inside the two ends, or in the two atoms at the ends.
    """
    budgets = epsilon / (1 + alpha) * (1 + alpha * information_weights(scale, centre)) / scale.width
    return max(
        pair_loss(scale, r, s, b, c)
        for r, b in zip(scale.values, budgets, strict=True)
        for s, c in zip(scale.values, budgets, strict=True)
    )


def pair_loss(scale: Scale, r: float, s: float, b: float, c: float) -> float:
    """sup over outputs of log density(r, inverse scale b) - log density(s, inverse scale c), clipped to the scale."""
    inner = [np.log(b / c) - b * abs(y - r) + c * abs(y - s) for y in (scale.low, r, s, scale.high)]
    atoms = [-b * abs(end - r) + c * abs(end - s) for end in (scale.low, scale.high)]
    return float(max(*inner, *atoms))


def data_set_loss(scale: Scale, epsilon: float, alpha: float, ratings: Floats, changed: int, new: float) -> float:
    """The exact worst log-ratio between one data set and its neighbour: outputs are independent, so losses add."""
    neighbour = ratings.copy()
    neighbour[changed] = new
    base = epsilon / (1 + alpha) / scale.width
    half = scale.width / 2
    before = base * (1 + alpha * np.minimum(np.abs(ratings - ratings.mean()) / half, 1))
    after = base * (1 + alpha * np.minimum(np.abs(neighbour - neighbour.mean()) / half, 1))
    columns = (column.tolist() for column in (ratings, neighbour, before, after))
    alike = Counter(zip(*columns, strict=True))  # a crowd of equal ratings loses alike
    return sum(n * pair_loss(scale, *pair) for pair, n in alike.items())


def worst_data_set(scale: Scale, epsilon: float, alpha: float, size: int) -> tuple[Floats, int, float]:
    """A data set of `size` ratings, the position to change and its new value, whose loss tends to the supremum.

    One person turns from the lowest to the highest rating and drags the mean along. What hurts most is a crowd standing
    where the mean starts if the base budget is above one (they all sit at the low end), else where it arrives: at the
    high end, or, where the changed rating's own loss is `epsilon`, at the second level (a few low ratings balance it).
    """
    base = epsilon / (1 + alpha)
    second = scale.low + scale.step
    if base >= 1:
        ratings = np.full(size, scale.low)
    elif log1p(alpha) + base >= epsilon or scale.n_levels == 2:
        ratings = np.full(size, scale.high)
    else:
        ratings = np.full(size, second)
        ratings[: scale.n_levels - 1] = scale.low  # the changed one and n_levels - 2 that balance its new value
    ratings[0] = scale.low
    return ratings, 0, scale.high
