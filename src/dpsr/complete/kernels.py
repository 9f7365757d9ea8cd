"""Compiled loops over the ratings of one side's rows: normal equations, weighted sums, small inverses.

Symmetric matrices that are added up over blocks are packed: the lower triangle, row by row, d (d + 1) / 2 numbers.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import prange

from dpsr.linalg.compiled import fast_parallel_kernel

Floats = npt.NDArray[np.floating]
Ints = npt.NDArray[np.integer]

_FEW = 24
"""Up to so many ratings a row's products are added one by one; beyond, as one small matrix product."""


@fast_parallel_kernel
def add_normal_equations(
    to: Ints, ptr: Ints, idx: Ints, target: Floats, weight: Floats, x: Floats, a: Floats, h: Floats
) -> None:
    """a[to[i]] += sum_e w_e x_e x_e' (packed) and h[to[i]] += sum_e w_e t_e x_e over row i's entries."""
    d = x.shape[1]
    for i in prange(len(ptr) - 1):
        start, stop = ptr[i], ptr[i + 1]
        hi, ai = np.zeros(d), a[to[i]]
        if stop - start <= _FEW:
            for e in range(start, stop):
                xe, w, t = x[np.uint32(idx[e])], weight[e], target[e]
                at = 0
                for p in range(d):
                    wx = w * xe[p]
                    hi[p] += wx * t
                    for q in range(p + 1):
                        ai[at + q] += wx * xe[q]
                    at += p + 1
        else:
            rows, scaled = np.empty((stop - start, d)), np.empty((stop - start, d))
            for e in range(start, stop):
                xe, w, t = x[np.uint32(idx[e])], weight[e], target[e]
                for p in range(d):
                    rows[e - start, p] = xe[p]
                    scaled[e - start, p] = w * xe[p]
                    hi[p] += w * xe[p] * t
            full = np.dot(scaled.T, rows)
            at = 0
            for p in range(d):
                for q in range(p + 1):
                    ai[at + q] += full[p, q]
                at += p + 1
        h[to[i]] += hi


@fast_parallel_kernel
def add_uncertainty(
    to: Ints, ptr: Ints, idx: Ints, weight: Floats, covariance: Floats, own: Floats, k: int, a: Floats, h: Floats
) -> None:
    """The mean-field terms of uncertain partners' factors f, of covariance (k x (c + k)) with (c, f):

    a_ff += sum_e w_e Cov(f, f)  (packed)   and   h_f -= sum_e w_e Cov(f, c) own_i.
    """
    width = covariance.shape[1] // k
    c, d = width - k, h.shape[1]
    for i in prange(len(ptr) - 1):
        seen = np.zeros(k * width)
        for e in range(ptr[i], ptr[i + 1]):
            w, row = weight[e], covariance[np.uint32(idx[e])]
            for p in range(k * width):
                seen[p] += w * row[p]
        ai, hi, mine = a[to[i]], h[to[i]], own[to[i]]
        for p in range(k):
            shift = 0.0
            for q in range(c):
                shift += seen[p * width + q] * mine[q]
            hi[d - k + p] -= shift
            at = (d - k + p) * (d - k + p + 1) // 2 + d - k
            for q in range(p + 1):
                ai[at + q] += seen[p * width + c + q]


@fast_parallel_kernel
def unpack(packed: Floats, inverse: Floats, message: Floats, out: Floats) -> None:
    """out[i] = the packed matrix i, plus `inverse`, plus message[i] in the first place."""
    d = out.shape[1]
    for i in prange(len(out)):
        at = 0
        for p in range(d):
            for q in range(p + 1):
                value = packed[i, at + q] + inverse[p, q]
                out[i, p, q] = value
                out[i, q, p] = value
            at += p + 1
        out[i, 0, 0] += message[i]


@fast_parallel_kernel
def spd_inverse(a: Floats) -> None:
    """Replace each positive definite a[i] by its inverse: Cholesky factor, its inverse, their product."""
    d = a.shape[1]
    for i in prange(len(a)):
        m = a[i]
        for p in range(d):
            for q in range(p):
                s = m[p, q]
                for r in range(q):
                    s -= m[p, r] * m[q, r]
                m[p, q] = s / m[q, q]
            s = m[p, p]
            for r in range(p):
                s -= m[p, r] * m[p, r]
            m[p, p] = np.sqrt(max(s, 1e-300))
        t = np.zeros((d, d))  # t[q] is column q of the triangle's inverse
        for q in range(d):
            t[q, q] = 1.0 / m[q, q]
            for p in range(q + 1, d):
                s = 0.0
                for r in range(q, p):
                    s -= m[p, r] * t[q, r]
                t[q, p] = s / m[p, p]
        for p in range(d):
            for q in range(p + 1):
                s = 0.0
                for r in range(p, d):
                    s += t[p, r] * t[q, r]
                m[p, q] = s
                m[q, p] = s
