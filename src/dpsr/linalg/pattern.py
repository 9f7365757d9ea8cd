"""The places of a sparse m x n matrix, by rows and by columns.

Rows are compressed (`indptr`, `columns`), columns ascending in a row. The same places by columns are
`column_indptr`, `rows`, and `places`: entry e of the column order is entry `places[e]` of the row order. Values are
kept in row order; whoever needs them by columns gathers them once. Built by a counting sort in O(m + n + nnz): ranges
of rows are counted, then placed, each by one thread. The order does not depend on how the rows were cut into ranges.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from numba import prange

from dpsr.linalg.compiled import kernel, parallel_kernel, threads_for

Integers = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Pattern:
    """Where a sparse matrix may be non-zero, ordered both ways."""

    indptr: Integers
    columns: Codes
    column_indptr: Integers
    rows: Codes
    places: Integers

    @classmethod
    def from_rows(cls, indptr: Integers, columns: Codes, n_columns: int) -> Pattern:
        """Both orders from the compressed rows."""
        with threads_for(len(columns)) as threads:
            ranges = row_ranges(indptr, threads)
            column_indptr, cursors = column_starts(indptr, columns, n_columns, ranges)
            return cls(indptr, columns, column_indptr, *_placed(indptr, columns, ranges, cursors))

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.indptr) - 1, len(self.column_indptr) - 1


def row_ranges(indptr: Integers, parts: int) -> Integers:
    """Bounds of `parts` ranges of rows with about as many entries each."""
    cuts = np.linspace(0, indptr[-1], parts + 1)[1:-1]
    return np.concatenate([[0], np.searchsorted(indptr, cuts), [len(indptr) - 1]]).astype(np.int64)


@parallel_kernel
def column_starts(indptr: Integers, columns: Codes, n: int, ranges: Integers) -> tuple[Integers, Integers]:
    """Where each column begins, and where each range of rows puts its first entry of each column."""
    parts = len(ranges) - 1
    cursors = np.zeros((parts, n), np.int64)
    for t in prange(parts):
        for e in range(indptr[ranges[t]], indptr[ranges[t + 1]]):
            cursors[t, np.uint32(columns[e])] += 1
    return accumulated(cursors), cursors


@kernel
def accumulated(cursors: Integers) -> Integers:
    """Turn counts by range and column into first places, in place; returns where the columns begin."""
    parts, n = cursors.shape
    column_indptr = np.zeros(n + 1, np.int64)
    at = 0
    for j in range(n):
        column_indptr[j] = at
        for t in range(parts):
            count = cursors[t, j]
            cursors[t, j] = at
            at += count
    column_indptr[n] = at
    return column_indptr


@parallel_kernel
def _placed(indptr: Integers, columns: Codes, ranges: Integers, cursors: Integers) -> tuple[Codes, Integers]:
    """The counting sort itself; rows stay ascending within a column."""
    rows = np.empty(len(columns), np.int32)
    places = np.empty(len(columns), np.int64)
    for t in prange(len(ranges) - 1):
        for i in range(ranges[t], ranges[t + 1]):
            for e in range(indptr[i], indptr[i + 1]):
                at = cursors[t, np.uint32(columns[e])]
                cursors[t, np.uint32(columns[e])] = at + 1
                rows[at], places[at] = i, e
    return rows, places
