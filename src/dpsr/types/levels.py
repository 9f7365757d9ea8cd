"""The distribution of a rating given its mean: a one-parameter exponential family on the levels of a scale.

Ratings are put on y in [-1, 1], half the scale's width to the unit. With a base measure pi and a curvature t2,

    P(y | m)  is proportional to  pi_y exp(t1(m) y + t2 y^2),     t1(m) solves E[y | m] = m.

pi carries what is peculiar to the use of a scale (half stars are rarer, tens are frequent); t2 alone sets how far
ratings scatter around their mean. Because t1 is the natural parameter,

    d/dm log P(y | m) = (y - m) / V(m),      V(m) = Var(y | m),

so for any observation o of the rating the score in m is (E[y | o, m] - m) / V(m): every Gaussian pseudo-observation
used by the default pipeline is a consequence of this line.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

GRID = 61
"""Means at which the family is tabulated; between them everything is interpolated."""

_EDGE = 0.02
"""How far the outermost means stay from the ends of the scale, where a distribution has no width left."""


@dataclass(frozen=True, eq=False)
class LevelFamily:
    """P(y | m) at `GRID` means: `table[g, x]` for level x, and its variance."""

    y: Floats
    means: Floats
    table: Floats
    variance: Floats

    @property
    def spacing(self) -> float:
        return float(self.means[1] - self.means[0])

    def nearest(self, m: Floats) -> npt.NDArray[np.int64]:
        """The grid point nearest to each mean."""
        return np.clip(np.rint((m - self.means[0]) / self.spacing), 0, GRID - 1).astype(np.int64)

    def at(self, values: Floats, m: Floats) -> Floats:
        """A function tabulated on the means, interpolated linearly."""
        return np.interp(m, self.means, values)


def tabulate(y: Floats, log_base: Floats, curvature: float) -> LevelFamily:
    """The family with base measure exp(log_base) and the given curvature; t1(m) by bisection."""
    means = np.linspace(-1 + _EDGE, 1 - _EDGE, GRID)
    bound = (20.0 + np.ptp(log_base)) / (y[1] - y[0]) + 4 * abs(curvature) + 20
    low, high = np.full(GRID, -bound), np.full(GRID, bound)
    for _ in range(50):
        middle = (low + high) / 2
        below = _tilted(y, log_base, middle, curvature) @ y < means
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    table = _tilted(y, log_base, (low + high) / 2, curvature)
    return LevelFamily(y, means, table, np.maximum(table @ y**2 - (table @ y) ** 2, 1e-6))


def with_variance(y: Floats, log_base: Floats, variance: float, centres: Floats) -> LevelFamily:
    """The family whose variance, averaged over the means `centres`, is `variance`, as nearly as the scale allows."""
    low, high = -1.0 / variance - 10, 20.0
    for _ in range(16):
        middle = (low + high) / 2
        family = tabulate(y, log_base, middle)
        if family.at(family.variance, centres).mean() < variance:
            low = middle
        else:
            high = middle
    return family


def _tilted(y: Floats, log_base: Floats, t1: Floats, t2: float) -> Floats:
    logit = log_base + t2 * y**2 + t1[:, None] * y
    table = np.exp(logit - logit.max(axis=1, keepdims=True))
    return table / table.sum(axis=1, keepdims=True)
