"""The loops of Stage 2.

Items are renamed by popularity, the most popular first: item p scans, for each of its raters, the part of the rater's
list before p. Every pair is so met once, from its rarer side; the accumulator's busy end stays in the nearest cache;
and the whole costs sum_u c_u^2 / 2 additions for users with c_u ratings.

A candidate is one integer, (quanta of |s|) * 2^31 + (2^31 - 1 - index): larger is better, and a tie goes to the lower
index. Each thread keeps a heap of the best K candidates of every item and the heaps are merged at the end; under a
total order that merge does not depend on who found what.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import prange

from dpsr.linalg.compiled import kernel, parallel_kernel
from dpsr.linalg.pattern import Codes, Integers

Floats = npt.NDArray[np.float64]
Keys = npt.NDArray[np.int64]
Columns = tuple[npt.NDArray[np.uint32], Floats, Integers, Integers, Integers, Integers]

QUANTA = 2.0**31
"""Similarities are compared in steps of 1 / QUANTA."""

_INDEX_BITS = 31
_LAST = 2**31 - 1
_FAINTEST = 0.5 / QUANTA
"""Below this a similarity is zero."""


@parallel_kernel
def column_statistics(column_indptr: Integers, places: Integers, values: Floats) -> tuple[Floats, Floats, Floats]:
    """Mean, norm about the mean, and spread (largest minus smallest) of each column; zeros for an empty one."""
    n = len(column_indptr) - 1
    mean, norm, spread = np.zeros(n), np.zeros(n), np.zeros(n)
    for j in prange(n):
        first, last = column_indptr[j], column_indptr[j + 1]
        if first < last:
            low = high = values[places[first]]
            total = 0.0
            for e in range(first, last):
                value = values[places[e]]
                total += value
                low, high = min(low, value), max(high, value)
            centre = total / (last - first)
            squares = 0.0
            for e in range(first, last):
                squares += (values[places[e]] - centre) ** 2
            mean[j], norm[j], spread[j] = centre, np.sqrt(squares), high - low
    return mean, norm, spread


@kernel
def arrange(
    indptr: Integers,
    column_indptr: Integers,
    rows: Codes,
    places: Integers,
    values: Floats,
    mean: Floats,
    norm: Floats,
    order: Integers,
) -> Columns:
    """Rename the items `order[0], order[1], ...` to 0, 1, ... and list their normalised values user by user.

    Returns the users' lists (new names ascending, values), the column pointers by new name, and for each entry of a
    column where its rater's list begins and where the entry itself stands in it; last, `order`.
    """
    listed = np.empty(len(values), np.uint32)
    x = np.empty(len(values), np.float64)
    pointers = np.zeros(len(order) + 1, np.int64)
    begins = np.empty(len(values), np.int64)
    stands = np.empty(len(values), np.int64)
    cursor = indptr[:-1].copy()
    e = 0
    for p in range(len(order)):
        j = order[p]
        for f in range(column_indptr[j], column_indptr[j + 1]):
            i = rows[f]
            listed[cursor[i]] = p
            x[cursor[i]] = (values[places[f]] - mean[j]) / norm[j]
            begins[e], stands[e] = indptr[i], cursor[i]
            cursor[i] += 1
            e += 1
        pointers[p + 1] = e
    return listed, x, pointers, begins, stands, order


@kernel
def _accumulate(listed: npt.NDArray[np.uint32], x: Floats, first: int, last: int, weight: float, sums: Floats) -> None:
    """sums[listed] += weight * x over first..last. A list holds an item once, so four steps cannot collide."""
    q = first
    while q + 4 <= last:
        a, b, c, d = listed[q], listed[q + 1], listed[q + 2], listed[q + 3]
        sum_a = sums[a] + weight * x[q]
        sum_b = sums[b] + weight * x[q + 1]
        sum_c = sums[c] + weight * x[q + 2]
        sum_d = sums[d] + weight * x[q + 3]
        sums[a], sums[b], sums[c], sums[d] = sum_a, sum_b, sum_c, sum_d
        q += 4
    while q < last:
        sums[listed[q]] += weight * x[q]
        q += 1


@kernel
def _sift_down(keys: Keys, similarities: Floats, key: int, s: float, size: int) -> None:
    """Put (key, s) at the root of a min-heap of the given size and let it sink to its place."""
    at = 0
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        if child + 1 < size and keys[child + 1] < keys[child]:
            child += 1
        if keys[child] >= key:
            break
        keys[at], similarities[at] = keys[child], similarities[child]
        at = child
    keys[at], similarities[at] = key, s


@kernel
def _offer(keys: Keys, similarities: Floats, index: int, s: float) -> float:
    """Offer a neighbour to a heap; returns the |s| below which the heap needs no more offers."""
    quanta = int(np.rint(abs(s) * QUANTA))
    key = (quanta << _INDEX_BITS) + (_LAST - index)
    if quanta > 0 and key > keys[0]:
        _sift_down(keys, similarities, key, s, len(keys))
    return max(_FAINTEST, ((keys[0] >> _INDEX_BITS) - 0.5) / QUANTA)


@kernel
def _offer_both(
    p: int, q: int, sums: Floats, enough: Floats, keys: Keys, similarities: Floats, order: Integers
) -> None:
    """Offer the finished pair p, q to both items, unless it is too weak to be worth a look, and clear its sum."""
    s = sums[q]
    sums[q] = 0.0
    if abs(s) >= enough[p]:
        enough[p] = _offer(keys[p], similarities[p], order[q], s)
    if abs(s) >= enough[q]:
        enough[q] = _offer(keys[q], similarities[q], order[p], s)


@parallel_kernel
def strongest_pairs(
    listed: npt.NDArray[np.uint32],
    x: Floats,
    pointers: Integers,
    begins: Integers,
    stands: Integers,
    order: Integers,
    n: int,
    k: int,
    threads: int,
) -> tuple[Codes, Floats]:
    """The k strongest partners of each of n items, padded with -1 and 0."""
    live = len(order)
    keys = np.zeros((threads, live, k), np.int64)
    similarities = np.zeros((threads, live, k), np.float64)
    for t in prange(threads):
        sums = np.zeros(live, np.float64)
        enough = np.full(live, _FAINTEST)
        for p in range(t, live, threads):
            work = 0
            for e in range(pointers[p], pointers[p + 1]):
                _accumulate(listed, x, begins[e], stands[e], x[stands[e]], sums)
                work += stands[e] - begins[e]
            if work > p // 4:
                for q in range(p):
                    _offer_both(p, q, sums, enough, keys[t], similarities[t], order)
            else:  # few co-raters: walk their lists again rather than all items
                for e in range(pointers[p], pointers[p + 1]):
                    for f in range(begins[e], stands[e]):
                        _offer_both(p, int(listed[f]), sums, enough, keys[t], similarities[t], order)
    return _merged(keys, similarities, order, n)


@parallel_kernel
def _merged(keys: npt.NDArray[np.int64], similarities: Floats, order: Integers, n: int) -> tuple[Codes, Floats]:
    """One heap per item out of one per thread, emptied from the weakest on, under the items' own names."""
    threads, live, k = keys.shape
    items = np.full((n, k), np.int32(-1))
    strengths = np.zeros((n, k), np.float64)
    for p in prange(live):
        heap, values, j = keys[0, p], similarities[0, p], order[p]
        for t in range(1, threads):
            for c in range(k):
                if keys[t, p, c] > heap[0]:
                    _sift_down(heap, values, keys[t, p, c], similarities[t, p, c], k)
        for size in range(k, 0, -1):
            if heap[0] > 0:
                items[j, size - 1] = _LAST - (heap[0] & _LAST)
                strengths[j, size - 1] = values[0]
            _sift_down(heap, values, heap[size - 1], values[size - 1], size - 1)
    return items, strengths
