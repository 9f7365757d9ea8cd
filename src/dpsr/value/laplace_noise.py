r"""What a number with Laplace noise says of the number without: the normal observation that says the same.

A noisy sum is T = s + e + n, with s what a model says of it, e normal with variance v (its ratings scatter) and n from
Laplace's law of scale b. Laplace's law has a peak and long tails: an answer near what is expected is hardly off by its
noise, one far from it is mostly noise. With s believed to be N(m, q) before T was heard, d = T - m and
tau^2 = q + v, the chance of T is a Laplace law blurred by a normal one,

    Z  ~  e^-d/b Phi(d/tau - tau/b) + e^d/b Phi(-d/tau - tau/b)  =  A + B,      t = (A - B) / (A + B),

    d log Z / dm = t / b,
    h = -d^2 log Z / dm^2 = [ t^2 - 1 + 2 (b/tau) e^-d/b phi(d/tau - tau/b) / (A + B) ] / b^2.

What is believed of s afterwards has mean m + q t / b and variance q - q^2 h. That is what one normal observation would
leave, of value m + t / (b h) and variance 1/h - q: expectation propagation (Minka 2001). Z is log-concave and smoother
than its normal part, so 0 < h <= 1 / tau^2 and the variance is v at least.
"""

from __future__ import annotations

import numpy as np
from scipy.special import log_ndtr

from dpsr.arrays import Floats

_NORMAL = 30.0
"""From so many times the noise on, what is believed is so wide that noise of any law would do: h loses its digits."""

_LEAST = 1e-6
"""Of 1 / tau^2; an answer so far out that h is less says nothing but which side it is on."""


def as_normal(values: Floats, variance: Floats, scale: Floats, mean: Floats, believed: Floats) -> tuple[Floats, Floats]:
    """Values and variances of normal observations that say what `values` with noise of this `scale` do.

    `variance` is that of a value around what the model says, noise included; `mean` and `believed` are m and q. Where
    there is no scale, or next to none, an observation stays as it is.
    """
    tau = np.sqrt(np.maximum(variance - 2 * scale**2, 0.0) + believed)
    some = (scale > 0) & (tau > 0) & (tau < _NORMAL * scale)
    found, left = values.copy(), variance.copy()
    t, h = _slopes((values - mean)[some], tau[some], scale[some])
    found[some] = mean[some] + t / (scale[some] * h)
    left[some] = 1 / h - believed[some]
    return found, left


def _slopes(d: Floats, tau: Floats, b: Floats) -> tuple[Floats, Floats]:
    """t and h."""
    a = tau / b
    above, below = log_ndtr(d / tau - a) - d / b, log_ndtr(-d / tau - a) + d / b
    total = np.logaddexp(above, below)
    t = np.exp(above - total) - np.exp(below - total)
    peak = np.sqrt(2 / np.pi) / a * np.exp(-((d / tau) ** 2 + a**2) / 2 - total)
    return t, np.clip((t**2 - 1 + peak) / b**2, _LEAST / tau**2, 1 / tau**2)
