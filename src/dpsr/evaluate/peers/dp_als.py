"""DP-ALS: Chien, Jain, Krichene, Rendle, Song, Thakurta and Zhang 2021, "Private alternating least squares".

User-level and joint: the item side is (epsilon, delta)-DP when all ratings of a user come or go, the user side is
computed from the item side and the user's own ratings. Ratings y in [-1, 1] less a noisy mean of the users' means;

    x_u = (alpha, p_u), |p_u| clipped to sqrt(1 - alpha^2);   b_u, p_u from u's own ratings given the item vectors v
    item side:  (sum_u x_u x_u', sum_u t_uj x_u) + Gaussian noise,   t_uj = clamp(y_uj - mean - b_u, -1, 1),
    v_j = (PSD part of the noisy gram + ridge)^-1 noisy right,

each user counting with at most k ratings, all on frequent items. A user moves the upper half of the gram by
|x x'| <= 1 and the right side by |t x| <= 1 for each of these, so both together by sqrt(2k) at most. Frequent items are
those with the largest noisy counts (sensitivity sqrt k), other items keep v = 0.

Kindly: users without ratings on frequent items still get their own bias; ridges follow the noise; the share of every
release is fixed. Left out: the adaptive sampling by inverse frequency, which pays at a hundred times more users.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpsr.arrays import Bools, Floats
from dpsr.evaluate.contract import CATALOGUE, FLOATING, JOINT, PrivateMethod, Protection
from dpsr.evaluate.metrics.ranking import Predictor
from dpsr.evaluate.peers.accounting import epsilon_of, gaussian_multiplier
from dpsr.evaluate.peers.averages import shrunk_mean, user_means
from dpsr.evaluate.peers.floating import Measured, Price, gaussian_noise
from dpsr.evaluate.peers.least_squares import (
    ALPHA,
    ITEM_SIGNAL,
    ITEM_WEIGHT,
    RANK,
    RESIDUAL,
    joint_model,
    normal_equations,
    own_rows,
    ridge_solve,
    shared_vectors,
    start_vectors,
    unit_values,
)
from dpsr.types import Mask
from dpsr.types.raw import RawRatings

PER_USER, FREQUENT, SWEEPS = 25, 0.2, 4
"""k and the share of the catalogue that counts as frequent up to epsilon = 5, and the most sweeps; see `limits`."""
MEAN_SHARE, COUNT_SHARE = 0.02, 0.08


@dataclass
class DPALS(PrivateMethod):
    """Alternating least squares with noisy sufficient statistics on the item side."""

    def _learn(self, ratings: RawRatings) -> tuple[Predictor, Protection]:
        mask, y, rng = ratings.mask, unit_values(ratings), self._noise()
        total, first = self._noisy(np.array([user_means(mask, y).sum()]), 1.0, MEAN_SHARE, rng)
        mean = shrunk_mean(float(total[0]), mask.n_users, first.scale**2)
        order, (k, share, _) = self._chance(1).random(mask.n_ratings), limits(self.epsilon)
        counted = at_most(k, mask, order, np.ones(mask.n_ratings, dtype=bool))
        counts, second = self._noisy(item_counts(mask, counted), np.sqrt(k), COUNT_SHARE, rng)
        frequent = most_frequent(counts, share)
        v, prices = self._item_side(mask, y - mean, at_most(k, mask, order, frequent[mask.items]), frequent, rng)
        spent = epsilon_of([first, second, *prices], self.delta)
        protection = Protection("user", spent, self.delta, CATALOGUE, f"{JOINT}; {FLOATING}")
        return joint_model(ratings.scale, mean, mask, y - mean, v), protection

    def _noisy(self, statistic: Floats, sensitivity: float, share: float, rng: np.random.Generator) -> Measured:
        z = gaussian_multiplier(self.epsilon, self.delta, share=share)
        return gaussian_noise(statistic, sensitivity=sensitivity, multiplier=z, rng=rng)

    def _item_side(
        self, mask: Mask, y: Floats, chosen: Bools, frequent: Bools, rng: np.random.Generator
    ) -> tuple[Floats, list[Price]]:
        """Item vectors after a few sweeps; users' vectors are recomputed by the users in between."""
        v = np.where(frequent[:, None], start_vectors(mask.n_items, self._chance()), 0.0)
        (k, _, sweeps), prices = limits(self.epsilon), []
        share = (1 - MEAN_SHARE - COUNT_SHARE) / sweeps
        for _ in range(sweeps):
            own = own_rows(mask, y, v)
            statistic = item_statistics(mask, y - own[mask.users, 0], own[:, 1:], chosen)
            noisy, price = self._noisy(statistic, np.sqrt(2 * k), share, rng)
            v = item_vectors(noisy, price.scale, k * mask.n_users / frequent.sum())
            v = np.where(frequent[:, None], v, 0.0)
            prices.append(price)
        return v, prices


