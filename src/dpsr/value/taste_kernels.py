"""Compiled loops of a taste that the mask makes smooth, one person after the other; see `assembly`."""

from __future__ import annotations

import numpy as np
from numba import prange

from dpsr.arrays import AnyFloats, Codes, Floats, Ints, Singles
from dpsr.linalg.compiled import fast_kernel, fast_parallel_kernel

_STEPS, _CLOSE = 30, 1e-8
"""Conjugate gradients a person at most, and the relative squared residual at which they end."""


@fast_parallel_kernel
def pair_sums(
    indptr: Ints, items: Codes, first: int, step: int, off: Floats, weight: Floats, features: Floats, fitted: Floats,
    precision: Floats, typical: float,
) -> Floats:  # fmt: skip
    """What pairs of ratings show of tau, what they would of tau = 1, and the variance of the first at tau = 0.

    Of every `step`-th person from the first on; one rating is no pair.
    """
    people = (len(indptr) - 1 - first + step - 1) // step
    sums = np.zeros((max(people, 0), 3))
    for i in prange(len(sums)):
        u = first + i * step
        rows = slice(indptr[u], indptr[u + 1])
        if rows.stop - rows.start > 1:
            K, Z = features[items[rows]], fitted[items[rows]]
            _pairs_of_one(K, Z, off[rows], weight[rows], precision, typical, sums[i])
    return sums.sum(axis=0)


@fast_kernel
def _pairs_of_one(
    K: Floats, Z: Floats, off: Floats, weight: Floats, precision: Floats, typical: float, sums: Floats
) -> None:
    """One person: K and Z are the features of what was rated, those of the taste and those that were fitted."""
    w = weight.reshape(-1, 1)
    WZ = w * Z
    C = np.linalg.inv(precision + np.dot(Z.T, WZ))
    B = np.dot(WZ.T, K)
    CB = np.dot(C, B)
    PK = w * (K - np.dot(Z, CB))
    score, size = np.dot(weight * off, K), (K**2).sum(axis=1)
    fitting = (np.dot(Z, C) * Z).sum(axis=1)
    found = (score**2).sum() + (B * CB).sum() - (size * weight**2 * (off**2 + fitting)).sum()
    square = _square(K, PK)
    pairs = square - (size * (PK**2).sum(axis=1)).sum()
    share = 1 / (1 + typical * square / max((PK * K).sum(), 1e-30)) ** 2
    sums[0], sums[1], sums[2] = share * found, share * pairs, share**2 * 2 * pairs


@fast_kernel
def _square(K: Floats, PK: Floats) -> float:
    """|K'PK|^2, over features or over ratings, whichever are fewer."""
    if len(K) > K.shape[1]:
        return float((np.dot(K.T, PK) ** 2).sum())
    M = np.dot(PK, K.T)
    return float((M * M.T).sum())


@fast_parallel_kernel
def tastes(indptr: Ints, items: Codes, off: AnyFloats, weight: AnyFloats, features: Singles, variance: float) -> Floats:
    """t_u with (K' W K + I / tau) t = K' W off for everybody, by conjugate gradients."""
    d = features.shape[1]
    out = np.zeros((len(indptr) - 1, d))
    for u in prange(len(indptr) - 1):
        t, r, ahead = out[u], np.zeros(d), np.zeros(d)
        for e in range(indptr[u], indptr[u + 1]):
            k, pull = features[np.uint32(items[e])], weight[e] * off[e]
            for i in range(d):
                r[i] += pull * k[i]
        p, energy = r.copy(), (r * r).sum()
        enough = _CLOSE * energy
        for _ in range(_STEPS):
            if energy <= enough:
                break
            for i in range(d):
                ahead[i] = p[i] / variance
            for e in range(indptr[u], indptr[u + 1]):
                k, along = features[np.uint32(items[e])], 0.0
                for i in range(d):
                    along += k[i] * p[i]
                along *= weight[e]
                for i in range(d):
                    ahead[i] += along * k[i]
            length = energy / (p * ahead).sum()
            before, energy = energy, 0.0
            for i in range(d):
                t[i] += length * p[i]
                r[i] -= length * ahead[i]
                energy += r[i] * r[i]
            for i in range(d):
                p[i] = r[i] + energy / before * p[i]
    return out
