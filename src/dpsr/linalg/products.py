"""Products of a sparse matrix given by rows with thin blocks, eight columns at a time.

    add_rows_times    Y_i += sum_{e in row i} a_e X_{c(e)}                        Y += S X
    add_gram          the same, and then Z_{c(e)} += a_e Y_i                      Z += S' Y with the finished Y, in one pass
    add_dots          l_e += P_i . Q_{c(e)}                                       a low rank on the places of S

Blocks are tables of lines (`lanes.as_lines`). The rows are cut into PARTS by the shape of the matrix alone; each part
adds to its own Z, in the order of the data, and the parts are added in order: the bits do not depend on the threads.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import prange

from dpsr.linalg.compiled import parallel_kernel, threads_for, worth_threads
from dpsr.linalg.lanes import LINE, dots, gather, spread, zero_lines
from dpsr.linalg.pattern import Codes, Integers, row_ranges

Floats = npt.NDArray[np.float64]

PARTS = 16
"""Into how many parts the rows are cut, at most: threads that wait for others have a part to take."""

_ROOM = 1 << 28
"""Bytes that the sums of all parts may take together."""


def add_rows_times(indptr: Integers, columns: Codes, values: Floats, X: Floats, Y: Floats) -> None:
    """Y += S X for a table X of lines (n x 8) and Y (m x 8)."""
    with threads_for(len(values) * X.shape[1]):
        _add_rows_times(indptr, columns, values, X, Y)


def add_gram(indptr: Integers, columns: Codes, values: Floats, X: Floats, Y: Floats, Z: Floats) -> None:
    """Y += S X, then Z += S' Y."""
    parts = max(1, min(PARTS, _ROOM // max(len(X) * LINE, 1))) if worth_threads(len(values) * X.shape[1]) else 1
    sums = zero_lines(parts, len(X), np.float64)
    with threads_for(len(values) * X.shape[1]):
        _add_gram(indptr, columns, values, X, Y, sums, row_ranges(indptr, parts))
        _add_parts(sums, Z)


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
    indptr: Integers, columns: Codes, values: Floats, X: Floats, Y: Floats, sums: Floats, ranges: Integers
) -> None:
    for t in prange(len(sums)):
        for i in range(ranges[t], ranges[t + 1]):
            gather(columns, values, indptr[i], indptr[i + 1], X, Y[i])
            spread(columns, values, indptr[i], indptr[i + 1], Y[i], sums[t])


@parallel_kernel
def _add_parts(sums: Floats, Z: Floats) -> None:
    for j in prange(len(Z)):
        for part in sums:
            for c in range(Z.shape[1]):
                Z[j, c] += part[j, c]


@parallel_kernel
def _add_dots(indptr: Integers, columns: Codes, P: Floats, Q: Floats, products: Floats) -> None:
    for i in prange(len(indptr) - 1):
        dots(columns, P[i], Q, indptr[i], indptr[i + 1], products)
