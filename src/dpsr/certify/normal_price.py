r"""Exact prices of Gaussian noise: the trade-off of a shift by mu, with directed rounding.

One statistic of L2 sensitivity D with normal noise of variance s^2 tells two neighbours apart no better than N(0, 1)
and N(mu, 1), mu = D / s; several of them no better than mu^2 = sum (D_i / s_i)^2 (Gaussian differential privacy; Dong,
Roth and Su 2022).

**Noise that is chosen after answers.** Where statistics and their noise follow from earlier answers, mu_i does, too.
If sum mu_i^2 <= M on every course of answers, two neighbours are told apart no better than by mu^2 = M (Smith and
Thakurta 2022; Koskela, Tobaben and Honkela 2023). For let d_i, |d_i| <= D_i, be how far apart they are in question i,
v_i = |d_i|^2 / s_i^2, and let one more question that reads nothing spend what is left, so that V = sum v_i = M. Under
either neighbour ln P/Q is S +- V / 2, S = sum sqrt(v_i) Z_i with Z_i standard normal whatever was answered before v_i
was chosen. So E exp(t sum_{i<=k} sqrt(v_i) Z_i - t^2/2 sum_{i<=k} v_i) = 1 for all k, hence E exp(t S) = exp(t^2 M /
2): S is N(0, M), and ln P/Q is what N(0, 1) and N(sqrt M, 1) have. What one course leaves unspent does not count.

A test of N(0, 1) against N(mu, 1) has

    delta(epsilon) = Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu)

(Balle and Wang 2018), which is decreasing in epsilon. Rounding the noisy statistic to an integer is post-processing.

mu^2 is a fraction of integers. Phi comes from the series

    Phi(x) = 1/2 + phi(x) (x + x^3/3 + x^5/(3 5) + x^7/(3 5 7) + ...),     x >= 0,

whose terms are all positive: what is left out after a term is below term * q / (1 - q) once consecutive terms shrink by
q < 1. It is evaluated in decimal arithmetic with digits to spare, and every result is widened by far more than rounding
can have moved it, to the side that promises less.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Context, Decimal, getcontext, localcontext
from fractions import Fraction
from functools import lru_cache
from math import erfc, exp, inf, sqrt

from dpsr.certify.amounts import float_up
from dpsr.errors import PrivacyError

SAMPLER_SLACK = 2.0**-80
"""What the sampler of `privacy.noise` may be off, added to delta."""

VARIANCE_BITS = 104
"""Variances have at most so many bits: then noise fits 63 of them with two thousand deviations to spare."""

_LEAST = 1e-10
"""Of mu^2: every question has its noise from here on."""

_SHY = 1e-9
"""Part of mu^2 that is never spent, so that rounding up the price cannot exceed what was asked."""

_REMEMBERED = 256
"""Budgets: a certificate asks for its own whenever it is looked at."""

_DIGITS = 40
"""Digits of a result, beside those that cancel."""

_MARGIN = 1e-12
"""Far above what a few roundings of floats do."""

_FARTHEST = 38.5
"""Beyond so many deviations a tail is below the smallest float, 5e-324: it is 1.4e-324 there."""

_SLACK = Decimal(10) ** (5 - _DIGITS)
"""Far above what rounding does to a sum of a few thousand terms with `_DIGITS` digits and more."""


def gaussian_delta(squared_mu: Fraction, epsilon: float) -> float:
    """delta at `epsilon` of a Gaussian mechanism with this mu^2, rounded up.

    >>> f"{gaussian_delta(Fraction(1), 1.0):.6f}"
    '0.126937'
    """
    if squared_mu == 0:
        return 0.0
    rough = sqrt(float(squared_mu))
    if epsilon / rough - rough / 2 > _FARTHEST:
        return 5e-324
    cancelled = int(0.5 * (epsilon / rough + rough / 2) ** 2) + 10
    with localcontext(Context(prec=_DIGITS + cancelled)):
        mu = _decimal(squared_mu).sqrt()
        shift = Decimal(epsilon) / mu
        bought = _phi(mu / 2 - shift)
        sold = Decimal(epsilon).exp() * _phi(-mu / 2 - shift)
        delta = bought - sold
        return min(float_up(max(delta, Decimal(0)) * (1 + _SLACK) + bought * _SLACK), 1.0)


def gaussian_epsilon(squared_mu: Fraction, delta: float) -> float:
    """The smallest epsilon, rounded up, at which `gaussian_delta` is at most `delta`; zero if it is so everywhere.

    >>> f"{gaussian_epsilon(Fraction(1), 1e-5):.4f}"
    '4.3772'
    """
    if not delta > 0:
        return inf
    if gaussian_delta(squared_mu, 0.0) <= delta:
        return 0.0
    mu, margin = sqrt(float(squared_mu)), 1e-12
    guess = _bisected(lambda epsilon: _rough_delta(mu, epsilon) <= delta, 0.0, mu * mu / 2 + _FARTHEST * mu)[1]
    while gaussian_delta(squared_mu, guess * (1 + margin)) > delta:
        margin *= 4
    return guess * (1 + margin)


@lru_cache(_REMEMBERED)
def affordable_squared_mu(epsilon: float, delta: float) -> Fraction:
    """The largest mu^2, but for a trace, that is (epsilon, delta)-private; the sampler's slack is inside delta.

    >>> f"{float(affordable_squared_mu(4.3773, 1e-5)):.4f}"
    '1.0000'
    """
    room = Fraction(delta) - Fraction(SAMPLER_SLACK)
    if room <= 0:
        raise PrivacyError(f"delta = {delta:g} is less than the sampler of normal noise can promise. Use a larger one.")
    mu = _bisected(lambda mu: _rough_delta(mu, epsilon) > delta, 0.0, sqrt(2 * epsilon) + 3)[0]
    squared, shy = Fraction(mu) ** 2, Fraction(_SHY)
    while shy < 1 and gaussian_delta(squared * (1 - shy), epsilon) > room:
        shy *= 4
    if squared < _LEAST or 2 * shy >= 1:  # or delta is hardly more than the sampler's own
        raise PrivacyError(
            f"epsilon = {epsilon:g} and delta = {delta:g} are so small together that no noise is large enough. Use a "
            "larger epsilon or a larger delta."
        )
    return squared * (1 - 2 * shy)


@lru_cache(_REMEMBERED)
def chance_beyond(epsilon: float, delta: float) -> float:
    """The chance, at most, that answers of this price change somebody's odds by more than a factor e^epsilon.

    It is more than delta, which says how far probabilities may lie above e^epsilon times others, and not how often a
    ratio does. Whatever answers decide about noise, ln P/Q is a Brownian motion of drift 1/2, observed after a time of
    at most mu^2. It leaves [-epsilon, epsilon] before with the chance (reflection principle)

        (1 + e^-epsilon) (Phi(mu/2 - epsilon/mu) + e^epsilon Phi(-mu/2 - epsilon/mu));

    delta is added for names and for the sampler. Rounded up.

    >>> f"{chance_beyond(1.0, 1e-5):.1e}"
    '4.4e-04'
    """
    mu = sqrt(affordable_squared_mu(epsilon, delta)) * (1 + _MARGIN)
    near, far = (epsilon / mu + sign * mu / 2 for sign in (-1, 1))
    tails = tail_up(near - _MARGIN * (1 + abs(near))) + exp(epsilon) * tail_up(far - _MARGIN * (1 + far))
    return min((1 + exp(-epsilon)) * tails * (1 + _MARGIN) + delta, 1.0)


def _bisected(holds: Callable[[float], bool], low: float, high: float) -> tuple[float, float]:
    """Neighbouring numbers, the second of which satisfies a condition that the first does not."""
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return low, high


def _rough_delta(mu: float, epsilon: float) -> float:
    """`gaussian_delta` in floating point: a start that the exact arithmetic then widens."""
    return _tail(epsilon / mu - mu / 2) - exp(min(epsilon, 700.0)) * _tail(epsilon / mu + mu / 2)


def _tail(x: float) -> float:
    return erfc(x / sqrt(2)) / 2


def tail_up(x: float) -> float:
    """P[N(0, 1) > x], rounded up.

    >>> f"{tail_up(3.0):.6f}"
    '0.001350'
    """
    if x > _FARTHEST:
        return 5e-324
    with localcontext(Context(prec=_DIGITS + int(x * x / 4) + 10)):
        return min(float_up(_phi(-Decimal(x)) * (1 + _SLACK)), 1.0)


def _phi(x: Decimal) -> Decimal:
    """Phi(x) in the present context; its error is far below the slack as long as the context has digits to spare."""
    if x < 0:
        return 1 - _phi(-x)
    density = (-x * x / 2).exp() / _root_of_two_pi()
    term = total = x
    odd = 1
    square = x * x
    negligible = Decimal(10) ** -_precision()
    while True:
        odd += 2
        term = term * square / odd
        total += term
        if odd > square + 1 and term * square <= (odd - square) * total * negligible:
            return Decimal("0.5") + density * total


def _precision() -> int:
    return getcontext().prec


@lru_cache(maxsize=64)
def _root_of_two_pi_at(digits: int) -> Decimal:
    """sqrt(2 pi): pi by Machin's formula, 16 arctan(1/5) - 4 arctan(1/239)."""
    with localcontext(Context(prec=digits + 10)):
        pi = 16 * _arctan_of_inverse(5) - 4 * _arctan_of_inverse(239)
        return (2 * pi).sqrt()


def _root_of_two_pi() -> Decimal:
    return _root_of_two_pi_at(_precision())


def _arctan_of_inverse(n: int) -> Decimal:
    power = total = Decimal(1) / n
    k, sign = 1, -1
    while power > Decimal(10) ** -(_precision() + 2):
        power /= n * n
        k += 2
        total += sign * power / k
        sign = -sign
    return total


def _decimal(fraction: Fraction) -> Decimal:
    return Decimal(fraction.numerator) / Decimal(fraction.denominator)
