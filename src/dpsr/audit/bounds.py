r"""Lower bounds on epsilon from what was counted: exact intervals for probabilities, and what follows from them.

Of n independent trials h hit an event of unknown probability p. With probability at least 1 - alpha each

    p >= Beta^-1(alpha; h, n-h+1)        p <= Beta^-1(1-alpha; h+1, n-h)            (Clopper and Pearson 1934)

whatever p is: no normal approximation. If an event has probability p under one data set and q under a neighbour, then
(epsilon, delta)-privacy says p <= e^epsilon q + delta, so epsilon >= log((p - delta) / q).

**Normal noise.** A mechanism that costs mu is at least as hard to tell apart as N(0, 1) and N(mu, 1) (Gaussian
differential privacy), so an event of probability p under one data set and q under a neighbour has

    mu >= Phi^-1(p) - Phi^-1(q),

and with exact intervals for p and q this is a lower bound on mu, hence on epsilon at delta. It is tight at any event:
nothing is lost to the delta, as it is where p <= e^epsilon q + delta is solved for epsilon.

**One run** (Steinke, Nasr and Jagielski 2023, arXiv:2305.08846: Theorem 5.2 in the form of Corollary 5.4, which their
Appendix D computes). m canary people are in the data or not by fair coins; from the output r of the coins are guessed,
and of the others nothing is said. If the mechanism is (epsilon, delta)-private for a person coming or going, then with
W ~ Binomial(r, e^epsilon / (1 + e^epsilon)) and v correct guesses,

    P[correct >= v] <= P[W >= v] + 2 m delta max_i P[v > W >= v - i] / i,      i = 1, 2, ...

The least epsilon at which this is not below alpha is a lower bound at confidence 1 - alpha, whatever the mechanism is.
m counts every canary whose coin is secret, guessed or not; canaries that were revealed to learn how to guess are no
longer secret and not among them (the theorem holds given their coins). r is fixed before those coins are looked at.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv, ndtri
from scipy.stats import binom

from dpsr.arrays import Floats
from dpsr.certify.normal_price import gaussian_epsilon

_MOST_EPSILON = 60.0


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


def mu_at_least(hits: int, trials: int, alarms: int, others: int, alpha: float) -> float:
    """A lower bound on mu at confidence 1 - alpha: `hits` of `trials` with the person, `alarms` of `others` without."""
    p, q = float(at_least(hits, trials, alpha / 2)), float(at_most(alarms, others, alpha / 2))
    return max(float(ndtri(p) - ndtri(q)), 0.0) if p > 0 and q < 1 else 0.0


def epsilon_of_mu(mu: float, delta: float) -> float:
    """The epsilon that a mechanism of this mu has at `delta`."""
    return 0.0 if mu <= 0 else gaussian_epsilon(Fraction(mu) ** 2, delta)


def surprise(correct: int, guesses: int, canaries: int, epsilon: float, delta: float) -> float:
    """How likely, at most, so many correct guesses are under (epsilon, delta)."""
    q = 1 / (1 + np.exp(-epsilon))
    below = np.cumsum(binom.pmf(correct - np.arange(1, correct + 1), guesses, q))
    slope = float((below / np.arange(1, correct + 1)).max(initial=0.0))
    return float(min(binom.sf(correct - 1, guesses, q) + 2 * canaries * delta * slope, 1.0))


def epsilon_of_one_run(correct: int, guesses: int, canaries: int, delta: float, alpha: float) -> float:
    """The largest epsilon that so many correct guesses refute at confidence 1 - alpha."""
    if surprise(correct, guesses, canaries, 0.0, delta) > alpha:
        return 0.0
    low, high = 0.0, _MOST_EPSILON
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if surprise(correct, guesses, canaries, middle, delta) <= alpha else (low, middle)
    return low
