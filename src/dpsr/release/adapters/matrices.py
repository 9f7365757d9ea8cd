"""The private ratings as a sparse matrix: users are rows, items are columns.

A cell that was rated is stored, also where its private rating is 0; a cell that is not stored was not rated. On a scale
that contains 0, do not call `eliminate_zeros`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dpsr.errors import ParameterError
from dpsr.release.adapters.ids import IdMap

if TYPE_CHECKING:
    from dpsr.release.release import Release


class UserItems(NamedTuple):
    """What implicit's models are fitted on (`matrix`, float32, users x items), and the way back to ids."""

    matrix: Any
    ids: IdMap


def csr(release: Release, dtype: Any = np.float64) -> Any:
    """A `scipy.sparse.csr_array` of the private ratings."""
    from scipy.sparse import csr_array

    mask = release.mask
    columns = mask.items.copy(), mask.indptr.copy()  # the mask's own arrays are read-only
    return csr_array((release.ratings.astype(dtype), *columns), shape=mask.shape)


def user_items(release: Release, liked_from: float | None = None) -> UserItems:
    """Weights for implicit: the private ratings, or one for each that is at least `liked_from` and nothing else.

    implicit reads a weight as confidence that somebody likes an item, also of low ratings; `liked_from` says from which
    rating on that is so.
    """
    from scipy.sparse import csr_matrix

    matrix = csr_matrix(csr(release, np.float32))  # implicit asks for the matrix interface and 32-bit indices
    matrix.indptr = matrix.indptr.astype(np.int32) if matrix.nnz < 2**31 else matrix.indptr
    if liked_from is None:
        return UserItems(matrix, release.ids)
    liked = matrix.data >= np.float32(liked_from)
    if not liked.any():
        raise ParameterError(
            f"no private rating is {liked_from:g} or more on the scale {release.scale}. Choose a lower liked_from; "
            "private ratings lie closer together than raw ones."
        )
    kept = np.concatenate([[0], np.cumsum(liked, dtype=np.int64)]).astype(matrix.indptr.dtype)
    ones = np.ones(int(liked.sum()), dtype=np.float32)
    return UserItems(csr_matrix((ones, matrix.indices[liked], kept[matrix.indptr]), shape=matrix.shape), release.ids)
