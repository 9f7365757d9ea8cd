"""DP-iALS: DP-ALS (Chien et al. 2021) on presence, with the adaptive weights of Krichene et al. 2023.

    loss   sum_{u, j in u} c_uj (1 - x_u.v_j)^2 + unseen sum_{u, j} (x_u.v_j)^2 + ridge |v|^2
    item   v_j = (sum_u c_uj x_u x_u' + unseen sum_u x_u x_u' + ridge)^-1 sum_u c_uj x_u,

    x_u = (alpha, p_u), |x_u| <= 1: the constant makes popularity a coefficient, and p_u is the person's own, from the
    person's own items and the item side so far (`Factors`), scaled down to what is left of the length.

Released with Gaussian noise: counts (a person moves them by one); then in each sweep the grams and right sides of the
items and the common gram, by sqrt 2 and one: sqrt 3 together. Only the most frequent items by noisy counts are
modelled, as in the reference; the others follow by noisy popularity. Kindly: ridges follow the noise; how many items
are modelled and how many sweeps are made is read from the budget.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpsr.arrays import Codes, Floats, Ints
from dpsr.data import Interactions
from dpsr.evaluate.contract import FLOATING, JOINT, Protection
from dpsr.evaluate.likes.baselines import OfSomeItems
from dpsr.evaluate.likes.contract import Baskets, Factors, ListModel, PrivateLists, baskets_of
from dpsr.evaluate.likes.peers.noisy_popularity import ITEMS
from dpsr.evaluate.peers.accounting import epsilon_of, gaussian_multiplier
from dpsr.evaluate.peers.adaptive import (
    COUNT_SENSITIVITY,
    adaptive_weights,
    item_statistics,
    most_frequent,
    solved_items,
    spread_counts,
    symmetric,
)
from dpsr.evaluate.peers.floating import Measured, Price, gaussian_noise
from dpsr.evaluate.peers.least_squares import ALPHA, clip_rows
from dpsr.types import Mask

RANK, UNSEEN, CONFIDENCE, OWN_RIDGE = 4, 0.05, 1.0, 10.0
COUNT_SHARE, LEAST_ITEMS, MOST_SWEEPS = 0.2, 300, 3
SIGNAL, START = 0.05, 0.3
SWEEP_SENSITIVITY = float(np.sqrt(3.0))


@dataclass
class DPiALS(PrivateLists):
    """Item vectors from noisy sufficient statistics, people folded in."""

    def _learn(self, likes: Interactions) -> tuple[ListModel, Protection]:
        mask, rng = likes.mask, self._noise()
        counts, first = self._noisy(spread_counts(mask), COUNT_SENSITIVITY, COUNT_SHARE, rng)
        frequent = most_frequent(counts, modelled_items(self.epsilon))
        weights = adaptive_weights(mask, counts, first.scale, frequent)
        chosen = np.flatnonzero(frequent)
        inside = mask.select(frequent[mask.items])
        among = Mask(mask.user_ids, mask.item_ids.take(chosen), inside.indptr, _renumbered(inside, chosen))
        usual = np.maximum(counts[chosen], first.scale)
        v, prices = self._item_side(among, weights[frequent[mask.items]], usual, rng)
        protection = Protection(
            "user", epsilon_of([first, *prices], self.delta), self.delta, ITEMS, f"{JOINT}; {FLOATING}"
        )
        return OfSomeItems(WithConstant(v, own_ridge(self.epsilon)), chosen, counts), protection

    def _noisy(self, statistic: Floats, sensitivity: float, share: float, rng: np.random.Generator) -> Measured:
        z = gaussian_multiplier(self.epsilon, self.delta, share=share)
        return gaussian_noise(statistic, sensitivity=sensitivity, multiplier=z, rng=rng)

    def _item_side(
        self, mask: Mask, weights: Floats, usual: Floats, rng: np.random.Generator
    ) -> tuple[Floats, list[Price]]:
        """Item vectors (c_j, q_j) after some sweeps."""
        d, sweeps, prices = RANK + 1, sweeps_at(self.epsilon), []
        v = np.column_stack([usual / usual.max(), self._chance().normal(0, START, (mask.n_items, RANK))])
        baskets, ones = baskets_of(mask), np.ones(mask.n_ratings)
        for _ in range(sweeps):
            x = WithConstant(v, own_ridge(self.epsilon)).shared_vectors(baskets)
            rows = item_statistics(mask, weights, ones, x)
            together = np.concatenate([rows.ravel(), (x.T @ x)[np.triu_indices(d)]])
            noisy, price = self._noisy(together, SWEEP_SENSITIVITY, (1 - COUNT_SHARE) / sweeps, rng)
            common = symmetric(noisy[None, rows.size :], d)[0]
            ridge = (0.2 + price.scale**2 / usual[:, None]) / SIGNAL * np.array([0.05, *[1.0] * RANK])
            v = solved_items(noisy[: rows.size].reshape(rows.shape), d, ridge, _positive(UNSEEN * common))
            prices.append(price)
        return v, prices


@dataclass(frozen=True, eq=False)
class WithConstant:
    """Items (c_j, q_j) and people (alpha, p_u)."""

    items: Floats
    ridge: float

    def own_vectors(self, baskets: Baskets) -> Floats:
        """p_u, from the person's own items alone."""
        return Factors(self.items[:, 1:], CONFIDENCE, UNSEEN, self.ridge).own_vectors(baskets)

    def shared_vectors(self, baskets: Baskets) -> Floats:
        """x_u, of length one at most; zero for a person with nothing to contribute."""
        p = clip_rows(self.own_vectors(baskets), np.sqrt(1 - ALPHA**2))
        there = np.diff(baskets.indptr) > 0
        return np.column_stack([np.full(len(p), ALPHA), p]) * there[:, None]

    def scores_of(self, baskets: Baskets) -> Floats:
        """One row of scores for each person."""
        return self.own_vectors(baskets) @ self.items[:, 1:].T + ALPHA * self.items[:, 0]


def modelled_items(epsilon: float) -> int:
    """How many of the most frequent items get vectors."""
    return round(LEAST_ITEMS * max(1.0, epsilon / 2))


def own_ridge(epsilon: float) -> float:
    """What people's own vectors are shrunk by: the more, the noisier the items are."""
    return OWN_RIDGE * max(1.0, 20 / epsilon) ** 2


def sweeps_at(epsilon: float) -> int:
    """How often the item side is asked for."""
    return int(np.clip(round(epsilon / 7), 1, MOST_SWEEPS))


def _positive(gram: Floats) -> Floats:
    values, vectors = np.linalg.eigh(gram)
    return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)


def _renumbered(mask: Mask, chosen: Ints) -> Codes:
    return np.searchsorted(chosen, mask.items).astype(np.int32)
