"""Denoising after private training, in the spirit of Liu et al. 2021: better estimates from what was already paid for.

Liu et al. improve privately released answers by fitting a structured model to them; the paper cites them for denoising
trained models. Here the structure is that of the factorisation itself. After the DP-SGD of `dp_sgd`, unchanged,

1. the rows of the last half of the steps are averaged: each carries fresh noise, the signal is the same;
2. every column of biases and factors, x_a = signal + noise of variance v_a, known from the noise drawn and the noisy
   counts, is shrunk by empirical Bayes: x_a tau^2 / (tau^2 + v_a), tau^2 = mean(x^2 - v)+ weighted by 1 / v^2, so that
   a column in which nothing stands out from the noise vanishes.

It reads nothing but released values, so the price is that of DP-SGD.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpsr.arrays import Floats
from dpsr.evaluate.peers.dp_sgd import DPSGD, Step
from dpsr.types import Mask


@dataclass
class Denoised(DPSGD):
    """DP-SGD, then averaging and empirical-Bayes shrinkage."""

    name: str = "denoised-dp-mf"

    def _finish(self, history: list[Floats], mask: Mask, step: Step, noise: float) -> Floats:
        rows = np.mean(history[len(history) // 2 :], axis=0)
        variance = (noise * step.rate) ** 2
        m = mask.n_users
        return np.vstack([shrink_columns(rows[:m], variance[:m]), shrink_columns(rows[m:], variance[m:])])


def shrink_columns(rows: Floats, variance: Floats) -> Floats:
    """Each column shrunk towards zero by the share of its variance that is noise."""
    weight = 1 / variance**2
    signal = np.maximum((weight * (rows**2 - variance)).sum(axis=0) / weight.sum(axis=0), 0.0)
    return rows * signal / (signal + variance)
