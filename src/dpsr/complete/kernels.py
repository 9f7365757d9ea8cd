"""Compiled loops over the ratings of one side's rows: normal equations, weighted sums, small inverses."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import prange

from dpsr.linalg.compiled import fast_parallel_kernel

Floats = npt.NDArray[np.floating]
Ints = npt.NDArray[np.integer]


@fast_parallel_kernel
def normal_equations(ptr: Ints, idx: Ints, target: Floats, weight: Floats, x: Floats, a: Floats, h: Floats) -> None:
    """a[i] = sum_e w_e x_e x_e' (one small matrix product a row) and h[i] = sum_e w_e t_e x_e over row i's entries."""
    d = x.shape[1]
    for i in prange(len(ptr) - 1):
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


@fast_parallel_kernel
def weighted_rows(ptr: Ints, idx: Ints, weight: Floats, table: Floats, out: Floats) -> None:
    """out[i] = sum_e w_e table[idx_e] over row i's entries."""
    d = table.shape[1]
    for i in prange(len(ptr) - 1):
        s = np.zeros(d)
        for e in range(ptr[i], ptr[i + 1]):
            w = weight[e]
            t = table[idx[e]]
            for p in range(d):
                s[p] += w * t[p]
        out[i] = s


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
