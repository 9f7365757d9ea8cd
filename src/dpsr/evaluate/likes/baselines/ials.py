"""Implicit alternating least squares (Hu, Koren and Volinsky 2008), fitted by the library `implicit`."""

from __future__ import annotations

from itertools import product

import numpy as np
from threadpoolctl import threadpool_limits

from dpsr.data import Interactions
from dpsr.evaluate.downstream.learners import needed
from dpsr.evaluate.likes.baselines.tuning import best_setting
from dpsr.evaluate.likes.contract import baskets_of
from dpsr.evaluate.likes.folding import Factors

CONFIDENCE, RIDGES = (2.0, 10.0), (1.0, 10.0, 50.0)
FACTORS, ITERATIONS = 64, 15


def ials(likes: Interactions, seed: int) -> Factors:
    """Confidence and ridge chosen on people held back."""
    settings = list(product(CONFIDENCE, RIDGES))
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
