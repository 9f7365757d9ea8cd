"""Learners people use, each with its library's own defaults: one rating table in, a predictor out.

    surprise-svd            Surprise's SVD (Funk's factorisation, 100 factors, 20 epochs)
    item-knn                item-based neighbours on what biases leave over
    als                     explicit ALS, rank and ridge chosen on held-back ratings of the same table
    neural-cf               embeddings and a small perceptron (`neural.py`)
    implicit-confidence     implicit's ALS, a rating counts with confidence 1 + 40 (r - low) / width (Hu et al. 2008)
    implicit-liked          implicit's ALS on the ratings at or above the relevance threshold alone

A table of released values is taken for ratings, as somebody would who got the file and nothing else. Values may lie
between the levels of the scale. Rating predictors are measured by RMSE, the implicit ones by NDCG@10.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, cast

import numpy as np
from scipy import sparse
from threadpoolctl import threadpool_limits

from dpsr.arrays import Floats, Ints
from dpsr.errors import ParameterError
from dpsr.evaluate.baselines import ALS
from dpsr.evaluate.ranking import Predictor
from dpsr.evaluate.scores import relevance_threshold
from dpsr.types import Mask, Scale
from dpsr.types.raw import RawRatings

CONFIDENCE = 40.0
"""Hu, Koren and Volinsky's alpha."""


@dataclass(frozen=True, eq=False)
class RatingTable:
    """What a learner gets: a mask, one value per rating, the scale. Raw or released, it cannot tell."""

    mask: Mask
    values: Floats
    scale: Scale


Learner = Callable[[RatingTable, int], Predictor]


@dataclass(frozen=True, eq=False)
class Factors:
    """offset + b_u + c_j + P_u . Q_j; strangers (-1) get what is left without them."""

    offset: float
    user_bias: Floats
    item_bias: Floats
    left: Floats
    right: Floats
    scale: Scale

    def predict(self, users: Ints, items: Ints) -> Floats:
        """Inside the scale."""
        u, j = np.broadcast_arrays(users, items)
        known = (u >= 0) & (j >= 0)
        product = np.where(known, np.einsum("rd,rd->r", self.left[u], self.right[j]), 0.0)
        bias = np.where(u >= 0, self.user_bias[u], 0.0) + np.where(j >= 0, self.item_bias[j], 0.0)
        return self.scale.clip(self.offset + bias + product)

    def scores(self, user: int) -> Floats:
        """Unclipped."""
        return np.asarray(self.offset + self.item_bias + self.right @ self.left[user])


def surprise_svd(table: RatingTable, seed: int) -> Predictor:
    """Surprise's SVD with its defaults, on codes instead of ids."""
    surprise = _library("surprise", "scikit-surprise")
    by_user, by_item = defaultdict(list), defaultdict(list)
    for u, j, r in zip(table.mask.users.tolist(), table.mask.items.tolist(), table.values.tolist(), strict=True):
        by_user[u].append((j, r))
        by_item[j].append((u, r))
    m, n = table.mask.shape
    ends = (table.scale.low, table.scale.high)
    known = surprise.Trainset(
        by_user, by_item, m, n, len(table.values), ends, {u: u for u in range(m)}, {j: j for j in range(n)}
    )
    model = surprise.SVD(random_state=seed).fit(known)
    seen_u, seen_j = table.mask.user_counts > 0, table.mask.item_counts > 0  # Surprise ignores the factors of strangers
    left, right = model.pu * seen_u[:, None], model.qi * seen_j[:, None]
    return Factors(known.global_mean, model.bu * seen_u, model.bi * seen_j, left, right, table.scale)


def item_knn(table: RatingTable, seed: int) -> Predictor:
    """Neighbours of the same kind as the benchmark's method without privacy."""
    from dpsr.evaluate.peers.item_knn import ItemKNN

    found = ItemKNN(random_state=seed).fit(cast(RawRatings, table))  # it reads mask, values and scale, nothing else
    return Clipped(found, table.scale)


@dataclass(frozen=True, eq=False)
class Clipped:
    """A predictor kept inside the scale."""

    inner: Predictor
    scale: Scale

    def predict(self, users: Ints, items: Ints) -> Floats:
        """Inside the scale."""
        return self.scale.clip(self.inner.predict(users, items))

    def scores(self, user: int) -> Floats:
        """As the predictor has them."""
        return self.inner.scores(user)


def explicit_als(table: RatingTable, seed: int) -> Predictor:
    """Tuned on a held-back part of the same table."""
    return ALS(random_state=seed).fit(table.mask, table.values, table.scale)


def neural_cf(table: RatingTable, seed: int) -> Predictor:
    """PyTorch, where it is installed."""
    _library("torch", "torch")
    from dpsr.evaluate.downstream.neural import train

    return train(table, seed)


def implicit_confidence(table: RatingTable, seed: int) -> Predictor:
    """Every rated item was met; how much it counts grows with the rating."""
    height = (table.values - table.scale.low) / table.scale.width
    return _implicit(table, 1 + CONFIDENCE * height, seed)


def implicit_liked(table: RatingTable, seed: int) -> Predictor:
    """Only what was liked is shown to the learner."""
    liked = table.values >= relevance_threshold(table.scale)
    return _implicit(table, np.where(liked, CONFIDENCE, 0.0), seed)


def _implicit(table: RatingTable, confidence: Floats, seed: int) -> Predictor:
    library = _library("implicit.als", "implicit")
    places = table.mask.items.copy(), table.mask.indptr.copy()  # masks are read-only, and zeros are taken out below
    matrix = sparse.csr_matrix((confidence.astype(np.float32), *places), table.mask.shape)
    matrix.eliminate_zeros()
    with threadpool_limits(1, "blas"):  # implicit brings threads of its own, and warns of a second pool
        model = library.AlternatingLeastSquares(factors=64, random_state=seed, num_threads=1)
        model.fit(matrix, show_progress=False)
    m, n = table.mask.shape
    left, right = (np.asarray(side, dtype=np.float64) for side in (model.user_factors, model.item_factors))
    return Factors(0.0, np.zeros(m), np.zeros(n), left, right, table.scale)


def _library(module: str, package: str) -> Any:
    try:
        return import_module(module)
    except ImportError as error:
        raise ParameterError(
            f"this learner needs {package}, which is not installed. Install dpsr[peers,torch]."
        ) from error


LEARNERS: dict[str, Learner] = {
    "surprise-svd": surprise_svd,
    "item-knn": item_knn,
    "als": explicit_als,
    "neural-cf": neural_cf,
    "implicit-confidence": implicit_confidence,
    "implicit-liked": implicit_liked,
}
RANKS_ONLY = frozenset({"implicit-confidence", "implicit-liked"})
