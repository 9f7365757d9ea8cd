"""DP-ALS with adaptive weights: Chien et al. 2021, "Private alternating least squares", and Krichene et al. 2023.

User-level and joint: the item side is (epsilon, delta)-DP when all ratings of a user come or go, the user side is
computed from the item side and the user's own ratings. Ratings y in [-1, 1] less a noisy mean of the users' means;

    x_u = (alpha, p_u), |p_u| clipped to sqrt(1 - alpha^2);   b_u, p_u from u's own ratings given the item vectors v
    item side:  (sum_u c_uj x_u x_u', sum_u c_uj t_uj x_u) + Gaussian noise,   t_uj = clamp(y_uj - mean - b_u, -1, 1),
    v_j = (PSD part of the noisy gram + ridge)^-1 noisy right,

with the weights c of `adaptive`, sum_j c_uj^2 = 1: both sums together move by sqrt 2, the counts by one and the sum of
users' means by one. Every sensitivity is what a user really moves; the reference implementation charges less
(`reference`). Kindly: ridges follow the noise, users' own coefficients are shrunk, the share of every release is fixed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpsr.arrays import Floats
from dpsr.engine.raw import RawRatings
from dpsr.evaluate.baselines.base import Linear
from dpsr.evaluate.contract import CATALOGUE, FLOATING, JOINT, PrivateMethod, Protection
from dpsr.evaluate.metrics.ranking import Predictor
from dpsr.evaluate.peers.accounting import epsilon_of, gaussian_multiplier
from dpsr.evaluate.peers.adaptive import (
    COUNT_SENSITIVITY,
    STATISTIC_SENSITIVITY,
    adaptive_weights,
    believed_weights,
    item_statistics,
    solved_items,
    spread_counts,
)
from dpsr.evaluate.peers.averages import shrunk_mean, user_means
from dpsr.evaluate.peers.floating import Measured, Price, gaussian_noise
from dpsr.evaluate.peers.least_squares import (
    ALPHA,
    RANK,
    RESIDUAL,
    item_signal,
    item_weight,
    joint_model,
    own_rows,
    shared_vectors,
    start_vectors,
    unit_values,
)
from dpsr.types import Mask, Scale

SWEEPS = 4
"""The most sweeps; see `sweeps_at`."""
MEAN_SHARE, COUNT_SHARE = 0.02, 0.08
WEIGHT = 0.2
"""What a rating is taken to weigh when the error of an item is judged: as of a user with 25 ratings."""


@dataclass
class DPALS(PrivateMethod):
    """Alternating least squares with noisy sufficient statistics on the item side."""

    rank: int = RANK

    def _learn(self, ratings: RawRatings) -> tuple[Predictor, Protection]:
        mask, y, rng = ratings.mask, unit_values(ratings), self._noise()
        total, first = self._noisy(np.array([user_means(mask, y).sum()]), 1.0, MEAN_SHARE, rng)
        mean = shrunk_mean(float(total[0]), mask.n_users, first.scale**2)
        counts, second = self._noisy(spread_counts(mask), COUNT_SENSITIVITY, COUNT_SHARE, rng)
        weights = adaptive_weights(mask, counts, second.scale)
        v, prices = self._item_side(mask, y - mean, weights, float(counts.mean()), rng)
        spent = epsilon_of([first, second, *prices], self.delta)
        protection = Protection("user", spent, self.delta, CATALOGUE, f"{JOINT}; {FLOATING}")
        return self._model(ratings.scale, mean, mask, y - mean, v), protection

    def _model(self, scale: Scale, mean: float, mask: Mask, y: Floats, v: Floats) -> Linear:
        """Predictions from the item side and every user's own ratings."""
        return joint_model(scale, mean, mask, y, v)

    def _noisy(self, statistic: Floats, sensitivity: float, share: float, rng: np.random.Generator) -> Measured:
        z = gaussian_multiplier(self.epsilon, self.delta, share=share)
        return gaussian_noise(statistic, sensitivity=sensitivity, multiplier=z, rng=rng)

    def _item_side(
        self, mask: Mask, y: Floats, weights: Floats, usual: float, rng: np.random.Generator
    ) -> tuple[Floats, list[Price]]:
        """Item vectors after a few sweeps; users' vectors are recomputed by the users in between."""
        v, sweeps, prices = start_vectors(mask.n_items, self._chance(), self.rank), sweeps_at(self.epsilon), []
        share = (1 - MEAN_SHARE - COUNT_SHARE) / sweeps
        for _ in range(sweeps):
            own = own_rows(mask, y, v)
            statistic = item_statistics(mask, weights, y - own[mask.users, 0], shared_vectors(own[:, 1:]))
            noisy, price = self._noisy(statistic, STATISTIC_SENSITIVITY, share, rng)
            v = solved_items(noisy, self.rank + 1, self._ridges(noisy[:, 0], price.scale, usual))
            prices.append(price)
        return v, prices

    def _ridges(self, constants: Floats, noise: float, usual: float) -> Floats:
        """By item; the corner of the gram matrix is its noisy weight times alpha^2."""
        return ridges(constants / ALPHA**2, noise, max(usual, noise), self.rank)


def sweeps_at(epsilon: float) -> int:
    """How often the item side is asked for: read from the budget."""
    return int(np.clip(round(epsilon / 10), 1, SWEEPS))


def ridges(weight: Floats, noise: float, usual: float, rank: int = RANK) -> Floats:
    """What an item's noise calls for, given its noisy weight and what is usual among the frequent ones."""
    believed = believed_weights(weight, noise, usual)[:, None]
    return np.asarray((WEIGHT * RESIDUAL + noise**2 / (believed * item_weight(rank))) / item_signal(rank))
