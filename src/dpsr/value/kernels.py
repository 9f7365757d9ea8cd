"""Compiled loops over the ratings of one side's rows: normal equations, weighted sums, small inverses.

Symmetric matrices that are added up over blocks are packed: the lower triangle, row by row, d (d + 1) / 2 numbers.
"""

from __future__ import annotations

import numpy as np
from numba import prange

from dpsr.arrays import AnyFloats, AnyInts, Singles
from dpsr.linalg.compiled import fast_kernel, fast_parallel_kernel

_FEW = 24
"""Up to so many ratings a row's products are added one by one; beyond, as one small matrix product."""

_LANES = 16
"""Matrices inverted side by side: the same step for all of them is one or two vector instructions."""

_PART = 4096
"""Ratings a thread adds up at a time."""


def packed_size(d: int) -> int:
    """Numbers in the lower triangle of a d x d matrix."""
    return d * (d + 1) // 2


@fast_parallel_kernel
def root_and_product(weight: AnyFloats, target: AnyFloats) -> Singles:
    """sqrt(w) and w t of every rating, side by side: they are fetched together."""
    out = np.empty((len(weight), 2), np.float32)
    for e in prange(len(weight)):
        out[e, 0], out[e, 1] = np.sqrt(weight[e]), weight[e] * target[e]
    return out


@fast_parallel_kernel
def add_normal_equations(
    to: AnyInts,
    ptr: AnyInts,
    idx: AnyInts,
    places: AnyInts,
    pairs: Singles,
    partners: Singles,
    d: int,
    a: AnyFloats,
    h: AnyFloats,
) -> None:
    """a[to[i]] += sum_e w_e (x_e x_e' + Cov_e) (packed) and h[to[i]] += sum_e w_e t_e x_e over row i's entries.

    Entry e has the partner idx[e], whose line is x (d numbers) and then the covariance of its last coordinates
    (packed), or nothing. Its `root_and_product` stands at places[e], or at e itself if there are no places. A row's own
    sum is in single precision, as noise is; sums over blocks of rows are not.
    """
    size, direct = partners.shape[1] - d, len(places) == 0
    for i in prange(len(ptr) - 1):
        start, stop = ptr[i], ptr[i + 1]
        hi, ai, doubt = np.zeros(d, np.float32), a[to[i]], np.zeros(size, np.float32)
        rows = np.empty((stop - start, d), np.float32)
        for e in range(start, stop):
            at = e if direct else np.int64(places[e])
            root, product = pairs[at, 0], pairs[at, 1]
            line, row = partners[np.uint32(idx[e])], rows[e - start]
            for p in range(d):
                hi[p] += product * line[p]
                row[p] = root * line[p]
            for p in range(size):
                doubt[p] += root * root * line[d + p]
        if stop - start <= _FEW:
            for row in rows:
                _add_outer(row, ai)
        else:
            _add_packed(np.dot(rows.T, rows), ai)
        _add_corner(doubt, d, ai)
        for p in range(d):
            h[to[i], p] += hi[p]


@fast_kernel
def _add_outer(x: Singles, packed: AnyFloats) -> None:
    """packed += x x'."""
    at = 0
    for p in range(len(x)):
        for q in range(p + 1):
            packed[at + q] += x[p] * x[q]
        at += p + 1


@fast_kernel
def _add_packed(full: Singles, packed: AnyFloats) -> None:
    """packed += the lower triangle of `full`."""
    at = 0
    for p in range(len(full)):
        for q in range(p + 1):
            packed[at + q] += full[p, q]
        at += p + 1


@fast_kernel
def _add_corner(corner: Singles, d: int, packed: AnyFloats) -> None:
    """Add a packed matrix to the last coordinates of a packed d x d matrix."""
    at, k = 0, int(np.sqrt(2 * len(corner)))
    for p in range(k):
        to = (d - k + p) * (d - k + p + 1) // 2 + d - k
        for q in range(p + 1):
            packed[to + q] += corner[at + q]
        at += p + 1


@fast_parallel_kernel
def scores(off: AnyFloats, weight: AnyFloats, doubt: AnyFloats) -> AnyFloats:
    """Squared scores ((z - eta) w)^2 and what is expected of them, w - w^2 doubt, summed over ratings.

    A doubt is not believed to exceed nine tenths of what the rating itself leaves open.
    """
    parts = np.zeros((-(-len(off) // _PART), 2))
    for part in prange(len(parts)):
        for e in range(part * _PART, min((part + 1) * _PART, len(off))):
            w = weight[e]
            parts[part, 0] += (off[e] * w) ** 2
            parts[part, 1] += w - w * min(doubt[e] * w, 0.9)
    return parts.sum(axis=0)


@fast_parallel_kernel
def unpack(packed: AnyFloats, inverse: AnyFloats, observation: AnyFloats, out: AnyFloats) -> None:
    """out[i] = the packed matrix i, plus `inverse`, plus observation[i] in the first place."""
    d = out.shape[1]
    for i in prange(len(out)):
        at = 0
        for p in range(d):
            for q in range(p + 1):
                value = packed[i, at + q] + inverse[p, q]
                out[i, p, q] = value
                out[i, q, p] = value
            at += p + 1
        out[i, 0, 0] += observation[i]


@fast_parallel_kernel
def spd_inverse(a: AnyFloats) -> None:
    """Replace each positive definite a[i] by its inverse: Cholesky factor, its inverse, their product."""
    n, d = len(a), a.shape[1]
    for group in prange(-(-n // _LANES)):
        first = group * _LANES
        count = min(_LANES, n - first)
        m, t, s = np.empty((d, d, _LANES)), np.empty((d, d, _LANES)), np.empty(_LANES)
        for lane in range(_LANES):
            one = a[first + min(lane, count - 1)]
            for p in range(d):
                for q in range(p + 1):
                    m[p, q, lane] = one[p, q]
        _cholesky(m, s)
        _inverse_triangles(m, t, s)
        for p in range(d):
            for q in range(p + 1):
                s[:] = 0.0
                for r in range(p, d):
                    for lane in range(_LANES):
                        s[lane] += t[p, r, lane] * t[q, r, lane]
                for lane in range(count):
                    a[first + lane, p, q] = s[lane]
                    a[first + lane, q, p] = s[lane]


@fast_kernel
def _cholesky(m: AnyFloats, s: AnyFloats) -> None:
    """Lower triangles of `m` (row, column, lane) become their Cholesky factors, one over the diagonal in its place."""
    for p in range(len(m)):
        for q in range(p + 1):
            for lane in range(_LANES):
                s[lane] = m[p, q, lane]
            for r in range(q):
                for lane in range(_LANES):
                    s[lane] -= m[p, r, lane] * m[q, r, lane]
            if q < p:
                for lane in range(_LANES):
                    m[p, q, lane] = s[lane] * m[q, q, lane]
        for lane in range(_LANES):
            m[p, p, lane] = 1.0 / np.sqrt(max(s[lane], 1e-300))


@fast_kernel
def _inverse_triangles(m: AnyFloats, t: AnyFloats, s: AnyFloats) -> None:
    """t[q] is column q of the inverse of the factors `_cholesky` leaves."""
    d = len(m)
    for q in range(d):
        for lane in range(_LANES):
            t[q, q, lane] = m[q, q, lane]
        for p in range(q + 1, d):
            s[:] = 0.0
            for r in range(q, p):
                for lane in range(_LANES):
                    s[lane] -= m[p, r, lane] * t[q, r, lane]
            for lane in range(_LANES):
                t[q, p, lane] = s[lane] * m[p, p, lane]
