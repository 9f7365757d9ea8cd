"""The private ratings as a sparse matrix, users its rows and items its columns, and the way from ids to these and back.

Codes are counted from 0 in the order of the sorted ids.

A cell that was rated is stored, also where its private rating is 0; a cell that is not stored was not rated. On a scale
that contains 0, do not call `eliminate_zeros`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dpsr.errors import ParameterError
from dpsr.types import Mask

if TYPE_CHECKING:
    from dpsr.release.release import Release


@dataclass(frozen=True, eq=False)
class IdMap:
    """Ids to codes and codes to ids, for one release."""

    mask: Mask

    def user_code(self, user: str | int) -> int:
        """The row of a user; an unknown one is an error."""
        return _known(self.mask.user_codes([user]), "user", user)

    def item_code(self, item: str | int) -> int:
        """The column of an item; an unknown one is an error."""
        return _known(self.mask.item_codes([item]), "item", item)

    def users(self, codes: npt.ArrayLike) -> list[Any]:
        """The ids of users; codes may be a list, an array or a tensor."""
        return _ids(codes, self.mask.user_ids)

    def items(self, codes: npt.ArrayLike) -> list[Any]:
        """The ids of items, for example of what a library recommends."""
        return _ids(codes, self.mask.item_ids)


def _known(codes: npt.NDArray[np.int64], role: str, one: str | int) -> int:
    if codes[0] < 0:
        raise ParameterError(f"the {role} {one!r} is not in this release. `mask.{role}_ids` lists those that are.")
    return int(codes[0])


def _ids(codes: npt.ArrayLike, vocabulary: pa.Array) -> list[Any]:
    """Negative codes, which some libraries use to fill up short lists, are passed over."""
    places = np.atleast_1d(np.asarray(codes))
    if not np.issubdtype(places.dtype, np.integer) or (len(places) and int(places.max()) >= len(vocabulary)):
        raise ParameterError(
            f"codes are whole numbers below {len(vocabulary):,}, found {places.dtype} up to {places.max(initial=0)}. "
            "Pass the codes a library returned for a matrix of this release."
        )
    return list(vocabulary.take(pa.array(places[places >= 0])).to_pylist())


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
