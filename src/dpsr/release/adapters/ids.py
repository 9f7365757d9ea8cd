"""From the ids of a release to the codes that numerical libraries work on, and back.

The code of a user is its row, the code of an item its column, both counted from 0 in the order of the sorted ids.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dpsr.errors import ParameterError
from dpsr.types import Mask


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
