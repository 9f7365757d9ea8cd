"""Learners people use, each with its library's own defaults: one rating table in, a predictor out.

    surprise-svd            Surprise's SVD (Funk's factorisation, 100 factors, 20 epochs)
    item-knn                item-based neighbours on what biases leave over
    als                     explicit ALS, rank and ridge chosen on held-back ratings of the same table
    neural-cf               embeddings and a small perceptron (`neural.py`)
    implicit-confidence     implicit's ALS, a rating counts with confidence 1 + 40 (r - low) / width (Hu et al. 2008)
    implicit-liked          implicit's ALS on the ratings at or above the relevance threshold alone
    constant, bias          the yardsticks
    mf-...                  the paper's factorisation, under each reading of how it was trained

A table of released values is taken for ratings, as somebody would who got the file and nothing else. Values may lie
between the levels of the scale. Rating predictors are measured by RMSE, the implicit ones by NDCG@10.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

import numpy as np
from scipy import sparse
from threadpoolctl import threadpool_limits

from dpsr.arrays import Floats
from dpsr.errors import ParameterError
from dpsr.evaluate.baselines import ALS, Baseline, Bias, Constant, Fitted, ItemKNN
from dpsr.evaluate.baselines.base import Clipped
from dpsr.evaluate.baselines.factorisation import TRAINING_CHOICES
from dpsr.evaluate.metrics.ranking import Predictor
from dpsr.evaluate.metrics.scores import relevance_threshold
from dpsr.types import Mask, Scale

CONFIDENCE = 40.0
"""Hu, Koren and Volinsky's alpha."""


@dataclass(frozen=True, eq=False)
class RatingTable:
    """What a learner gets: a mask, one value per rating, the scale. Raw or released, it cannot tell."""

    mask: Mask
    values: Floats
    scale: Scale


Learner = Callable[[RatingTable, int], Predictor]


def surprise_svd(table: RatingTable, seed: int) -> Predictor:
    """Surprise's SVD with its defaults, on codes instead of ids."""
    surprise = needed("surprise", "scikit-surprise")
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
    seen_u, seen_j = table.mask.user_counts > 0, table.mask.item_counts > 0
    mean = float(known.global_mean)
    return Clipped(Fitted(mean, mean, model.bu, model.bi, model.pu, model.qi, seen_u, seen_j), table.scale)


def item_knn(table: RatingTable, seed: int) -> Predictor:
    """Neighbours of the same kind as the method without privacy."""
    return Clipped(ItemKNN(random_state=seed).fit(table.mask, table.values, table.scale), table.scale)


def _baseline(model: Callable[[int], Baseline]) -> Learner:
    def learn(table: RatingTable, seed: int) -> Predictor:
        return model(seed).fit(table.mask, table.values, table.scale)

    return learn


def _papers_factorisation(choice: str) -> Learner:
    """The paper's factorisation under one reading of how it was trained."""
    return _baseline(lambda seed: replace(TRAINING_CHOICES[choice].factorisation, random_state=seed))


def neural_cf(table: RatingTable, seed: int) -> Predictor:
    """PyTorch, where it is installed."""
    needed("torch", "torch")
    from dpsr.evaluate.downstream.neural import train

    return train(table, seed)


def implicit_confidence(table: RatingTable, seed: int) -> Predictor:
    """Every rated item was met; how much it counts grows with the rating."""
    return _implicit(table, confidence_of_heights(table), seed)


def implicit_liked(table: RatingTable, seed: int) -> Predictor:
    """Only what was liked is shown to the learner."""
    return _implicit(table, confidence_of_liked(table), seed)


def confidence_of_heights(table: RatingTable) -> Floats:
    """1 + 40 times the height above the bottom of the scale."""
    return np.asarray(1 + CONFIDENCE * (table.values - table.scale.low) / table.scale.width)


def confidence_of_liked(table: RatingTable) -> Floats:
    """40 for what was liked, nothing for the rest."""
    return np.where(table.values >= relevance_threshold(table.scale), CONFIDENCE, 0.0)


def _implicit(table: RatingTable, confidence: Floats, seed: int) -> Predictor:
    library = needed("implicit.als", "implicit")
    places = table.mask.items.copy(), table.mask.indptr.copy()  # masks are read-only, and zeros are taken out below
    matrix = sparse.csr_matrix((confidence.astype(np.float32), *places), table.mask.shape)
    matrix.eliminate_zeros()
    with threadpool_limits(1, "blas"):  # implicit brings threads of its own, and warns of a second pool
        model = library.AlternatingLeastSquares(factors=64, random_state=seed, num_threads=1)
        model.fit(matrix, show_progress=False)
    m, n = table.mask.shape
    left, right = (np.asarray(side, dtype=np.float64) for side in (model.user_factors, model.item_factors))
    everyone = np.ones(m, dtype=np.bool_), np.ones(n, dtype=np.bool_)
    return Clipped(Fitted(0.0, 0.0, np.zeros(m), np.zeros(n), left, right, *everyone), table.scale)


def needed(module: str, package: str) -> Any:
    """A library that the core does without."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ParameterError(
            f"this learner needs {package}, which is not installed. Install dpsr[peers,torch]."
        ) from error


LEARNERS: dict[str, Learner] = {
    "surprise-svd": surprise_svd,
    "item-knn": item_knn,
    "als": _baseline(lambda seed: ALS(random_state=seed)),
    "neural-cf": neural_cf,
    "implicit-confidence": implicit_confidence,
    "implicit-liked": implicit_liked,
    "constant": _baseline(lambda _: Constant()),
    "bias": _baseline(lambda seed: Bias(random_state=seed)),
    **{f"mf-{choice}": _papers_factorisation(choice) for choice in TRAINING_CHOICES},
}
RANKS_ONLY = frozenset({"implicit-confidence", "implicit-liked"})
