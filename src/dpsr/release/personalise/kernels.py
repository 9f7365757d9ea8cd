"""Compiled loops of `personalise`: one person after the other, so that nobody's result depends on anybody else's rows.

One thread owns each person; sums are taken in the order of that person's items. Matrices a, b are symmetric.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import prange

from dpsr.arrays import Codes, Floats, Ints, Singles
from dpsr.linalg.compiled import fast_kernel, fast_parallel_kernel

_MOST_OWN = 0.95
"""The largest share of what is known about an item that one rating is taken to have told."""


class ItemVectors(NamedTuple):
    """(b, g) of every item, p and k of them, and the packed covariance of the first `known` of these coefficients.

    `known` counts along (b, g): all of them, or b's constant alone.
    """

    means: Floats
    covariance: Singles
    n_features: int
    known: int


class Readings(NamedTuple):
    """A person's noisy readings as the item side saw them: the mean they were read at, the value and its weight."""

    mean: Floats
    value: Floats
    weight: Floats


@fast_parallel_kernel
def cavity(
    indptr: Ints, items: Codes, people: Floats, side: ItemVectors, readings: Readings
) -> tuple[Floats, Floats, Floats]:
    """B^- . x_u, G^- and s^- at every rating, `people` holding (x, f) of each person; see `without_own`."""
    p, d, N = side.n_features, people.shape[1], len(items)
    base, factors, item_variance = np.empty(N), np.empty((N, d - p)), np.empty(N)
    for u in prange(len(indptr) - 1):
        a, ca = people[u], np.zeros(d)
        for e in range(indptr[u], indptr[u + 1]):
            j = items[e]
            s = max(_packed_times(side.covariance[j], a, side.known, ca), 0.0)
            left = 1 - min(readings.weight[e] * s, _MOST_OWN)
            pull = readings.weight[e] * (readings.value[e] - readings.mean[e]) / left
            total = 0.0
            for i in range(p):
                total += (side.means[j, i] - ca[i] * pull) * a[i]
            base[e], item_variance[e] = total, s / left
            for i in range(d - p):
                factors[e, i] = side.means[j, p + i] - ca[p + i] * pull
    return base, factors, item_variance


@fast_kernel
def _packed_times(packed: Singles, a: Floats, known: int, out: Floats) -> float:
    """`out` becomes C a over the first `known` coordinates; a' C a."""
    for i in range(known):
        out[i] = 0.0
    at = 0
    for i in range(known):
        for h in range(i):
            out[i] += packed[at + h] * a[h]
            out[h] += packed[at + h] * a[i]
        out[i] += packed[at + i] * a[i]
        at += i + 1
    s = 0.0
    for i in range(known):
        s += out[i] * a[i]
    return s


class Observed(NamedTuple):
    """Ratings person by person: `rest` is what coefficients must explain, `noise` its variance, `factors` G^-."""

    indptr: Ints
    items: Codes
    factors: Floats
    rest: Floats
    noise: Floats


class ItemFeatures(NamedTuple):
    """Public features z of items, and features of the mask kernel."""

    public: Floats
    kernel: Floats


class Priors(NamedTuple):
    """theta_u ~ N((mean_u, 0), diag(covariance_h, tau_h I)) with log weight chance_h, at every grid point h.

    `precision` is the inverse of `covariance`, `log_size` the log determinant of the whole prior.
    """

    mean: Floats
    covariance: Floats
    precision: Floats
    tau: Floats
    log_size: Floats
    chance: Floats


@fast_parallel_kernel
def posterior_means(observed: Observed, features: ItemFeatures, priors: Priors) -> Floats:
    """Posterior means of theta = (coefficients of z, of G^-, of the kernel), one person a row; the prior's without
    ratings."""
    c = priors.mean.shape[1]
    out = np.zeros((len(observed.indptr) - 1, c + features.kernel.shape[1]))
    for u in prange(len(out)):
        out[u, :c] = priors.mean[u]
        start, stop = observed.indptr[u], observed.indptr[u + 1]
        if stop > start:
            X, r = _whitened(observed, features, priors.mean[u], start, stop)
            _add_average(X, r, priors, out[u])
    return out


