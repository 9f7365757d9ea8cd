"""Normal equations: Gram matrices of Kronecker products of rows, without forming the products, and inverses."""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt
from scipy.linalg import lapack

from dpsr.arrays import Floats, Singles

_PIECE = 2048
"""Rows whose products are held at a time."""


def outer_gram(left: Floats, right: Floats, precision: Floats) -> Floats:
    """sum_g precision_g (left_g x right_g)(left_g x right_g)', x the Kronecker product, without forming the rows.

    In single precision: it leads the way to a solution and says how much is known, and is no part of either.
    """
    (i, _, at_l), (j, _, at_r) = _pairs(left.shape[1]), _pairs(right.shape[1])
    packed = np.zeros((len(i), len(j)))
    some = right.any(axis=1) & left.any(axis=1)  # those nobody rated, or who rated nothing, add nothing
    if not some.all():
        left, right, precision = left[some], right[some], precision[some]
    for first in range(0, len(left), _PIECE):
        piece = slice(first, first + _PIECE)
        packed += (_squares(left[piece]) * precision[piece].astype(np.float32)) @ _squares(right[piece]).T
    size = left.shape[1] * right.shape[1]
    return packed[at_l[:, None, :, None], at_r[None, :, None, :]].reshape(size, size)


def _squares(rows: Floats) -> Singles:
    """The products of any two coordinates, each pair once, one line a pair."""
    i, j, _ = _pairs(rows.shape[1])
    columns = rows.T.astype(np.float32, order="C")
    return columns[i] * columns[j]


@cache
def _pairs(d: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Both coordinates of each line of `_squares`, and on which line the product of i and j stands."""
    at, (i, j) = np.empty((d, d), dtype=np.int64), np.tril_indices(d)
    at[i, j] = at[j, i] = np.arange(len(i))
    return i, j, at


def inverse(A: Floats) -> Floats:
    """A^-1 by Cholesky's factors: a third of the work of an inverse that does not know that A is positive definite.

    Where rounding has left A not quite so, it is inverted as any other matrix.
    """
    factor, failed = lapack.dpotrf(A, lower=1)
    if failed:
        return np.asarray(np.linalg.inv(A))
    half, _ = lapack.dpotri(factor, lower=1, overwrite_c=1)
    return np.asarray(half + np.tril(half, -1).T)
