"""Products of a sparse matrix given by rows with thin blocks, eight columns at a time.

    add_rows_times    Y_i += sum_{e in row i} a_e X_{c(e)}       Y += S X
    add_gram          the same, then Z_{c(e)} += a_e Y_i         Z += S' Y with the finished Y, in one pass
    add_dots          l_e += P_i . Q_{c(e)}                      a low rank on the places of S

Blocks are tables of lines (`lanes.as_lines`). The rows are cut into PARTS by the shape of the matrix alone; each part
adds to its own Z, in the order of the data, and the parts are added in order: the bits do not depend on the threads.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import prange

from dpsr.linalg.compiled import kernel, parallel_kernel, threads_for, worth_threads
from dpsr.linalg.lanes import LINE, dots, gather, spread, zero_lines
from dpsr.linalg.pattern import Codes, Integers, row_ranges

Floats = npt.NDArray[np.float64]

PARTS = 8
"""Into how many parts the rows are cut, at most."""

_ROOM = 1 << 28
"""Bytes that the sums of all parts may take together."""


def add_rows_times(indptr: Integers, columns: Codes, values: Floats, X: Floats, Y: Floats) -> None:
    """Y += S X for a table X of lines (n x 8) and Y (m x 8)."""
    with threads_for(len(values) * X.shape[1]):
        _add_rows_times(indptr, columns, values, X, Y)


def gram_room(n_columns: int, n_places: int) -> Floats:
    """The tables of sums for `add_gram`, one a part."""
    worth = worth_threads(n_places * LINE // 8)
    return zero_lines(max(1, min(PARTS, _ROOM // max(n_columns * LINE, 1))) if worth else 1, n_columns, np.float64)


def add_gram(indptr: Integers, columns: Codes, values: Floats, X: Floats, Y: Floats, Z: Floats, room: Floats) -> None:
    """Y += S X, then Z += S' Y."""
    with threads_for(len(values) * X.shape[1]):
        _add_gram(indptr, columns, values, X, Y, Z, room, row_ranges(indptr, len(room)))


def add_dots(indptr: Integers, columns: Codes, P: Floats, Q: Floats, products: Floats) -> None:
    """products += P_i . Q_j at every place (i, j), in row order."""
    with threads_for(len(columns) * P.shape[1]):
        _add_dots(indptr, columns, P, Q, products)


@parallel_kernel
def _add_rows_times(indptr: Integers, columns: Codes, values: Floats, X: Floats, Y: Floats) -> None:
    for i in prange(len(Y)):
        gather(columns, values, indptr[i], indptr[i + 1], X, Y[i])


@parallel_kernel
def _add_gram(
    indptr: Integers,
    columns: Codes,
    values: Floats,
    X: Floats,
    Y: Floats,
    Z: Floats,
    room: Floats,
    ranges: Integers,
) -> None:
    for t in prange(len(room)):
        _clear(room[t])
        for i in range(ranges[t], ranges[t + 1]):
            gather(columns, values, indptr[i], indptr[i + 1], X, Y[i])
            spread(columns, values, indptr[i], indptr[i + 1], Y[i], room[t])
    _add_all(room, Z)


@kernel
def _clear(table: Floats) -> None:
    table[:] = 0.0


@kernel
def _add_all(parts: Floats, Z: Floats) -> None:
    """Z += the parts, one after the other; not worth a second start of the threads."""
    for part in parts:
        for j in range(len(Z)):
            for c in range(Z.shape[1]):
                Z[j, c] += part[j, c]


@parallel_kernel
def _add_dots(indptr: Integers, columns: Codes, P: Floats, Q: Floats, products: Floats) -> None:
    for i in prange(len(indptr) - 1):
        dots(columns, P[i], Q, indptr[i], indptr[i + 1], products)


@kernel
def row_and_column_sums(indptr: Integers, columns: Codes, values: Floats, n: int) -> tuple[Floats, Floats]:
    """Sums of S by row and by column, each in the order of the rows."""
    by_row, by_column = np.zeros(len(indptr) - 1), np.zeros(n)
    for i in range(len(by_row)):
        for e in range(indptr[i], indptr[i + 1]):
            by_row[i] += values[e]
            by_column[np.uint32(columns[e])] += values[e]
    return by_row, by_column
