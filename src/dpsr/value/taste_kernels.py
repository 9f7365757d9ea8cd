"""Compiled loops of a taste that the mask makes smooth, one person after the other; see `assembly`."""

from __future__ import annotations

import numpy as np
from numba import prange

from dpsr.arrays import AnyFloats, Codes, Floats, Ints, Singles
from dpsr.linalg.compiled import fast_kernel, fast_parallel_kernel

_STEPS, _CLOSE = 30, 1e-8
"""Conjugate gradients a person at most, and the relative squared residual at which they end."""


@fast_kernel
def pair_sums(
    indptr: Ints, items: Codes, first: int, step: int, off: Floats, weight: Floats, features: Floats, fitted: Floats,
    precision: Floats, typical: float, sums: Floats,
) -> None:  # fmt: skip
    """Add what pairs of ratings show of tau, what they would of tau = 1, and the variance of the first at tau = 0."""
    d, q = features.shape[1], fitted.shape[1]
    C, B, CB, score = np.empty((q, q)), np.empty((q, d)), np.empty((q, d)), np.empty(d)
    for u in range(first, len(indptr) - 1, step):
        start, n = indptr[u], indptr[u + 1] - indptr[u]
        if n < 2:
            continue
        C[:], B[:], CB[:], score[:] = precision, 0.0, 0.0, 0.0
        for e in range(start, start + n):
            k, z, w = features[items[e]], fitted[items[e]], weight[e]
            for p in range(q):
                for r in range(q):
                    C[p, r] += w * z[p] * z[r]
                for i in range(d):
                    B[p, i] += w * z[p] * k[i]
            for i in range(d):
                score[i] += w * off[e] * k[i]
        _invert(C)
        found = 0.0
        for p in range(q):
            for r in range(q):
                for i in range(d):
                    CB[p, i] += C[p, r] * B[r, i]
            for i in range(d):
                found += B[p, i] * CB[p, i]
        for i in range(d):
            found += score[i] ** 2
        K, PK = np.empty((n, d)), np.empty((n, d))
        own, trace = 0.0, 0.0
        for e in range(n):
            z, w = fitted[items[start + e]], weight[start + e]
            K[e] = features[items[start + e]]
            variance, size, length = 0.0, 0.0, 0.0
            for p in range(q):
                for r in range(q):
                    variance += z[p] * C[p, r] * z[r]
            for i in range(d):
                along = K[e, i]
                for p in range(q):
                    along -= z[p] * CB[p, i]
                PK[e, i] = w * along
                size += K[e, i] ** 2
                length += PK[e, i] ** 2
                trace += PK[e, i] * K[e, i]
            found -= size * w**2 * (off[start + e] ** 2 + variance)
            own += size * length
        square = _square(K, PK)
        share = 1 / (1 + typical * square / max(trace, 1e-30)) ** 2
        sums[0] += share * found
        sums[1] += share * (square - own)
        sums[2] += share**2 * 2 * (square - own)


@fast_kernel
def _square(K: Floats, PK: Floats) -> float:
    """|K'PK|^2, over features or over ratings, whichever are fewer."""
    (n, d), total = K.shape, 0.0
    if n > d:
        G = np.zeros((d, d))
        for e in range(n):
            for i in range(d):
                for h in range(d):
                    G[i, h] += K[e, i] * PK[e, h]
        return float((G * G).sum())
    M = np.empty((n, n))
    for e in range(n):
        for f in range(n):
            entry = 0.0
            for i in range(d):
                entry += PK[e, i] * K[f, i]
            M[e, f] = entry
    for e in range(n):
        for f in range(n):
            total += M[e, f] * M[f, e]
    return total


@fast_kernel
def _invert(A: Floats) -> None:
    """A becomes its inverse: every coordinate of a positive definite matrix is swept in turn."""
    for k in range(len(A)):
        pivot = 1 / A[k, k]
        for p in range(len(A)):
            if p != k:
                part = A[p, k] * pivot
                for r in range(len(A)):
                    if r != k:
                        A[p, r] -= part * A[k, r]
                A[p, k] = -part
        for r in range(len(A)):
            A[k, r] *= pivot
        A[k, k] = pivot


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
