"""The K strongest partners of each item, exactly, out of what was proposed in single precision.

Let t be the K-th largest proposed |s'| of an item, and e the bound of |s' - s|. K partners have |s| >= t - e. A partner
with |s'| < t - 2e has |s| < t - e and is none of the K strongest. So if everything that was not proposed lies below
t - 2e, the proposals from t - 2e up contain the answer: only they are computed again, in doubles, over the raters in
ascending order, and ranked.

Where that cannot be shown (too many near-ties for the room, or fewer than K partners worth proposing) the item gets a
second look: its similarities with all items as doubles of the same floats, wrong by at most SECOND_ERROR, under
the same rule. Either way the answer is that of double precision alone, and does not depend on threads or tiles.

Similarities are compared on a grid, |s| counting as rint(|s| 2^31) quanta: values equal in real numbers must tie.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import prange

from dpsr.denoise.columns import Columns, Floats, Floats32, Lists, Names
from dpsr.denoise.heap import INDEX_BITS, LAST, Keys, keep, take_weakest
from dpsr.denoise.proposals import Proposals, weakness
from dpsr.linalg.compiled import kernel, parallel_kernel
from dpsr.linalg.pattern import Codes, Integers

QUANTA = 2.0**31
"""Similarities are compared in steps of 1 / QUANTA."""

SECOND_ERROR = 3 * 2.0**-24
"""Two factors rounded to floats, products and sums in doubles: up to 2^29 raters."""

_MUCH_SHORTER = 16
"""From this ratio of lengths on, looking the raters of one item up among the other's beats walking them all."""


def settle(columns: Columns, lists: Lists, proposals: Proposals, n: int, k: int, threads: int) -> tuple[Codes, Floats]:
    """Partners and similarities of each of n items under their own names, padded with -1 and 0."""
    items, similarities = np.full((n, k), -1, np.int32), np.zeros((n, k))
    names = np.full(n, -1, np.int64)
    names[columns.order] = np.arange(len(columns.order))
    by_item = columns.order, names, columns.first, columns.last, columns.rows, columns.x
    by_user = lists.indptr, lists.last, lists.names, lists.x
    _settled(*by_item, *by_user, proposals.keys, proposals.error, items, similarities, threads)
    return items, similarities


@parallel_kernel
def _settled(
    order: Integers,
    name_of: Integers,
    first: Integers,
    last: Integers,
    rows: Codes,
    x: Floats,
    list_indptr: Integers,
    list_last: Integers,
    names: Names,
    floats: Floats32,
    keys: npt.NDArray[np.int64],
    error: float,
    items: Codes,
    similarities: Floats,
    threads: int,
) -> None:
    """Items are dealt out to the threads."""
    live, k = keys.shape[1], items.shape[1]
    for t in prange(threads):
        dense, sums, met = np.zeros(len(list_last)), np.zeros(live), np.full(live, -1, np.int64)
        chosen, best = np.empty(live, np.int64), np.empty(k, np.int64)
        for p in range(t, live, threads):
            raters, weights = rows[first[p] : last[p]], x[first[p] : last[p]]
            count = _proposed(keys[:, p], k, error, chosen)
            if count == 0:
                count = _met(p, raters, weights, list_indptr, list_last, names, floats, sums, met, chosen)
                count = _strong(sums, best, chosen, count)
            for e in range(len(raters)):
                dense[np.uint32(raters[e])] = weights[e]
            best[:] = 0
            for q in chosen[:count]:
                sums[q] = _similarity(raters, weights, dense, rows[first[q] : last[q]], x[first[q] : last[q]])
                _keep(best, sums[q], order[q])
            for u in raters:
                dense[np.uint32(u)] = 0.0
            _write(best, name_of, sums, items[order[p]], similarities[order[p]])
            for q in chosen[:count]:
                sums[q] = 0.0


@kernel
def _proposed(keys: npt.NDArray[np.int64], k: int, error: float, chosen: Integers) -> int:
    """Put the proposals that contain the k strongest in `chosen`; returns how many, 0 if that cannot be shown."""
    size = keys.shape[1]
    ranked = np.sort(keys.ravel())[::-1]
    limit = float(weakness(ranked[k - 1])) - 2 * error
    if limit <= error or limit <= weakness(ranked[size - 1]):
        return 0
    count = 0
    while weakness(ranked[count]) >= limit:
        chosen[count] = LAST - (ranked[count] & LAST)
        count += 1
    return count


@kernel
def _met(
    p: int,
    raters: Codes,
    weights: Floats,
    list_indptr: Integers,
    list_last: Integers,
    names: Names,
    floats: Floats32,
    sums: Floats,
    met: Integers,
    chosen: Integers,
) -> int:
    """The similarities of p with all items in `sums`, those it shares a rater with in `chosen`; returns how many."""
    count = 0
    for r in range(len(raters)):
        weight = np.float64(np.float32(weights[r]))
        for e in range(list_indptr[raters[r]], list_last[raters[r]]):
            q = names[e]
            sums[q] += weight * np.float64(floats[e])
            if met[q] != p and q != p:
                met[q] = p
                chosen[count] = q
                count += 1
    sums[p] = 0.0
    return count


@kernel
def _strong(sums: Floats, best: Keys, chosen: Integers, count: int) -> int:
    """Of `count` chosen, keep those that may be among the strongest, as many as `best` has room for; clear the sums."""
    best[:] = 0
    for q in chosen[:count]:
        _keep(best, sums[q], q)
    limit = ((best[0] >> INDEX_BITS) - 1) / QUANTA - 2 * SECOND_ERROR
    kept = 0
    for q in chosen[:count]:
        if abs(sums[q]) >= limit:
            chosen[kept] = q
            kept += 1
        sums[q] = 0.0
    return kept


@kernel
def _similarity(raters: Codes, weights: Floats, dense: Floats, others: Codes, x: Floats) -> float:
    """The product of two columns; `dense` is the first one written out. A zero in between changes no bit."""
    total = 0.0
    if _MUCH_SHORTER * len(raters) < len(others):
        for r in range(len(raters)):
            at = np.searchsorted(others, raters[r])
            if at < len(others) and others[at] == raters[r]:
                total += weights[r] * x[at]
    else:
        for e in range(len(others)):
            total += dense[np.uint32(others[e])] * x[e]
    return total


@kernel
def _keep(best: Keys, s: float, index: int) -> None:
    """Offer a similarity by its quanta; zeros are nobody's neighbours."""
    quanta = int(np.rint(abs(s) * QUANTA))
    if quanta > 0:
        keep(best, quanta, index)


@kernel
def _write(best: Keys, name_of: Integers, sums: Floats, items: Codes, similarities: Floats) -> None:
    """Empty the heap from the weakest on."""
    for size in range(len(best), 0, -1):
        key = take_weakest(best, size)
        if key > 0:
            items[size - 1] = LAST - (key & LAST)
            similarities[size - 1] = sums[name_of[items[size - 1]]]
