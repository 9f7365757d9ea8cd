"""Item columns centred by their own mean and of length one, once by item and once by user.

    x_ij = (r_ij - mean_j) / sqrt( sum_{i rated j} (r_ij - mean_j)^2 )

A column whose values lie within 2^-30 of the scale's width of each other is constant: it has no direction and drops
out. The others are renamed by popularity, the most popular first: item p = 0, 1, ... is `order[p]`. By item the x are
doubles with their raters ascending. By user they are floats, names ascending, so that the items more popular than
p come before p in every list.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from numba import prange

from dpsr.linalg.compiled import parallel_kernel
from dpsr.linalg.pattern import Codes, Integers, column_starts, row_ranges
from dpsr.types import PrivateRatings

Floats = npt.NDArray[np.float64]
Floats32 = npt.NDArray[np.float32]
Names = npt.NDArray[np.uint32]

CONSTANT = 2.0**-30
"""The spread, as a share of the scale's width, up to which a column counts as constant."""


@dataclass(frozen=True, eq=False)
class Columns:
    """The columns with a direction: that of p is `rows` and `x` from `first[p]` to `last[p]`."""

    order: Integers
    first: Integers
    last: Integers
    rows: Codes
    x: Floats


@dataclass(frozen=True, eq=False)
class Lists:
    """The same by user: the list of user u is `names` and `x` from `indptr[u]` to `last[u]`."""

    indptr: Integers
    last: Integers
    names: Names
    x: Floats32


def centred(private: PrivateRatings, threads: int) -> tuple[Columns, Lists]:
    """Both orders of the centred columns. The bits do not depend on the threads."""
    mask = private.mask
    ranges = row_ranges(mask.indptr, threads)
    indptr, cursors = column_starts(mask.indptr, mask.items, mask.n_items, ranges)
    rows, x = _by_item(mask.indptr, mask.items, private.values, ranges, cursors)
    spread = _normalised(indptr, x)
    live = np.flatnonzero(spread > CONSTANT * private.scale.width)
    order = live[np.argsort(-np.diff(indptr)[live], kind="stable")]
    columns = Columns(order, indptr[order], indptr[order + 1], rows, x)
    lists = _by_user(columns.first, columns.last, rows, x, mask.indptr, ranges)
    return columns, Lists(mask.indptr, *lists)


@parallel_kernel
def _by_item(
    indptr: Integers, items: Codes, values: Floats, ranges: Integers, cursors: Integers
) -> tuple[Codes, Floats]:
    """Raters and ratings item by item, raters ascending: a counting sort."""
    rows = np.empty(len(items), np.int32)
    x = np.empty(len(items), np.float64)
    for t in prange(len(ranges) - 1):
        for i in range(ranges[t], ranges[t + 1]):
            for e in range(indptr[i], indptr[i + 1]):
                at = cursors[t, np.uint32(items[e])]
                cursors[t, np.uint32(items[e])] = at + 1
                rows[at], x[at] = i, values[e]
    return rows, x


@parallel_kernel
def _normalised(indptr: Integers, x: Floats) -> Floats:
    """Centre and normalise each column in place; returns its spread, largest minus smallest."""
    spread = np.zeros(len(indptr) - 1)
    for j in prange(len(indptr) - 1):
        column = x[indptr[j] : indptr[j + 1]]
        if len(column):
            low, high, total = column[0], column[0], 0.0
            for value in column:
                total += value
                low, high = min(low, value), max(high, value)
            centre, squares = total / len(column), 0.0
            for value in column:
                squares += (value - centre) ** 2
            spread[j] = high - low
            if squares > 0.0:
                norm = np.sqrt(squares)
                for e in range(len(column)):
                    column[e] = (column[e] - centre) / norm
    return spread


@parallel_kernel
def _by_user(
    first: Integers, last: Integers, rows: Codes, x: Floats, indptr: Integers, ranges: Integers
) -> tuple[Integers, Names, Floats32]:
    """Ends of the lists, names and values: each thread deals the columns out to its own range of users."""
    ends = indptr[:-1].copy()
    names = np.empty(len(rows), np.uint32)
    floats = np.empty(len(rows), np.float32)
    for t in prange(len(ranges) - 1):
        for p in range(len(first)):
            e = first[p] + np.searchsorted(rows[first[p] : last[p]], ranges[t])
            while e < last[p] and rows[e] < ranges[t + 1]:
                at = ends[np.uint32(rows[e])]
                ends[np.uint32(rows[e])] = at + 1
                names[at], floats[at] = p, x[e]
                e += 1
    return ends, names, floats
