"""EASE (Steck 2019): the linear item-item model with a zero diagonal, in closed form.

    B = argmin |X - X B|^2 + ridge |B|^2,  diag B = 0     =>     B_ij = -P_ij / P_jj,    P = (X'X + ridge I)^-1,

so that a basket x scores item j with x_j - (x P)_j / P_jj. P is never formed where people are fewer than items:

    x P = (x - x X' (X X' + ridge I)^-1 X) / ridge.

Known gap: where people and items are both more than `LARGEST`, only so many of the most popular items are modelled and
the others follow by popularity.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpsr.arrays import Floats, Ints
from dpsr.data import Interactions
from dpsr.evaluate.likes.baselines.tuning import best_setting
from dpsr.evaluate.likes.contract import Baskets, ListModel, baskets_of

RIDGES = (30.0, 100.0, 300.0, 1000.0)
LARGEST = 3000
"""The largest matrix that is inverted."""


def ease(likes: Interactions, seed: int) -> ListModel:
    """The ridge chosen on people held back."""
    return closed_form(likes, best_setting(likes, seed, RIDGES, closed_form))


def closed_form(likes: Interactions, ridge: float) -> ListModel:
    """The model at one ridge."""
    baskets, counts = baskets_of(likes.mask), likes.mask.item_counts
    if likes.n_users <= min(likes.n_items, LARGEST):
        return _Dual(*_dual(baskets.toarray(), ridge))
    items = np.sort(np.argsort(-counts, kind="stable")[:LARGEST])
    x = baskets[:, items]
    inverse = np.linalg.inv((x.T @ x).toarray() + ridge * np.eye(len(items)))
    return OfSomeItems(_Primal(inverse), items, counts.astype(np.float64))


@dataclass(frozen=True, eq=False)
class OfSomeItems:
    """A model of some items; all others stand behind them, by popularity."""

    model: ListModel
    items: Ints
    counts: Floats

    def scores_of(self, baskets: Baskets) -> Floats:
        """One row of scores for each person."""
        inside = self.model.scores_of(baskets[:, self.items])
        others = self.counts / (1 + self.counts.max())
        scores = np.tile(others - 1 + min(0.0, float(inside.min(initial=0.0))), (baskets.shape[0], 1))
        scores[:, self.items] = inside
        return scores


@dataclass(frozen=True, eq=False)
class _Primal:
    inverse: Floats

    def scores_of(self, baskets: Baskets) -> Floats:
        return _scores(baskets, np.asarray(baskets @ self.inverse), np.diag(self.inverse))


@dataclass(frozen=True, eq=False)
class _Dual:
    """X, (X X' + ridge I)^-1 X, the diagonal of P, and the ridge."""

    x: Floats
    solved: Floats
    diagonal: Floats
    ridge: float

    def scores_of(self, baskets: Baskets) -> Floats:
        product = (baskets.toarray() - (baskets @ self.x.T) @ self.solved) / self.ridge
        return _scores(baskets, product, self.diagonal)


def _dual(x: Floats, ridge: float) -> tuple[Floats, Floats, Floats, float]:
    solved = np.linalg.solve(x @ x.T + ridge * np.eye(len(x)), x)
    return x, np.asarray(solved, dtype=np.float64), (1 - np.einsum("ui,ui->i", x, solved)) / ridge, ridge


def _scores(baskets: Baskets, product: Floats, diagonal: Floats) -> Floats:
    return np.asarray(baskets.toarray() - product / diagonal)
