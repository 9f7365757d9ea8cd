"""Compiled loops over the ratings of one side's rows: normal equations, weighted sums, small inverses."""

from __future__ import annotations

import numba
import numpy as np


@numba.njit(parallel=True, cache=True, fastmath=True)
def normal_equations(ptr, idx, target, weight, x, a, h):  # type: ignore[no-untyped-def]
    """a[i] = sum_e w_e x_e x_e' (one small matrix product a row) and h[i] = sum_e w_e t_e x_e over row i's entries."""
    d = x.shape[1]
    for i in numba.prange(len(ptr) - 1):
        start, stop = ptr[i], ptr[i + 1]
        rows = np.empty((stop - start, d))
        scaled = np.empty((stop - start, d))
        hi = np.zeros(d)
        for e in range(start, stop):
            xe = x[idx[e]]
            w = weight[e]
            wt = w * target[e]
            for p in range(d):
                rows[e - start, p] = xe[p]
                scaled[e - start, p] = w * xe[p]
                hi[p] += wt * xe[p]
        a[i] = np.dot(scaled.T, rows)
        h[i] = hi


@numba.njit(parallel=True, cache=True, fastmath=True)
def weighted_rows(ptr, idx, weight, table, out):  # type: ignore[no-untyped-def]
    """out[i] = sum_e w_e table[idx_e] over row i's entries."""
    d = table.shape[1]
    for i in numba.prange(len(ptr) - 1):
        s = np.zeros(d)
        for e in range(ptr[i], ptr[i + 1]):
            w = weight[e]
            t = table[idx[e]]
            for p in range(d):
                s[p] += w * t[p]
        out[i] = s


@numba.njit(parallel=True, cache=True, fastmath=True)
def spd_inverse(a):  # type: ignore[no-untyped-def]
    """Replace each positive definite a[i] by its inverse: Cholesky factor, its inverse, their product."""
    d = a.shape[1]
    for i in numba.prange(len(a)):
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
