"""Who rated what: ids and their codes, who is in a table and how often, and the observed cells themselves.

All of it is public at the level of values. Ratings are kept user by user (compressed rows), items ascending within a
user, users and items coded by the sorted order of their ids. The order is canonical, so nothing about the order of the
input rows survives.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dpsr.arrays import Bools, Codes, Ints

Ids: TypeAlias = Sequence[str] | Sequence[int] | npt.NDArray[np.generic] | pa.Array


class Vocabularies:
    """Users and items by their ids, ascending; an id's code is its position."""

    user_ids: pa.Array
    item_ids: pa.Array

    @property
    def n_users(self) -> int:
        return len(self.user_ids)

    @property
    def n_items(self) -> int:
        return len(self.item_ids)

    @property
    def shape(self) -> tuple[int, int]:
        return self.n_users, self.n_items

    def user_codes(self, ids: Ids) -> Ints:
        """The code of each user id, -1 where the id is unknown."""
        return codes_of(ids, self.user_ids)

    def item_codes(self, ids: Ids) -> Ints:
        """The code of each item id, -1 where the id is unknown."""
        return codes_of(ids, self.item_ids)


@dataclass(frozen=True, eq=False)
class Census(Vocabularies):
    """Who is in a rating table and how often: small enough to hold whatever the size of the table."""

    user_ids: pa.Array
    item_ids: pa.Array
    user_counts: Ints
    item_counts: Ints
    timed: bool = False

    @property
    def n_ratings(self) -> int:
        return int(self.user_counts.sum())


@dataclass(frozen=True, eq=False)
class Mask(Vocabularies):
    """The observed cells of an m x n rating matrix.

    `user_ids` and `item_ids` are the vocabularies (int64 or string, ascending). The ratings of user u are the
    positions `indptr[u]:indptr[u+1]` of every column of the table. `timestamps` (Unix seconds) are public too.
    """

    user_ids: pa.Array
    item_ids: pa.Array
    indptr: Ints
    items: Codes
    timestamps: Ints | None = None

    def __post_init__(self) -> None:
        for column in (self.indptr, self.items, self.timestamps):
            if column is not None:
                column.setflags(write=False)

    @classmethod
    def of_cells(cls, cells: Ints, user_ids: pa.Array, item_ids: pa.Array, timestamps: Ints | None = None) -> Mask:
        """The mask of strictly ascending cells `u * n + j`; users and items without a rating stay in the vocabulary."""
        n = len(item_ids)
        indptr = np.searchsorted(cells, n * np.arange(len(user_ids) + 1)).astype(np.int64)
        return cls(user_ids, item_ids, indptr, (cells % n).astype(np.int32), timestamps)

    @property
    def n_ratings(self) -> int:
        return len(self.items)

    @cached_property
    def users(self) -> Codes:
        """The user code of every rating."""
        return np.repeat(np.arange(self.n_users, dtype=np.int32), self.user_counts)

    @cached_property
    def user_counts(self) -> Ints:
        return np.diff(self.indptr)

    @cached_property
    def item_counts(self) -> Ints:
        return np.bincount(self.items, minlength=self.n_items).astype(np.int64)

    @cached_property
    def census(self) -> Census:
        """Who is in the table, and how often."""
        return Census(self.user_ids, self.item_ids, self.user_counts, self.item_counts, self.timestamps is not None)

    def id_pairs(self) -> tuple[pa.Array, pa.Array]:
        """The ids of the user and of the item of every rating."""
        return self.user_ids.take(pa.array(self.users)), self.item_ids.take(pa.array(self.items))

    def to_arrow(self, **columns: Any) -> pa.Table:
        """One row a rating: user, item, these columns, and the timestamp where there is one."""
        user, item = self.id_pairs()
        times = {} if self.timestamps is None else {"timestamp": self.timestamps}
        return pa.table({"user": user, "item": item, **columns, **times})

    def select(self, rows: Bools) -> Mask:
        """The same users and items with only the chosen ratings."""
        kept = np.concatenate([[0], np.cumsum(rows, dtype=np.int64)])
        times = None if self.timestamps is None else self.timestamps[rows]
        return Mask(self.user_ids, self.item_ids, kept[self.indptr], self.items[rows], times)


def codes_of(ids: Ids, vocabulary: pa.Array) -> Ints:
    """The position of each id in `vocabulary`, -1 where it is not in it; nothing passed as an id is an error."""
    array = _arrow(ids)
    if array is None or array.type != vocabulary.type:
        array = pa.array([_as(vocabulary.type, one) for one in ids], type=vocabulary.type)
    found = pc.index_in(array, value_set=vocabulary)
    return found.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)


def id_array(ids: Ids) -> pa.Array:
    """Ids as an Arrow array, whatever they came in; none at all are text."""
    if isinstance(ids, pa.Array):
        return ids
    listed = ids.tolist() if isinstance(ids, np.ndarray) else list(ids)
    return pa.array(listed) if listed else pa.array([], type=pa.string())


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
    if one is None or isinstance(one, bool | np.bool_):  # nobody, and not a person called "None" or "True"
        return None
    text = str(int(one)) if isinstance(one, float | np.floating) and float(one).is_integer() else str(one)
    if pa.types.is_string(kind):
        return text
    try:
        number = int(text)
    except ValueError:
        return None
    return number if -(2**63) <= number < 2**63 else None
