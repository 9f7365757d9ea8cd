"""Compiled loops over the ratings of one side's rows: normal equations, weighted sums, small inverses.

Symmetric matrices that are added up over blocks are packed: the lower triangle, row by row, d (d + 1) / 2 numbers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import prange

from dpsr.arrays import AnyFloats, AnyInts, Bools, Floats, Singles
from dpsr.linalg.compiled import fast_kernel, fast_parallel_kernel

_FEW = 16
"""Up to so many ratings, an even number, a row's products are added two by two; beyond, as one small matrix product."""

_LANES = 64
"""Matrices inverted side by side: the same step for all of them is a few vector instructions. Fewer are unrolled by the
compiler into single numbers."""

_ROWS = 64
"""Rows a thread goes through at a time: what it writes on is made once for all of them."""

_PART = 4096
"""Ratings a thread adds up at a time."""

_GRAM = 256
"""Rows whose products a thread multiplies at a time."""


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
    for part in prange(-(-(len(ptr) - 1) // _ROWS)):
        hi, uncertain, full = np.empty(d, np.float32), np.empty(size, np.float32), np.empty((d, d), np.float32)
        few = np.empty((_FEW, d), np.float32)
        for i in range(part * _ROWS, min((part + 1) * _ROWS, len(ptr) - 1)):
            start, stop, ai = ptr[i], ptr[i + 1], a[to[i]]
            count = stop - start
            rows = few[: count + count % 2] if count <= _FEW else np.empty((count, d), np.float32)
            hi[:] = 0
            uncertain[:] = 0
            for e in range(start, stop):
                at = e if direct else np.int64(places[e])
                root, product = pairs[at, 0], pairs[at, 1]
                line, row = partners[np.uint32(idx[e])], rows[e - start]
                for p in range(d):
                    hi[p] += product * line[p]
                    row[p] = root * line[p]
                for p in range(size):
                    uncertain[p] += root * root * line[d + p]
            if count <= _FEW:
                rows[count:] = 0
                _square(rows, full)
            else:
                np.dot(rows.T, rows, full)
            _add_packed(full, ai)
            _add_corner(uncertain, d, ai)
            for p in range(d):
                h[to[i], p] += hi[p]


@fast_kernel
def _square(rows: Singles, full: Singles) -> None:
    """full = rows' rows of an even number of rows, also above the diagonal: lines are as short as they are.

    Two rows at a time, since starting on a short line takes longer than the line.
    """
    full[:] = 0
    for i in range(0, len(rows), 2):
        one, two = rows[i], rows[i + 1]
        for p in range(len(one)):
            line, x, y = full[p], one[p], two[p]
            for q in range(len(one)):
                line[q] += x * one[q] + y * two[q]


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
def tally_ratings(
    before: AnyFloats, after: AnyFloats, z: AnyFloats, weight: AnyFloats, variance: AnyFloats
) -> AnyFloats:
    """Sums over ratings whose means moved, of the kinds that `sweep.Tally` lists.

    Scores are ((z - eta) w)^2 and w - w^2 variance is expected of them; a posterior variance is not believed to exceed
    nine tenths of what the rating itself leaves open.
    """
    parts = np.zeros((-(-len(z) // _PART), 8))
    for part in prange(len(parts)):
        sums = parts[part]
        for e in range(part * _PART, min((part + 1) * _PART, len(z))):
            eta, w = after[e], weight[e]
            sums[0] += ((z[e] - eta) * w) ** 2
            sums[1] += w - w * min(variance[e] * w, 0.9)
            sums[2] += (eta - before[e]) ** 2
            sums[3] += variance[e]
            sums[4] += eta
            sums[5] += eta**2
            sums[6] += w
            sums[7] += w**2
    return parts.sum(axis=0)


@fast_parallel_kernel
def known_products(features: Floats, covariance: Singles, dx: int) -> Singles:
    """The sum over rows of f f' x (I - B), x the Kronecker product, both packed: B the first `dx` coordinates.

    `covariance` holds packed matrices of which these are the beginning. Not I and B by themselves: where hardly
    anything is known, single precision would lose the difference.
    """
    n, q = features.shape
    pairs, size = q * (q + 1) // 2, dx * (dx + 1) // 2
    parts = np.empty((-(-n // _GRAM), pairs, size), np.float32)
    for part in prange(len(parts)):
        first = part * _GRAM
        _add_products(features[first : first + _GRAM], covariance[first : first + _GRAM], dx, parts[part])
    return parts.sum(axis=0)


@fast_kernel
def _add_products(features: Floats, covariance: Singles, dx: int, out: Singles) -> None:
    n, q = features.shape
    products, known = np.empty((n, len(out)), np.float32), np.empty((n, out.shape[1]), np.float32)
    for i in range(n):
        at = 0
        for p in range(q):
            for r in range(p + 1):
                products[i, at + r] = features[i, p] * features[i, r]
            at += p + 1
        for p in range(out.shape[1]):
            known[i, p] = -covariance[i, p]
        for p in range(dx):
            known[i, p * (p + 3) // 2] += np.float32(1)
    np.dot(products.T, known, out)


class Solved(NamedTuple):
    """What becomes of rows: B, B t and the diagonal of U B U', the last coordinates of that (packed), sums of B."""

    covariance: Singles
    mean: Floats
    variance: Singles
    corner: Singles
    total: Singles

    @classmethod
    def of(cls, variance: Singles, corner: Singles) -> Solved:
        """Room for as many rows; sums are one line for every `_LANES` of them."""
        n, d = variance.shape
        size = packed_size(d)
        return cls(
            np.empty((n, size), np.float32),
            np.empty((n, d)),
            variance,
            corner,
            np.empty((-(-n // _LANES), size), np.float32),
        )


@fast_parallel_kernel
def solve_rows(
    packed: AnyFloats, prior: Singles, root: Singles, weight: AnyFloats, pull: AnyFloats, h: Floats, active: Bools,
    out: Solved,
) -> None:  # fmt: skip
    """B = (packed + prior + weight u u')^-1 of every row, t = h + pull u, u the first line of the upper triangular U.

    Sums are over active rows. All of it while a few matrices, side by side, are at hand.
    """
    for group in prange(-(-len(packed) // _LANES)):
        _solve_lanes(group, packed, prior, root, weight, pull, h, active, out)


@fast_kernel
def _solve_lanes(
    group: int, packed: AnyFloats, prior: Singles, root: Singles, weight: AnyFloats, pull: AnyFloats, h: Floats,
    active: Bools, out: Solved,
) -> None:  # fmt: skip
    """One group of rows. Not in the loop itself: of arrays made there numba takes two of one shape for the same."""
    first, d = group * _LANES, len(prior)
    count = min(_LANES, len(packed) - first)
    m, lines = np.empty((d, d, _LANES), np.float32), np.empty((d, _LANES), np.float32)
    t, some = np.zeros((d, _LANES), np.float32), np.zeros(_LANES, np.float32)
    corner = np.empty((out.corner.shape[1], _LANES), np.float32)
    _inverses(packed, first, count, prior, root[0], weight, m)
    _store(m, first, count, out.covariance)
    for lane in range(count):
        some[lane] = active[first + lane]
        for p in range(d):
            t[p, lane] = h[first + lane, p] + pull[first + lane] * root[0, p]
    _add_up(m, some, out.total[group])
    _times(m, t, lines)
    for lane in range(count):
        for p in range(d):
            out.mean[first + lane, p] = lines[p, lane]
    _diagonal(m, root, lines)
    for lane in range(count):
        for p in range(d):
            out.variance[first + lane, p] = lines[p, lane]
    _corner(m, root, corner)
    for lane in range(count):
        for p in range(len(corner)):
            out.corner[first + lane, p] = corner[p, lane]


@fast_parallel_kernel
def covariances(packed: AnyFloats, prior: Singles, root: Singles, weight: AnyFloats, out: Singles) -> None:
    """out[i] = U (packed[i] + prior + weight[i] u u')^-1 U', packed, u the first line of the upper triangular U."""
    for group in prange(-(-len(packed) // _LANES)):
        _covariance_lanes(group, packed, prior, root, weight, out)


@fast_kernel
def _covariance_lanes(
    group: int, packed: AnyFloats, prior: Singles, root: Singles, weight: AnyFloats, out: Singles
) -> None:
    """One group of rows; not in the loop itself, as in `_solve_lanes`."""
    first, d = group * _LANES, len(prior)
    count = min(_LANES, len(packed) - first)
    m, whole = np.empty((d, d, _LANES), np.float32), np.empty((out.shape[1], _LANES), np.float32)
    _inverses(packed, first, count, prior, root[0], weight, m)
    _corner(m, root, whole)
    for lane in range(count):
        for p in range(len(whole)):
            out[first + lane, p] = whole[p, lane]


@fast_kernel
def _inverses(
    packed: AnyFloats, first: int, count: int, prior: Singles, seen: Singles, weight: AnyFloats, m: Singles
) -> None:
    """Minus the inverses of `count` rows, one a lane (`_invert`); lanes that are left repeat the last one."""
    for lane in range(_LANES):
        i, at = first + min(lane, count - 1), 0
        scale = np.float32(weight[i])
        for p in range(len(prior)):
            for q in range(p + 1):
                m[p, q, lane] = np.float32(packed[i, at + q]) + prior[p, q] + scale * seen[p] * seen[q]
            at += p + 1
    _invert(m)


@fast_kernel
def _store(m: Singles, first: int, count: int, out: Singles) -> None:
    """Minus `m`, one packed line a lane."""
    at = 0
    for p in range(len(m)):
        for q in range(p + 1):
            for lane in range(count):
                out[first + lane, at + q] = -m[p, q, lane]
        at += p + 1


@fast_kernel
def _add_up(m: Singles, some: Singles, total: Singles) -> None:
    """Minus the sum over lanes, weighed by `some`, packed."""
    at = 0
    for p in range(len(m)):
        for q in range(p + 1):
            entry = np.float32(0)
            for lane in range(_LANES):
                entry -= some[lane] * m[p, q, lane]
            total[at + q] = entry
        at += p + 1


@fast_kernel
def _times(m: Singles, t: Singles, out: Singles) -> None:
    """out = -m t."""
    out[:] = 0
    for p in range(len(m)):
        for q in range(p):
            for lane in range(_LANES):
                out[p, lane] -= m[p, q, lane] * t[q, lane]
                out[q, lane] -= m[p, q, lane] * t[p, lane]
        for lane in range(_LANES):
            out[p, lane] -= m[p, p, lane] * t[p, lane]


@fast_kernel
def _diagonal(m: Singles, root: Singles, out: Singles) -> None:
    """The diagonal of -U m U': entries of `m`, of which there are most, are fetched once."""
    out[:] = 0
    for i in range(len(m)):
        for j in range(i + 1):
            for p in range(j + 1):
                part = root[p, i] * root[p, j] * np.float32(1 if i == j else 2)
                for lane in range(_LANES):
                    out[p, lane] -= part * m[i, j, lane]


@fast_kernel
def _corner(m: Singles, root: Singles, out: Singles) -> None:
    """The last coordinates of -U m U', packed, as many as `out` has room for."""
    k = int(np.sqrt(2 * len(out)))
    first = len(m) - k
    half = np.empty((k, _LANES), np.float32)
    out[:] = 0
    for a in range(k):
        half[:] = 0
        for j in range(k):
            for i in range(a, k):
                part = root[first + a, first + i]
                for lane in range(_LANES):
                    half[j, lane] -= part * m[first + max(i, j), first + min(i, j), lane]
        for b in range(a + 1):
            for j in range(b, k):
                part = root[first + b, first + j]
                for lane in range(_LANES):
                    out[a * (a + 1) // 2 + b, lane] += part * half[j, lane]


@fast_kernel
def _invert(m: Singles) -> None:
    """Lower triangles of `m` (row, column, lane) become minus their inverses: every coordinate is swept in turn.

    Sweeping k replaces m_pq by m_pq - m_pk m_kq / m_kk, m_pk by m_pk / m_kk and m_kk by -1 / m_kk (Goodnight 1979).
    """
    d = len(m)
    column, scaled, pivot = (
        np.empty((d, _LANES), np.float32),
        np.empty(_LANES, np.float32),
        np.empty(_LANES, np.float32),
    )
    for k in range(d):
        for p in range(d):
            for lane in range(_LANES):
                column[p, lane] = m[max(p, k), min(p, k), lane]
        for lane in range(_LANES):
            pivot[lane] = np.float32(1) / column[k, lane]
        for p in range(d):
            for lane in range(_LANES):
                scaled[lane] = column[p, lane] * pivot[lane]
            for q in range(p + 1):
                for lane in range(_LANES):
                    m[p, q, lane] -= scaled[lane] * column[q, lane]
        for p in range(d):
            for lane in range(_LANES):
                m[max(p, k), min(p, k), lane] = column[p, lane] * pivot[lane]
        for lane in range(_LANES):
            m[k, k, lane] = -pivot[lane]


@fast_parallel_kernel
def packed_times(packed: Singles, x: Floats, out: Floats) -> None:
    """out[i] += the first columns of the packed symmetric matrix i times x[i], as many as x[i] has numbers."""
    d, width = out.shape[1], x.shape[1]
    for i in prange(len(packed)):
        at = 0
        for p in range(d):
            total = 0.0
            for q in range(min(p + 1, width)):
                total += packed[i, at + q] * x[i, q]
            out[i, p] += total
            if p < width:
                for q in range(p):
                    out[i, q] += packed[i, at + q] * x[i, p]
            at += p + 1
