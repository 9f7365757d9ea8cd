r"""A person's own curve: what is left of their ratings, smoothed along the order of the items' ids.

Ids are rarely random: films are numbered as they come into a database, books by publisher, articles by year. Somebody's
residuals (rating less level, effect and own coefficients) of neighbours in that order are alike, and nobody else's
ratings are needed to see it. With the person's n items in order, residuals are

    z_i = f_i + e_i,      e_i ~ N(0, c v_i),      Cov(f_i, f_j) = a exp(-|i - j| / (l n)):

f is an Ornstein-Uhlenbeck process, v_i the variance that is expected of a residual and c the person's own factor of it,
(B + sum z^2 / v) / (B + n - 1), B = `COMMON_RATINGS`. The process is Markov, so that its posterior is one pass of
Kalman's filter forth and one of the smoother of Rauch, Tung and Striebel back, O(n), and the filter's innovations give
the likelihood of (a, l). What is predicted is the mean over `AMPLITUDES` x `LENGTHS`, each weighed by its likelihood,
and over no curve at all, which has half of the belief beforehand: where ids mean nothing, residuals say so themselves.

An item that the person has not rated lies in a gap between two of theirs, halfway: with h = exp(-1 / (2 l n)) the
posterior mean there is (f_i + f_{i+1}) h / (1 + h^2), and h f_i outside the first and the last.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpsr.arrays import Floats, Ints
from dpsr.linalg.compiled import kernel

AMPLITUDES = (0.03, 0.1)
"""Variances of the curve, in squared spreads: a little, and a tenth of what ratings vary by."""

LENGTHS = (0.03, 0.1, 0.3)
"""How far the curve reaches, as parts of a person's items: sequels and neighbours, a period, a half of everything."""

NO_CURVE = 0.5
"""Belief, before looking, that the order of ids tells nothing of this person's ratings."""

COMMON_RATINGS = 10.0
"""Ratings that the common variance counts as, beside a person's own."""


@dataclass(frozen=True, eq=False, repr=False)  # a generated repr would show values
class OwnCurves:
    """Curves of some people: the places of their items in an order of ids, ascending, and n + 1 values, one a gap."""

    indptr: Ints
    places: Ints
    gaps: Floats

    @classmethod
    def of(cls, indptr: Ints, places: Ints, residuals: Floats, variances: Floats) -> OwnCurves:
        """From everybody's residuals, their expected variances, and the places of their items, in any order."""
        owners = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
        order = np.lexsort((places, owners))
        return cls(indptr, places[order], _gap_values(indptr, residuals[order], variances[order]))

    def at(self, people: Ints, places: Ints) -> Floats:
        """The curves of people (by their number here) at places; at an own item, the mean of the gaps beside it."""
        return _curve_at(self.indptr, self.places, self.gaps, people, places)


@kernel
def _gap_values(indptr: Ints, z: Floats, v: Floats) -> Floats:
    """For every person n + 1 gap values, averaged over all curves by their likelihood."""
    m = len(indptr) - 1
    gaps, longest = np.zeros(len(z) + m), 0
    for u in range(m):
        longest = max(longest, indptr[u + 1] - indptr[u])
    smooth, filtered, spread = np.empty(longest), np.empty(longest), np.empty(longest)
    found = np.empty((len(AMPLITUDES) * len(LENGTHS), longest + 1))
    weights = np.empty(len(AMPLITUDES) * len(LENGTHS))
    for u in range(m):
        first, n = indptr[u], indptr[u + 1] - indptr[u]
        if n == 0:
            continue
        own, c = z[first : first + n], COMMON_RATINGS
        for t in range(n):
            c += own[t] * own[t] / v[first + t]
        c /= COMMON_RATINGS + n - 1
        k = 0
        for a in AMPLITUDES:
            for length in LENGTHS:
                phi = np.exp(-1 / (length * n))
                weights[k] = _smooth(own, v[first : first + n], c, a, phi, filtered, spread, smooth)
                _between(smooth, n, np.sqrt(phi), found[k])
                k += 1
        _to_beliefs(weights)
        for k in range(len(weights)):
            for t in range(n + 1):
                gaps[first + u + t] += weights[k] * found[k, t]
    return gaps


@kernel
def _smooth(
    z: Floats, v: Floats, c: float, a: float, phi: float, filtered: Floats, spread: Floats, smooth: Floats
) -> float:
    """Posterior means of the curve at the person's items, into `smooth`; its log likelihood beside no curve."""
    n, mean, variance, gain = len(z), 0.0, a, 0.0
    for t in range(n):
        if t > 0:
            mean, variance = phi * mean, phi * phi * variance + a * (1 - phi * phi)
        noise = c * v[t]
        total, innovation = variance + noise, z[t] - mean
        gain += 0.5 * (z[t] * z[t] / noise - innovation * innovation / total - np.log(total / noise))
        mean += variance / total * innovation
        variance *= noise / total
        filtered[t], spread[t] = mean, variance
    smooth[n - 1] = filtered[n - 1]
    for t in range(n - 2, -1, -1):
        back = phi * spread[t] / (phi * phi * spread[t] + a * (1 - phi * phi))
        smooth[t] = filtered[t] + back * (smooth[t + 1] - phi * filtered[t])
    return gain


@kernel
def _between(smooth: Floats, n: int, h: float, out: Floats) -> None:
    """Posterior means halfway between neighbours, and half a step outside."""
    out[0], out[n] = h * smooth[0], h * smooth[n - 1]
    for t in range(1, n):
        out[t] = (smooth[t - 1] + smooth[t]) * h / (1 + h * h)


@kernel
def _to_beliefs(gains: Floats) -> None:
    """Log likelihoods beside no curve become beliefs after looking; what is missing from one is no curve's."""
    most = max(gains.max(), 0.0)
    none, total = NO_CURVE * np.exp(-most), 0.0
    for k in range(len(gains)):
        gains[k] = (1 - NO_CURVE) / len(gains) * np.exp(gains[k] - most)
        total += gains[k]
    for k in range(len(gains)):
        gains[k] /= none + total


@kernel
def _curve_at(indptr: Ints, places: Ints, gaps: Floats, people: Ints, at: Ints) -> Floats:
    out = np.empty(len(people))
    for t in range(len(people)):
        u = people[t]
        mine = places[indptr[u] : indptr[u + 1]]
        first, left, right = indptr[u] + u, np.searchsorted(mine, at[t]), np.searchsorted(mine, at[t], side="right")
        out[t] = (gaps[first + left] + gaps[first + right]) / 2
    return out