@fast_kernel
def _whitened(observed: Observed, features: ItemFeatures, mean: Floats, start: int, stop: int) -> tuple[Floats, Floats]:
    """Features and what the prior mean leaves open, divided by the deviation of each rating's noise."""
    q, k, R = features.public.shape[1], observed.factors.shape[1], features.kernel.shape[1]
    X, r = np.empty((stop - start, q + k + R)), np.empty(stop - start)
    for e in range(start, stop):
        row, j, open_ = X[e - start], observed.items[e], observed.rest[e]
        root = 1 / math.sqrt(observed.noise[e])
        for i in range(q):
            row[i] = root * features.public[j, i]
            open_ -= features.public[j, i] * mean[i]
        for i in range(k):
            row[q + i] = root * observed.factors[e, i]
            open_ -= observed.factors[e, i] * mean[q + i]
        for i in range(R):
            row[q + k + i] = root * features.kernel[j, i]
        r[e - start] = root * open_
    return X, r


@fast_kernel
def _add_average(X: Floats, r: Floats, priors: Priors, out: Floats) -> None:
    """Add the posterior mean around the prior's, averaged over the grid by evidence."""
    G, d = len(priors.tau), X.shape[1]
    evidence, theta = np.empty(G), np.empty((G, d))
    if len(X) < d:
        _by_ratings(X, r, priors, evidence, theta)
    else:
        _by_coefficients(X, r, priors, evidence, theta)
    weight = np.exp(evidence - evidence.max())
    weight /= weight.sum()
    for h in range(G):
        for i in range(d):
            out[i] += weight[h] * theta[h, i]


@fast_kernel
def _by_ratings(X: Floats, r: Floats, priors: Priors, evidence: Floats, theta: Floats) -> None:
    """One unknown a rating: theta = S X' (X S X' + I)^-1 r."""
    n, c = len(X), priors.covariance.shape[1]
    front, back = np.ascontiguousarray(X[:, :c]), np.ascontiguousarray(X[:, c:])
    smooth = np.dot(back, back.T)
    for h in range(len(evidence)):
        side = np.dot(priors.covariance[h], front.T)
        K = np.dot(front, side)
        for i in range(n):
            for j in range(i + 1):
                K[i, j] += priors.tau[h] * smooth[i, j]
            K[i, i] += 1.0
        half, a = _cholesky(K), r.copy()
        evidence[h] = -0.5 * _solve(K, a) - half + priors.chance[h]
        theta[h, :c] = np.dot(side, a)
        theta[h, c:] = priors.tau[h] * np.dot(back.T, a)


@fast_kernel
def _by_coefficients(X: Floats, r: Floats, priors: Priors, evidence: Floats, theta: Floats) -> None:
    """One unknown a coefficient: theta = (X'X + S^-1)^-1 X' r."""
    d, c = X.shape[1], priors.covariance.shape[1]
    A, b = np.dot(X.T, X), np.dot(X.T, r)
    for h in range(len(evidence)):
        B, a = A.copy(), b.copy()
        for i in range(c):
            for j in range(i + 1):
                B[i, j] += priors.precision[h, i, j]
        for i in range(c, d):
            B[i, i] += 1 / priors.tau[h]
        half = _cholesky(B)
        evidence[h] = 0.5 * _solve(B, a) - half - 0.5 * priors.log_size[h] + priors.chance[h]
        theta[h] = a


@fast_kernel
def _cholesky(a: Floats) -> float:
    """The lower triangle of a becomes its Cholesky factor; half its log determinant."""
    half = 0.0
    for i in range(len(a)):
        for j in range(i + 1):
            s = a[i, j]
            for p in range(j):
                s -= a[i, p] * a[j, p]
            if i == j:
                a[i, i] = math.sqrt(max(s, 1e-300))
                half += math.log(a[i, i])
            else:
                a[i, j] = s / a[j, j]
    return half


@fast_kernel
def _solve(a: Floats, right: Floats) -> float:
    """`right` becomes (factor factor')^-1 right; the quadratic form of right in it."""
    q, n = 0.0, len(a)
    for i in range(n):
        s = right[i]
        for p in range(i):
            s -= a[i, p] * right[p]
        right[i] = s / a[i, i]
        q += right[i] ** 2
    for i in range(n - 1, -1, -1):
        s = right[i]
        for p in range(i + 1, n):
            s -= a[p, i] * right[p]
        right[i] = s / a[i, i]
    return q


@fast_parallel_kernel
def dots(theta: Floats, factors: Floats, features: ItemFeatures, users: Codes, items: Codes) -> Floats:
    """theta_u . (z_j, factors_e, kernel_j) at every rating."""
    q, k, R = features.public.shape[1], factors.shape[1], features.kernel.shape[1]
    out = np.empty(len(items))
    for e in prange(len(items)):
        total, a, j = 0.0, theta[users[e]], items[e]
        for i in range(q):
            total += a[i] * features.public[j, i]
        for i in range(k):
            total += a[q + i] * factors[e, i]
        for i in range(R):
            total += a[q + k + i] * features.kernel[j, i]
        out[e] = total
    return out
