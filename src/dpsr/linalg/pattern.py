"""The places of a sparse m x n matrix, by rows and by columns.

Rows are compressed (`indptr`, `columns`), columns ascending in a row. The same places by columns are
`column_indptr`, `rows`, and `places`: entry e of the column order is entry `places[e]` of the row order. Values are
kept in row order; whoever needs them by columns gathers them once. Built by a counting sort in O(m + n + nnz).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpsr.linalg.compiled import kernel

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
        return cls(indptr, columns, *_by_columns(indptr, columns, n_columns))

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.indptr) - 1, len(self.column_indptr) - 1


@kernel
def _by_columns(indptr: Integers, columns: Codes, n: int) -> tuple[Integers, Codes, Integers]:
    """Counting sort of the places by column; rows stay ascending within a column."""
    column_indptr = np.zeros(n + 1, np.int64)
    for e in range(len(columns)):
        column_indptr[columns[e] + 1] += 1
    for j in range(n):
        column_indptr[j + 1] += column_indptr[j]
    cursor = column_indptr[:-1].copy()
    rows = np.empty(len(columns), np.int32)
    places = np.empty(len(columns), np.int64)
    for i in range(len(indptr) - 1):
        for e in range(indptr[i], indptr[i + 1]):
            j = columns[e]
            rows[cursor[j]] = i
            places[cursor[j]] = e
            cursor[j] += 1
    return column_indptr, rows, places
