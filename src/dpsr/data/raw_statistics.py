"""Figures of raw ratings for the curator's eyes: how far predictions are from them, and how they vary. **Not private.**

spread     deviation of a rating around its person's mean, s
levels     variance of people's levels beyond what their few ratings explain, in squares of s
effects    variance of items' effects, in squares of s: how alike residuals of different people of an item are
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dpsr.arrays import Floats
from dpsr.engine.raw import RawRatings
from dpsr.types.coordinates import Ids

_LEAST = 0.02


def root_mean_square_error(ratings: RawRatings, predict: Callable[[Ids, Ids], Floats]) -> float:
    """RMSE of `predict(users, items)` on ratings that it has not seen."""
    return float(np.sqrt(np.mean((predict(*ratings.mask.id_pairs()) - ratings.values) ** 2)))


@dataclass(frozen=True)
class RawSpread:
    """Rating points, and two shares. Raw: for the curator's eyes only."""

    spread: float
    level_variance: float
    effect_variance: float


def raw_spread(ratings: RawRatings) -> RawSpread:
    """Method of moments; shares are kept above a trace of nothing."""
    mask, y = ratings.mask, ratings.values
    users, items, counts = mask.users, mask.items, mask.user_counts
    means = np.bincount(users, y, len(counts)) / np.maximum(counts, 1)
    e, there = y - means[users], counts > 0
    s2 = max(float((e**2).sum()) / max(int((counts[there] - 1).sum()), 1), 1e-12)
    levels = (float(means[there].var()) - s2 * float((1 / counts[there]).mean())) / s2
    several = counts[users] > 1
    n, sums, squares = (
        np.bincount(items[several], weights, mask.n_items) for weights in (None, e[several], e[several] ** 2)
    )
    pairs = n > 1
    alike = float(((sums**2 - squares)[pairs] / (n[pairs] - 1)).sum()) / max(float(n[pairs].sum()), 1.0) / s2
    return RawSpread(float(np.sqrt(s2)), max(levels, _LEAST), float(np.clip(alike, _LEAST, 0.8)))
