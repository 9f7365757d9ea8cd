"""Continuous noise for experiments, each draw with its price. **For measurement, never for release.**

Floating-point samplers of Laplace and Gaussian noise have gaps in their range that can betray the value underneath
(Mironov 2012), and the streams here are seeded. The peers of the comparison were defined with such noise, so they are
measured with it; a release draws from `channel` and `discrete`, whose arithmetic is exact.

One record moves the statistic by at most `sensitivity` in the norm of the mechanism:

    laplace          values + Lap(b) in every entry, b = sensitivity / epsilon      L1     epsilon
    vector laplace   a row + B, density ~ exp(-|B|_2 / b)                           L2     epsilon, one row per record
    gaussian         values + N(0, s^2) in every entry, s = multiplier sensitivity  L2     by composition
    local report     one bit, or a point of a bounded interval, per person          range  epsilon, whatever the record

`Price` is the receipt: what was drawn, not what was asked for. It is not a certificate, and no ledger takes it.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, inf, isfinite
from typing import Literal, NamedTuple

import numpy as np

from dpsr.arrays import Floats
from dpsr.errors import PrivacyError

Mechanism = Literal["laplace", "vector laplace", "gaussian", "local report"]


@dataclass(frozen=True)
class Price:
    """What one noisy statistic costs.

    `epsilon` is the pure price, infinite for Gaussian noise, which costs what `multiplier` and the Poisson `sampling`
    of the records come to under composition.
    """

    mechanism: Mechanism
    sensitivity: float
    scale: float
    epsilon: float
    sampling: float = 1.0

    @property
    def multiplier(self) -> float:
        """Noise scale in units of the sensitivity."""
        return self.scale / self.sensitivity


class Measured(NamedTuple):
    """Noisy values and what they cost, as one value."""

    values: Floats
    price: Price


def laplace_noise(statistic: Floats, *, sensitivity: float, epsilon: float, rng: np.random.Generator) -> Measured:
    """The statistic with Laplace noise in every entry."""
    scale = _positive(sensitivity, "sensitivity") / _positive(epsilon, "epsilon")
    noisy = statistic + rng.laplace(0.0, scale, np.shape(statistic))
    return Measured(noisy, Price("laplace", sensitivity, scale, epsilon))


def vector_laplace_noise(rows: Floats, *, sensitivity: float, epsilon: float, rng: np.random.Generator) -> Measured:
    """Every row with noise of density ~ exp(-|B|_2 / b): a uniform direction, a Gamma(d) length (Chaudhuri 2011).

    A record may move one row only, by `sensitivity` in Euclidean length.
    """
    scale = _positive(sensitivity, "sensitivity") / _positive(epsilon, "epsilon")
    direction = rng.standard_normal(rows.shape)
    direction /= np.maximum(np.linalg.norm(direction, axis=1, keepdims=True), 1e-300)
    length = rng.gamma(rows.shape[1], scale, (len(rows), 1))
    return Measured(rows + length * direction, Price("vector laplace", sensitivity, scale, epsilon))


def gaussian_noise(
    statistic: Floats, *, sensitivity: float, multiplier: float, rng: np.random.Generator, sampling: float = 1.0
) -> Measured:
    """The statistic with Gaussian noise of standard deviation multiplier * sensitivity in every entry.

    `sampling` is the probability with which each record was let into the statistic, independently of all others.
    """
    scale = _positive(sensitivity, "sensitivity") * _positive(multiplier, "noise multiplier")
    if not 0 < sampling <= 1:
        raise PrivacyError(f"a sampling rate lies above 0 and at most at 1, found {sampling!r}.")
    noisy = statistic + scale * rng.standard_normal(np.shape(statistic))
    return Measured(noisy, Price("gaussian", sensitivity, scale, inf, sampling))


def local_reports(values: Floats, *, epsilon: float, rng: np.random.Generator) -> Measured:
    """One unbiased epsilon-DP report of each person's number in [-1, 1], by the better of two randomisers.

    One bit, +-C with P[+C] = 1/2 + x/(2C), C = (e^eps + 1)/(e^eps - 1) (Duchi et al. 2013), or the piecewise mechanism
    (Wang et al. 2019), whose error vanishes as epsilon grows. The one with the smaller worst-case variance is used.
    """
    _positive(epsilon, "epsilon")
    x = np.clip(values, -1.0, 1.0)
    draw, bound = (_piecewise, piecewise_bound) if _piecewise_is_better(epsilon) else (_one_bit, one_bit_bound)
    return Measured(draw(x, epsilon, rng), Price("local report", 2.0, bound(epsilon), epsilon))


def one_bit_bound(epsilon: float) -> float:
    """C of the one-bit report."""
    return 1.0 / np.tanh(epsilon / 2)


def piecewise_bound(epsilon: float) -> float:
    """The end of the interval that piecewise reports fall in."""
    return 1.0 / np.tanh(epsilon / 4)


def report_variance(epsilon: float) -> float:
    """The variance of a report of the number 0."""
    if not _piecewise_is_better(epsilon):
        return one_bit_bound(epsilon) ** 2
    half = exp(-epsilon / 2)  # powers of e^{-eps/2} do not overflow
    return half * (1 + 3 * half) / (3 * (1 - half) ** 2)


def _piecewise_is_better(epsilon: float) -> bool:
    """Worst-case variances: C^2 for one bit (at x = 0), 4 e^{eps/2} / (3 (e^{eps/2} - 1)^2) for the other (at 1)."""
    half = exp(-epsilon / 2)
    return 4 * half / (3 * (1 - half) ** 2) < one_bit_bound(epsilon) ** 2


def _one_bit(x: Floats, epsilon: float, rng: np.random.Generator) -> Floats:
    bound = one_bit_bound(epsilon)
    return np.where(rng.random(x.shape) < 0.5 + x / (2 * bound), bound, -bound)


def _piecewise(x: Floats, epsilon: float, rng: np.random.Generator) -> Floats:
    """Uniform on [l, l + C - 1] around x with probability e^{eps/2} / (e^{eps/2} + 1), else on the rest of [-C, C]."""
    bound = piecewise_bound(epsilon)
    low = (bound + 1) / 2 * x - (bound - 1) / 2
    high = low + bound - 1
    near = rng.random(x.shape) < 1 / (1 + exp(-epsilon / 2))
    place = rng.random(x.shape)
    left = low + bound  # length of the rest below `low`; the rest has length C + 1 in all
    far = place * (bound + 1)
    return np.where(near, low + place * (high - low), np.where(far < left, -bound + far, high + far - left))


def _positive(number: float, what: str) -> float:
    if not (isfinite(number) and number > 0):
        raise PrivacyError(f"noise needs a finite {what} above 0, found {number!r}; no value means 'no noise'.")
    return number
