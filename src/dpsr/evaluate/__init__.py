"""Accuracy, baselines, peers, attacks and the studies made of them: the curator's side.

Everything here reads raw values, so its numbers are **not private**; do not publish them beside a release.

    metrics      errors, lists, tests of differences      sets        rating sets with declared scales
    baselines    models without privacy                   protocol    how splits are made and what is scored
    peers        private methods of the literature        registry    every method by name, under one contract
    pipelines    ours, the paper's, and their ablations   measure     one job, start to end
    downstream   learners trained on released tables      runner      jobs, processes, what is kept
    attacks      what an attacker reads off an output     report      tables, charts, comparisons
    likes        methods of lists from interactions, with protocols, baselines and peers of their own
    studies      the paper's experiment, the frontier, its ablation, the benchmark, lists from likes
"""

from dpsr.evaluate.baselines import ALS, MF, Bias, Constant
from dpsr.evaluate.metrics.accuracy import mae, ndcg_at_k, precision_at_k, rmse
from dpsr.evaluate.metrics.scores import Scores, relevance_threshold, score

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
