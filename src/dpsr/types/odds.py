"""Epsilon in words a person can weigh: odds, guesses, and how often a guess is right.

If a release is epsilon-private, whoever gave a statement about one rating the probability p before they saw the release
gives it afterwards at most

    p e^epsilon / (1 - p + p e^epsilon),                     odds times e^epsilon, and at least the same with -epsilon.

With k equally likely levels the best guess was right once in k times and is right at most e^epsilon / (e^epsilon + k-1)
of the time after. k ratings of one person are protected together at k epsilon. With a delta all this may fail with
probability delta.
"""

from __future__ import annotations

from math import exp, inf

import numpy as np
import numpy.typing as npt

_OVERFLOW = 700.0
"""e^epsilon no longer fits a float beyond this; certainty is then a matter of 300 decimals."""


def odds_factor(epsilon: float) -> float:
    """By how much the odds of anything about one rating can change.

    >>> round(odds_factor(1.0), 3)
    2.718
    """
    return exp(epsilon) if epsilon < _OVERFLOW else inf


def at_most(prior: float, epsilon: float) -> float:
    """The most that a belief of `prior` can become.

    >>> f"{at_most(0.5, 1.0):.2f} {at_most(0.2, 1.0):.2f} {at_most(0.5, 1e9):.2f}"
    '0.73 0.40 1.00'
    """
    return prior / (prior + (1 - prior) * exp(-min(epsilon, _OVERFLOW)))


def at_least(prior: float, epsilon: float) -> float:
    """The least that a belief of `prior` can become: what the opposite can at most become, taken from one."""
    return 1 - at_most(1 - prior, epsilon)


def guess_right(table: npt.ArrayLike, prior: npt.ArrayLike) -> float:
    """How often the best guess of a level is right once a symbol is seen: sum over symbols of max_x prior_x P[y | x].

    `table` may be integer weights; rows are normalised by their exact sums.
    """
    weights = [[int(cell) for cell in row] for row in np.asarray(table)]
    p = np.array([[cell / sum(row) for cell in row] for row in weights])
    return float((np.asarray(prior, dtype=np.float64)[:, None] * p).max(axis=0).sum())
