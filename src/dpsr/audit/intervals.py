"""Exact intervals for what was counted, and the lower bounds on epsilon that follow.

Of n independent trials h hit an event of unknown probability p. With probability at least 1 - alpha each

    p >= Beta^-1(alpha; h, n-h+1)        p <= Beta^-1(1-alpha; h+1, n-h)            (Clopper and Pearson 1934)

whatever p is: no normal approximation. If an event has probability p under one data set and q under a neighbour, then
(epsilon, delta)-privacy says p <= e^epsilon q + delta, so epsilon >= log((p - delta) / q).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv

from dpsr.arrays import Floats


def at_least(hits: npt.ArrayLike, trials: npt.ArrayLike, alpha: float) -> Floats:
    """The lower end of a one-sided exact interval for a probability."""
    h, n = np.asarray(hits, dtype=np.float64), np.asarray(trials, dtype=np.float64)
    return np.where(h > 0, betaincinv(np.maximum(h, 1), n - h + 1, alpha), 0.0)


def at_most(hits: npt.ArrayLike, trials: npt.ArrayLike, alpha: float) -> Floats:
    """The upper end of a one-sided exact interval for a probability."""
    h, n = np.asarray(hits, dtype=np.float64), np.asarray(trials, dtype=np.float64)
    return np.where(h < n, betaincinv(h + 1, np.maximum(n - h, 1), 1 - alpha), 1.0)


def epsilon_at_least(
    hits: npt.ArrayLike, others: npt.ArrayLike, trials: int, alpha: float, delta: float = 0.0
) -> Floats:
    """Lower bounds on epsilon from hits under one data set and under its neighbour; each holds at 1 - alpha."""
    p, q = at_least(hits, trials, alpha / 2), at_most(others, trials, alpha / 2)
    with np.errstate(divide="ignore"):
        return np.maximum(np.log(np.maximum(p - delta, 0)) - np.log(q), 0.0)


def epsilon_of_guesses(correct: npt.ArrayLike, guesses: npt.ArrayLike, alpha: float) -> Floats:
    """The least epsilon at which so many correct guesses are not surprising: the log-odds of the lower end."""
    p = at_least(correct, guesses, alpha)
    return np.where(p > 0.5, np.log(np.maximum(p, 0.5)) - np.log1p(-np.minimum(p, 1 - 1e-16)), 0.0)
