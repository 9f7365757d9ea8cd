"""DP-SGD on the factorisation at the level of people: alternating minimisation by noisy gradients of whole users.

User-level and joint, as DP-ALS is (the reference calls it AM-DPSGD). With x_u = (alpha, p_u), |x_u| <= 1, and b_u, p_u
from u's own ratings given the item side v so far, a sampled user contributes to every item j of theirs

    g_uj = w_u clamp(y_uj - mean - b_u - x_u.v_j, -1, 1) x_u,      w_u = 1 / sqrt(n_u),

clipped as one vector over all items to length C. Every step lets each user in with probability q (Poisson), adds the
gradients up and adds N(0, (z C)^2) to every coordinate of every item; a user moves the sum by C at most. A first
release gives the mean of users' means and spread counts (one each: sqrt 2 together), from which every item gets its own
step, as in `dp_sgd`. z is the smallest with which everything together costs (epsilon, delta), by dp-accounting.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpsr.arrays import Bools, Floats
from dpsr.engine.raw import RawRatings
from dpsr.evaluate.contract import CATALOGUE, FLOATING, JOINT, PrivateMethod, Protection
from dpsr.evaluate.metrics.ranking import Predictor
from dpsr.evaluate.peers.accounting import epsilon_of, sampled_multiplier
from dpsr.evaluate.peers.adaptive import believed_weights, spread_counts
from dpsr.evaluate.peers.averages import shrunk_mean, user_means
from dpsr.evaluate.peers.floating import Price, gaussian_noise
from dpsr.evaluate.peers.least_squares import (
    ALPHA,
    RESIDUAL,
    item_signal,
    item_weight,
    joint_model,
    own_rows,
    shared_vectors,
    start_vectors,
    unit_values,
)
from dpsr.types import Mask

STEPS, SAMPLING, CLIP = 15, 0.3, 0.4
FIRST_SHARE = 0.1
"""Of the budget (in 1 / multiplier^2), what the mean and the counts take."""
FIRST_SENSITIVITY = float(np.sqrt(2.0))
WEIGHT = 0.2
"""What a rating is taken to weigh, as of a user with 25 ratings."""


@dataclass
class UserDPSGD(PrivateMethod):
    """Item vectors by noisy gradients of whole users; users compute their own side."""

    def _learn(self, ratings: RawRatings) -> tuple[Predictor, Protection]:
        mask, y, rng = ratings.mask, unit_values(ratings), self._noise()
        beside = float(1 / np.sqrt(FIRST_SHARE * SAMPLING**2 * STEPS))
        z = sampled_multiplier(self.epsilon, self.delta, ((1.0, SAMPLING, STEPS), (beside, 1.0, 1)))
        statistic = np.append(spread_counts(mask), user_means(mask, y).sum())
        first, price = gaussian_noise(statistic, sensitivity=FIRST_SENSITIVITY, multiplier=z * beside, rng=rng)
        mean = shrunk_mean(float(first[-1]), mask.n_users, price.scale**2)
        v, prices = self._train(mask, y - mean, first[:-1], price.scale, z, rng)
        spent = epsilon_of([price, *prices], self.delta)
        protection = Protection("user", spent, self.delta, CATALOGUE, f"{JOINT}; {FLOATING}")
        return joint_model(ratings.scale, mean, mask, y - mean, v), protection

    def _train(
        self, mask: Mask, y: Floats, counts: Floats, off: float, z: float, rng: np.random.Generator
    ) -> tuple[Floats, list[Price]]:
        """Item vectors from noisy counts that are `off` by so much: what is believed of them sets the ridges, and the
        larger of both the steps, so that no popular item is stepped over."""
        v, prices = start_vectors(mask.n_items, self._chance()), []
        noise, believed = z * CLIP / SAMPLING / np.sqrt(STEPS), believed_weights(counts, off)[:, None]
        ridge = (WEIGHT * RESIDUAL + noise**2 / (believed * item_weight())) / item_signal()
        curvature = np.maximum(believed, counts[:, None]) * np.array([ALPHA**2, *item_weight()[1:]]) + ridge
        for t in range(STEPS):
            present = self._chance(1 + t).random(mask.n_users) < SAMPLING
            gradient = clipped_gradients(mask, y, v, present, CLIP)
            noisy, price = gaussian_noise(gradient, sensitivity=CLIP, multiplier=z, rng=rng, sampling=SAMPLING)
            v = v + 2 / (t + 2) * (noisy / SAMPLING - ridge * v) / curvature
            prices.append(price)
        return v, prices


def clipped_gradients(mask: Mask, y: Floats, v: Floats, present: Bools, clip: float) -> Floats:
    """The sum over present users of their gradients on all items, each user's clipped to length `clip`."""
    own = own_rows(mask, y, v)
    x = shared_vectors(own[:, 1:])
    w = 1 / np.sqrt(np.maximum(mask.user_counts, 1))
    residual = y - own[mask.users, 0] - np.einsum("rd,rd->r", x[mask.users], v[mask.items])
    t = np.clip(residual, -1, 1) * w[mask.users]
    length = np.sqrt(np.bincount(mask.users, t**2, minlength=mask.n_users)) * np.linalg.norm(x, axis=1)
    share = np.where(present, np.minimum(1.0, clip / np.maximum(length, 1e-300)), 0.0)
    rows = (t * share[mask.users])[:, None] * x[mask.users]
    return np.stack([np.bincount(mask.items, column, minlength=mask.n_items) for column in rows.T], axis=1)
