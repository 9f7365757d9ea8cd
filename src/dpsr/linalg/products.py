"""Products of a sparse matrix with a thin block, and of two thin factors on sparse places.

    rows_times_block      Y_i  = sum_{e in row i} a_e X_{c(e)}        (A X from compressed rows, A' Y from columns)
    factors_at            l_ij = P_i . Q_j   for the places (i, j)

One thread owns each output row and adds in the order of the data, so the bits do not depend on the thread count.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import prange

from dpsr.linalg.compiled import kernel, parallel_kernel, worth_threads
from dpsr.linalg.pattern import Codes, Integers

Floats = npt.NDArray[np.float64]


def rows_times_block(indptr: Integers, columns: Codes, values: Floats, X: Floats) -> Floats:
    """A X for compressed rows A (m x n) and a block X (n x b); small products are not worth a parallel launch."""
    Y = np.zeros((len(indptr) - 1, X.shape[1]))
    add = _add_rows_in_parallel if worth_threads(len(values) * X.shape[1]) else _add_rows
    add(indptr, columns, values, np.ascontiguousarray(X), Y)
    return Y


@kernel
def _add_row(columns: Codes, values: Floats, X: Floats, y: Floats) -> None:
    for e in range(len(columns)):
        x, a = X[np.uint32(columns[e])], values[e]  # unsigned: no test for a negative index in the loop
        for c in range(len(x)):
            y[c] += a * x[c]


@kernel
def _add_rows(indptr: Integers, columns: Codes, values: Floats, X: Floats, Y: Floats) -> None:
    for i in range(len(Y)):
        _add_row(columns[indptr[i] : indptr[i + 1]], values[indptr[i] : indptr[i + 1]], X, Y[i])


@parallel_kernel
def _add_rows_in_parallel(indptr: Integers, columns: Codes, values: Floats, X: Floats, Y: Floats) -> None:
    for i in prange(len(Y)):
        _add_row(columns[indptr[i] : indptr[i + 1]], values[indptr[i] : indptr[i + 1]], X, Y[i])


@parallel_kernel
def factors_at(indptr: Integers, columns: Codes, P: Floats, Q: Floats) -> Floats:
    """P_i . Q_j for every place (i, j), in row order."""
    products = np.empty(len(columns))
    for i in prange(len(indptr) - 1):
        p = P[i]
        for e in range(indptr[i], indptr[i + 1]):
            q = Q[np.uint32(columns[e])]
            total = 0.0
            for c in range(len(p)):
                total += p[c] * q[c]
            products[e] = total
    return products
