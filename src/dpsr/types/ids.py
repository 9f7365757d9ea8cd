"""Ids and their codes: the position of an id in its vocabulary."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Ids: TypeAlias = Sequence[str] | Sequence[int] | npt.NDArray[np.generic] | pa.Array


class Coded:
    """Something with vocabularies of users and items."""

    user_ids: pa.Array
    item_ids: pa.Array

    def user_codes(self, ids: Ids) -> npt.NDArray[np.int64]:
        """The code of each user id, -1 where the id is unknown."""
        return codes_of(ids, self.user_ids)

    def item_codes(self, ids: Ids) -> npt.NDArray[np.int64]:
        """The code of each item id, -1 where the id is unknown."""
        return codes_of(ids, self.item_ids)


def codes_of(ids: Ids, vocabulary: pa.Array) -> npt.NDArray[np.int64]:
    """The position of each id in `vocabulary`, -1 where it is not in it; nothing passed as an id is an error."""
    array = _arrow(ids)
    if array is None or array.type != vocabulary.type:
        array = pa.array([_as(vocabulary.type, one) for one in ids], type=vocabulary.type)
    found = pc.index_in(array, value_set=vocabulary)
    return found.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)


def _arrow(ids: Ids) -> pa.Array | None:
    """Ids as an Arrow array, at the speed of Arrow; None for what it cannot hold in one type."""
    if isinstance(ids, pa.Array):
        return ids
    try:  # a list goes straight to Arrow: numpy would pad every string to the longest one
        array = pa.array(ids if isinstance(ids, list | tuple) else np.asarray(ids))
        return array.cast(pa.int64()) if pa.types.is_integer(array.type) else array
    except (pa.ArrowException, OverflowError, ValueError):
        return None


def _as(kind: pa.DataType, one: object) -> int | str | None:
    """One id as the vocabulary spells it: 42, 42.0 and "42" are the same number, and the same name."""
    one = one.as_py() if isinstance(one, pa.Scalar) else one
    text = str(int(one)) if isinstance(one, float | np.floating) and float(one).is_integer() else str(one)
    if pa.types.is_string(kind):
        return text
    try:
        number = int(text)
    except ValueError:
        return None
    return number if -(2**63) <= number < 2**63 else None
