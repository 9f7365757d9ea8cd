"""Accuracy, baselines and the paper's experiment: the curator's side.

Everything here reads raw values, so its numbers are **not private**; do not publish them beside a release.
"""

from dpsr.evaluate.baselines import ALS, MF, Bias, Constant
from dpsr.evaluate.metrics import mae, ndcg_at_k, precision_at_k, rmse
from dpsr.evaluate.scores import Scores, relevance_threshold, score

__all__ = [
    "ALS",
    "MF",
    "Bias",
    "Constant",
    "Scores",
    "mae",
    "ndcg_at_k",
    "precision_at_k",
    "relevance_threshold",
    "rmse",
    "score",
]
