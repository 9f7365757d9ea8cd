"""Noisy averages, shrunk: how McSherry and Mironov 2009 and Berlioz et al. 2015 begin.

    mean   = (sum of y + noise) / (N + shrink)
    item_j = (sum over j's raters of (y - mean) + noise) / (n_j + shrink_j)
    user_u = (sum over u's items of (y - mean - item) + noise) / (n_u + shrink_u)

Both papers also add noise to the counts. With the values as the unit counts are public and cost nothing, so the peers
keep that share of the budget. One value changes one entry of each sum by at most 2 (y lies in [-1, 1]), in either norm:
earlier averages are private already when later sums are taken. Shrinkage is the one the noise calls for,
(residual + noise variance / n) / signal, instead of a fixed number of pretended ratings.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpsr.arrays import Floats
from dpsr.evaluate.peers.floating import Price, laplace_noise
from dpsr.evaluate.peers.least_squares import BIAS_SIGNAL, RESIDUAL, VALUE_SENSITIVITY
from dpsr.types import Mask

MEAN_SIGNAL = 0.1
"""How far, squared, a rating table's mean lies from the midpoint, in half-widths of the scale."""


@dataclass(frozen=True, eq=False)
class Averages:
    """Mean, item effects and user effects in [-1, 1], and what they cost."""

    mean: float
    items: Floats
    users: Floats
    prices: tuple[Price, ...]

    def at(self, mask: Mask) -> Floats:
        """What the averages say about every rating."""
        return self.mean + self.items[mask.items] + self.users[mask.users]


def noisy_mean(y: Floats, epsilon: float, rng: np.random.Generator) -> tuple[float, Price]:
    """The mean of all ratings; the sum moves by 2 with one value, the number of ratings is public."""
    total, price = laplace_noise(np.array([y.sum()]), sensitivity=VALUE_SENSITIVITY, epsilon=epsilon, rng=rng)
    return shrunk_mean(float(total[0]), len(y), 2 * price.scale**2), price


def shrunk_mean(total: float, n: float, noise_variance: float) -> float:
    """The mean from a noisy sum of n numbers, drawn to the public midpoint as far as its noise calls for."""
    return float(np.clip(total / (n + noise_variance / (n * MEAN_SIGNAL)), -1, 1))


def user_means(mask: Mask, y: Floats) -> Floats:
    """Each user's mean rating, zero without any: one user moves the sum of them by at most 1."""
    return np.bincount(mask.users, y, minlength=mask.n_users) / np.maximum(mask.user_counts, 1)


def group_sums(codes: npt.NDArray[np.int32], y: Floats, size: int) -> Floats:
    """The sum of y over each group: one value moves one sum."""
    return np.bincount(codes, y, minlength=size).astype(np.float64)


def shrunk(sums: Floats, counts: npt.NDArray[np.int64], noise_variance: float) -> Floats:
    """Effects from noisy sums; zero where nothing was rated."""
    n = np.maximum(counts, 1)
    return np.where(counts > 0, sums / (n + (RESIDUAL + noise_variance / n) / BIAS_SIGNAL), 0.0)


def noisy_averages(mask: Mask, y: Floats, epsilons: tuple[float, float, float], rng: np.random.Generator) -> Averages:
    """Mean, items and users with Laplace noise, each with its own budget."""
    mean, first = noisy_mean(y, epsilons[0], rng)
    items, second = _effects(mask.items, y - mean, mask.item_counts, epsilons[1], rng)
    users, third = _effects(mask.users, y - mean - items[mask.items], mask.user_counts, epsilons[2], rng)
    return Averages(mean, items, users, (first, second, third))


def _effects(
    codes: npt.NDArray[np.int32],
    y: Floats,
    counts: npt.NDArray[np.int64],
    epsilon: float,
    rng: np.random.Generator,
) -> tuple[Floats, Price]:
    sums = group_sums(codes, y, len(counts))
    noisy, price = laplace_noise(sums, sensitivity=VALUE_SENSITIVITY, epsilon=epsilon, rng=rng)
    return shrunk(noisy, counts, 2 * price.scale**2), price