def limits(epsilon: float) -> tuple[int, float, int]:
    """How many ratings a user counts with, the share of frequent items, the number of sweeps: read from the budget."""
    more = max(1.0, epsilon / 5)
    return round(PER_USER * min(more, 20.0)), min(1.0, FREQUENT * more), int(np.clip(round(epsilon / 10), 1, SWEEPS))


def at_most(k: int, mask: Mask, order: Floats, allowed: Bools) -> Bools:
    """At most k of each user's allowed ratings, those that come first in a random order."""
    place = np.lexsort((order, ~allowed, mask.users))
    rank = np.empty(mask.n_ratings, dtype=np.int64)
    rank[place] = np.arange(mask.n_ratings) - mask.indptr[mask.users[place]]
    return allowed & (rank < k)


def item_counts(mask: Mask, counted: Bools) -> Floats:
    """How often each item is rated; one user moves it by sqrt(k) at most, k its ratings counted."""
    return np.bincount(mask.items[counted], minlength=mask.n_items).astype(np.float64)


def most_frequent(noisy_counts: Floats, share: float) -> Bools:
    """The items with the largest noisy counts."""
    frequent = np.zeros(len(noisy_counts), dtype=bool)
    frequent[np.argsort(-noisy_counts)[: max(1, round(share * len(noisy_counts)))]] = True
    return frequent


def item_statistics(mask: Mask, target: Floats, p: Floats, chosen: Bools) -> Floats:
    """Upper half of the gram and right side of every item, over the chosen ratings: one row per item."""
    x = shared_vectors(p)
    rows = mask.items[chosen]
    order = np.argsort(rows, kind="stable")
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=mask.n_items))])
    t = np.clip(target[chosen], -1, 1)[order]
    gram, right = normal_equations(indptr, mask.users[chosen][order], t, x)
    return np.hstack([gram[:, *np.triu_indices(x.shape[1])], right])


def item_vectors(noisy: Floats, noise: float, most: float) -> Floats:
    """Solve with the positive part of the noisy gram; the ridge weighs the noise by a believed number of ratings."""
    d = RANK + 1
    gram = np.zeros((len(noisy), d, d))
    gram[:, *np.triu_indices(d)] = noisy[:, : d * (d + 1) // 2]
    gram = gram + np.triu(gram, 1).swapaxes(1, 2)
    values, vectors = np.linalg.eigh(gram)
    gram = np.einsum("aip,ap,ajp->aij", vectors, np.maximum(values, 0.0), vectors)
    trust = most**2 / (most**2 + noise**2)
    believed = np.maximum(most + trust * (gram[:, 0, 0] / ALPHA**2 - most), 0.1 * most)[:, None]
    ridge = (RESIDUAL + noise**2 / (believed * ITEM_WEIGHT)) / ITEM_SIGNAL
    return ridge_solve(gram, noisy[:, d * (d + 1) // 2 :], ridge)
