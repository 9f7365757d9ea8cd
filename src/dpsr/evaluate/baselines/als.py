"""Non-private matrix factorisation worth comparing with: alternating least squares on what the biases leave over.

With e_uj = r_uj - mu - b_u - c_j from `Bias` and s the standard deviation of e, it minimises

    sum_(u,j) (e_uj - P_u . Q_j)^2 + lambda s ( sum_u n_u |P_u|^2 + sum_j n_j |Q_j|^2 ),

one exact ridge solve per user, then per item (Zhou et al. 2008 weight the penalty by the counts n). The factor s makes
lambda free of the rating scale: multiply all ratings by a number and the same lambda gives the same fit. Rank and
lambda are those that predict held-back training ratings best; if none beats the biases alone, there are no factors.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import numpy.typing as npt

from dpsr.arrays import Floats
from dpsr.evaluate.baselines.base import Baseline, Fitted, by_items, hold_out
from dpsr.evaluate.baselines.bias import Bias
from dpsr.linalg.compiled import kernel
from dpsr.types import Mask

START = 0.1
"""Standard deviation of the random item factors before the first sweep, in units of the square root of s."""


@dataclass
class ALS(Baseline):
    """Bias + P_u . Q_j, tuned on validation data inside the training set."""

    ranks: tuple[int, ...] = (4, 8)
    strengths: tuple[float, ...] = (0.05, 0.08, 0.12, 0.2, 0.3)
    sweeps: int = 25
    validation: float = 0.1
    random_state: int = 0

    def _learn(self, mask: Mask, values: Floats) -> Fitted:
        rank, strength = self.chosen_ = self._choose(mask, values)
        return self._fit_once(mask, values, self._biases(mask, values), rank, strength)

    def _biases(self, mask: Mask, values: Floats) -> Fitted:
        return Bias(validation=self.validation, random_state=self.random_state)._learn(mask, values)

    def _choose(self, mask: Mask, values: Floats) -> tuple[int, float]:
        held = hold_out(mask, self.validation, self.random_state)
        if not held.any():
            return self.ranks[0], self.strengths[-1]
        rest, users, items = mask.select(~held), mask.users[held], mask.items[held]
        biases = self._biases(rest, values[~held])

        def loss(setting: tuple[int, float]) -> float:
            model = self._fit_once(rest, values[~held], biases, *setting)
            return float(np.mean((values[held] - model.predict(users, items)) ** 2))

        return min([(0, 0.0), *product(self.ranks, self.strengths)], key=loss)

    def _fit_once(self, mask: Mask, values: Floats, biases: Fitted, rank: int, strength: float) -> Fitted:
        if rank == 0:
            return biases
        residual = values - biases.predict(mask.users, mask.items)
        spread = float(residual.std())
        if spread == 0:
            return biases
        start = np.random.default_rng(self.random_state).normal(0, START * np.sqrt(spread), (mask.n_items, rank))
        P, Q = alternate(mask, residual, start, strength * spread, self.sweeps)
        return replace(biases, user_factors=P, item_factors=Q)


def alternate(mask: Mask, residual: Floats, start: Floats, strength: float, sweeps: int) -> tuple[Floats, Floats]:
    """`sweeps` rounds of exact solves for the user factors given the item factors and the other way round."""
    by_item = by_items(mask)
    item_residual = residual[by_item.places]
    P, Q = np.zeros((mask.n_users, start.shape[1])), start.copy()
    for _ in range(sweeps):
        solve_rows(mask.indptr, mask.items, residual, Q, strength, P)
        solve_rows(by_item.ptr, by_item.users, item_residual, P, strength, Q)
    return P, Q


@kernel
def solve_rows(
    indptr: npt.NDArray[np.int64],
    columns: npt.NDArray[np.int32],
    residual: Floats,
    other: Floats,
    strength: float,
    out: Floats,
) -> None:
    """out[a] = argmin_x sum_t (residual_t - x . other[columns_t])^2 + strength n_a |x|^2; zero where n_a = 0."""
    d = other.shape[1]
    gram = np.empty((d, d))
    right = np.empty(d)
    for a in range(len(indptr) - 1):
        n = indptr[a + 1] - indptr[a]
        out[a, :] = 0.0
        if n == 0:
            continue
        gram[:, :] = 0.0
        right[:] = 0.0
        for t in range(indptr[a], indptr[a + 1]):
            row = other[columns[t]]
            for p in range(d):
                right[p] += row[p] * residual[t]
                for q in range(p + 1):
                    gram[p, q] += row[p] * row[q]
        for p in range(d):
            gram[p, p] += strength * n
        _cholesky_solve(gram, right)
        out[a, :] = right


@kernel
def _cholesky_solve(gram: Floats, right: Floats) -> None:
    """Solve gram x = right in place, reading the lower triangle; a call to LAPACK costs more than the work at d = 8."""
    d = len(right)
    for p in range(d):
        for q in range(p + 1):
            rest = gram[p, q]
            for k in range(q):
                rest -= gram[p, k] * gram[q, k]
            gram[p, q] = np.sqrt(rest) if p == q else rest / gram[q, q]
    for p in range(d):
        for k in range(p):
            right[p] -= gram[p, k] * right[k]
        right[p] /= gram[p, p]
    for p in range(d - 1, -1, -1):
        for k in range(p + 1, d):
            right[p] -= gram[k, p] * right[k]
        right[p] /= gram[p, p]
