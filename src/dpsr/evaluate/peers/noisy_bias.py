"""Noisy biases at the level of people: the simplest thing that a person-level method must beat.

User-level and joint, as DP-ALS is. Ratings y in [-1, 1];

    mean     noisy mean of the users' means: a user moves the sum of them by at most 1
    b_u      sum (y - mean) / (n_u + l)                            u's own level, never shown
    item j   (sum_u w_u t_uj, sum_u w_u),   w_u = 1 / sqrt n_u,   t_uj = clamp(y_uj - mean - b_u, -1, 1)

A user's weights have length one, so both sums together move by sqrt 2 at most, however many ratings the user has. An
item's effect is the posterior mean at the noise that was drawn; users then compute b_u again with it. Without items it
is every user's own mean, shrunk towards a noisy level.
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
from dpsr.evaluate.peers.averages import shrunk_mean, user_means
from dpsr.evaluate.peers.floating import Price, gaussian_noise
from dpsr.evaluate.peers.least_squares import BIAS_SIGNAL, RESIDUAL, unit_values
from dpsr.types import Mask

MEAN_SHARE = 0.05
"""Of the budget, for the mean of all users; items get the rest."""

WEIGHT = 0.2
"""What a rating is taken to weigh when the error of an effect is judged: as of a user with 25 ratings."""


@dataclass
class NoisyBias(PrivateMethod):
    """Own level and noisy item effects, or (`items=False`) the own level alone."""

    items: bool = True

    def _learn(self, ratings: RawRatings) -> tuple[Predictor, Protection]:
        mask, y, rng = ratings.mask, unit_values(ratings), self._noise()
        share = MEAN_SHARE if self.items else 1.0
        z = gaussian_multiplier(self.epsilon, self.delta, share=share)
        total, first = gaussian_noise(np.array([user_means(mask, y).sum()]), sensitivity=1.0, multiplier=z, rng=rng)
        mean = shrunk_mean(float(total[0]), mask.n_users, first.scale**2)
        effects, prices = np.zeros(mask.n_items), [first]
        if self.items:
            effects, second = self._effects(mask, y - mean, rng)
            prices.append(second)
        own = own_levels(mask, y - mean - effects[mask.items])
        spent = epsilon_of(prices, self.delta)
        protection = Protection("user", spent, self.delta, CATALOGUE, f"{JOINT}; {FLOATING}")
        users, items = (np.column_stack(one) for one in ((own, np.ones_like(own)), (np.ones_like(effects), effects)))
        return Linear(ratings.scale, mean, users, items), protection

    def _effects(self, mask: Mask, y: Floats, rng: np.random.Generator) -> tuple[Floats, Price]:
        z = gaussian_multiplier(self.epsilon, self.delta, share=1 - MEAN_SHARE)
        statistic = item_sums(mask, y - own_levels(mask, y)[mask.users])
        noisy, price = gaussian_noise(statistic, sensitivity=np.sqrt(2), multiplier=z, rng=rng)
        count = np.maximum(noisy[1], 0.0)
        ridge = (price.scale**2 + RESIDUAL * WEIGHT * count) / BIAS_SIGNAL
        return np.clip(noisy[0] * count / (count**2 + ridge), -1, 1), price


def own_levels(mask: Mask, y: Floats) -> Floats:
    """Each user's mean, shrunk as a bias of the usual size asks for; from own ratings alone."""
    return np.bincount(mask.users, y, minlength=mask.n_users) / (mask.user_counts + RESIDUAL / BIAS_SIGNAL)


def item_sums(mask: Mask, residual: Floats) -> Floats:
    """Weighted sums of clamped residuals, and of weights, of every item (2, n); a user moves them by sqrt 2 at most."""
    w = 1 / np.sqrt(np.maximum(mask.user_counts, 1))[mask.users]
    t = w * np.clip(residual, -1, 1)
    return np.stack([np.bincount(mask.items, one, minlength=mask.n_items) for one in (t, w)])
