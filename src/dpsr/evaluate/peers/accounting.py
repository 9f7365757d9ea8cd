"""What receipts of continuous noise come to: composition of `Price`s into one (epsilon, delta).

    pure prices add up:                     epsilon = sum of epsilon_i
    Gaussian noise without sampling:        mu^2 = sum of 1 / multiplier_i^2, exactly (Balle and Wang 2018)
                                            delta = Phi(mu/2 - eps/mu) - e^eps Phi(-mu/2 - eps/mu)
    Poisson-sampled Gaussian noise:         privacy loss distributions of dp-accounting, which round up

Calibration goes the other way and may err on the private side only: it ends with the price of what it found.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import cache
from math import exp, log, sqrt
from typing import Any

from scipy.optimize import brentq
from scipy.special import log_ndtr, ndtr

from dpsr.errors import PrivacyError
from dpsr.evaluate.peers.floating import Price
from dpsr.privacy.channels.additive import analytic_sigma

_CLOSE = 1e-3
"""Calibration under sampling stops when the multiplier is this close above the smallest one, relatively."""

Releases = tuple[tuple[float, float, int], ...]
"""Gaussian releases: noise multiplier, Poisson sampling rate, how many."""


def epsilon_of(prices: Iterable[Price], delta: float) -> float:
    """The epsilon at `delta` of everything drawn. Pure noise does not use delta."""
    counts = Counter(prices)
    pure = sum(n * price.epsilon for price, n in counts.items() if price.mechanism != "gaussian")
    gaussian = [(p.multiplier, p.sampling, n) for p, n in counts.items() if p.mechanism == "gaussian"]
    if not gaussian:
        return float(pure)
    if all(sampling == 1 for _, sampling, _ in gaussian):
        return float(pure) + gaussian_epsilon(sqrt(sum(n / z**2 for z, _, n in gaussian)), delta)
    return float(pure) + sampled_epsilon(tuple(gaussian), delta)


def gaussian_epsilon(mu: float, delta: float) -> float:
    """The least epsilon at which Gaussian noise of multiplier 1/mu is (epsilon, delta)-DP."""

    def excess(epsilon: float) -> float:
        return float(ndtr(mu / 2 - epsilon / mu) - exp(epsilon + log_ndtr(-mu / 2 - epsilon / mu))) - delta

    if excess(0.0) <= 0:
        return 0.0
    return float(brentq(excess, 0.0, mu**2 / 2 + 40 * mu, xtol=1e-13, rtol=1e-13)) * (1 + 1e-12)


def gaussian_multiplier(epsilon: float, delta: float, *, share: float = 1.0) -> float:
    """The noise multiplier of a statistic that takes `share` of the budget; shares add up to one.

    Budgets of Gaussian noise add up in 1 / multiplier^2, so half of it is a multiplier sqrt(2) times as large.
    """
    return analytic_sigma(epsilon, delta) / sqrt(share) * (1 + 1e-9)


@cache
def sampled_epsilon(releases: Releases, delta: float) -> float:
    """The price of Gaussian releases, each of a fresh Poisson sample of the records (add or remove one record)."""
    accounting, pld = _dp_accounting()
    accountant = pld.PLDAccountant(value_discretization_interval=_interval(releases))
    for multiplier, sampling, n in releases:
        event = accounting.GaussianDpEvent(multiplier)
        event = event if sampling == 1 else accounting.PoissonSampledDpEvent(sampling, event)
        accountant.compose(event, n)
    return float(accountant.get_epsilon(delta))


@cache
def sampled_multiplier(epsilon: float, delta: float, releases: Releases) -> float:
    """The factor z for which `releases`, their multipliers taken z times, cost at most epsilon and hardly less."""

    def price(log_z: float) -> float:
        return sampled_epsilon(tuple((exp(log_z) * z, q, n) for z, q, n in releases), delta)

    low = high = log(0.25)
    while price(high) > epsilon:
        low, high = high, high + log(4)
    while high - low > _CLOSE:
        middle = (low + high) / 2
        low, high = (middle, high) if price(middle) > epsilon else (low, middle)
    return exp(high)


def _interval(releases: Releases) -> float:
    """A grid of losses fine enough for a single release, whose loss spreads by about q / multiplier, and no finer."""
    return min(1e-2, max(1e-5, min(q / z / sqrt(n) for z, q, n in releases) / 2))


def _dp_accounting() -> tuple[Any, Any]:
    try:
        import dp_accounting
        from dp_accounting import pld
    except ModuleNotFoundError as error:
        raise PrivacyError(
            "sampled Gaussian noise is accounted for by dp-accounting, which is not installed. Install dpsr[peers]."
        ) from error
    return dp_accounting, pld
