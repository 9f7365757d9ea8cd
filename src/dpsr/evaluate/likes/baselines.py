"""List models without privacy, their settings chosen on people held back from training.

popularity   how many people met an item
item_knn     cosine of items, shrunk, the nearest neighbours only
ease         the closed-form item-item model with a zero diagonal
ials         implicit alternating least squares
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import TypeVar

import numpy as np
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

from dpsr.arrays import Floats, Ints
from dpsr.data import Interactions
from dpsr.errors import DataError
from dpsr.evaluate.downstream.learners import needed
from dpsr.evaluate.likes.contract import Baskets, Factors, ItemToItem, ListModel, SameForAll, baskets_of
from dpsr.evaluate.likes.protocol import LikesSplit, score_lists
from dpsr.types import Mask

Setting = TypeVar("Setting")

VALIDATION = 0.1
"""Share of the training people on whom settings are chosen."""


def best_setting(
    likes: Interactions, seed: int, settings: Sequence[Setting], fit: Callable[[Interactions, Setting], ListModel]
) -> Setting:
    """The first of the best settings; the first of all where too few people are there to choose on."""
    try:
        split = LikesSplit(*likes.hold_out_people(VALIDATION, seed=seed))
    except DataError:
        return settings[0]
    return max(settings, key=lambda one: score_lists(fit(split.train, one), split).means["recall_at_20"])


def popularity(likes: Interactions, _: int) -> SameForAll:
    """Items by how many people met them."""
    return SameForAll(likes.mask.item_counts.astype(np.float64))


NEIGHBOURS, SHRINKAGE = (50, 200), (0.0, 20.0)


def item_knn(likes: Interactions, seed: int) -> ItemToItem:
    """Items like those a person has: cosine of presence, shrunk, each item's nearest neighbours (Sarwar et al. 2001).

        s_ij = n_ij / (sqrt(n_i n_j) + shrinkage),     score_j = sum over the person's items i near j of s_ij

    n_ij counts the people who met both. Neighbours and shrinkage are chosen on people held back.
    """
    settings = list(product(NEIGHBOURS, SHRINKAGE))
    return neighbours(likes, best_setting(likes, seed, settings, neighbours))


def neighbours(likes: Interactions, setting: tuple[int, float]) -> ItemToItem:
    """The model at one setting: how many neighbours an item has, and the shrinkage."""
    k, shrinkage = setting
    both, root = _met_together(likes.mask), np.sqrt(likes.mask.item_counts)
    rows = np.repeat(np.arange(likes.n_items), np.diff(both.indptr))
    near = both.data / (root[rows] * root[both.indices] + shrinkage)
    kept = np.ones(len(near), dtype=np.bool_)
    for item in np.flatnonzero(np.diff(both.indptr) > k):
        row = slice(both.indptr[item], both.indptr[item + 1])
        kept[row] = near[row] >= np.partition(near[row], -k)[-k]
    weights = sp.csr_matrix((near[kept], (both.indices[kept], rows[kept])), shape=both.shape)
    return ItemToItem(weights)


@lru_cache(maxsize=2)
def _met_together(mask: Mask) -> sp.csr_matrix:
    """How many people met both of two different items."""
    baskets = baskets_of(mask).astype(np.float32)
    both = (baskets.T @ baskets).tocsr()
    both.setdiag(0)
    both.eliminate_zeros()
    return both


EASE_RIDGES = (30.0, 100.0, 300.0, 1000.0)
LARGEST = 3000
"""The largest matrix that is inverted."""


def ease(likes: Interactions, seed: int) -> ListModel:
    """EASE (Steck 2019): the linear item-item model with a zero diagonal, in closed form.

        B = argmin |X - X B|^2 + ridge |B|^2,  diag B = 0   =>   B_ij = -P_ij / P_jj,    P = (X'X + ridge I)^-1,

    so that a basket x scores item j with x_j - (x P)_j / P_jj. P is never formed where people are fewer than items:

        x P = (x - x X' (X X' + ridge I)^-1 X) / ridge.

    The ridge is chosen on people held back. Known gap: where people and items are both more than `LARGEST`, only so
    many of the most popular items are modelled and the others follow by popularity.
    """
    return closed_form(likes, best_setting(likes, seed, EASE_RIDGES, closed_form))


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


CONFIDENCE, IALS_RIDGES = (2.0, 10.0), (1.0, 10.0, 50.0)
FACTORS, ITERATIONS = 64, 15


def ials(likes: Interactions, seed: int) -> Factors:
    """Implicit alternating least squares (Hu, Koren and Volinsky 2008), fitted by the library `implicit`.

    Confidence and ridge are chosen on people held back.
    """
    settings = list(product(CONFIDENCE, IALS_RIDGES))
    return alternating(likes, best_setting(likes, seed, settings, alternating), seed)


def alternating(likes: Interactions, setting: tuple[float, float], seed: int = 0) -> Factors:
    """The model at one setting: what presence weighs besides absence, and the ridge."""
    confidence, ridge = setting
    library = needed("implicit.cpu.als", "implicit")
    with threadpool_limits(1, "blas"):  # implicit brings threads of its own, and warns of a second pool
        model = library.AlternatingLeastSquares(
            factors=FACTORS, regularization=ridge, alpha=confidence, iterations=ITERATIONS, random_state=seed,
            num_threads=1,
        )  # fmt: skip
        model.fit(baskets_of(likes.mask).astype(np.float32), show_progress=False)
    return Factors(np.asarray(model.item_factors, dtype=np.float64), confidence, 1.0, ridge)
