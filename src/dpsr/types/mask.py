"""Who rated what: the public half of a rating table.

Ratings are kept user by user (compressed rows), items ascending within a user, users and items coded by the
sorted order of their ids. The order is canonical, so nothing about the order of the input rows survives.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dpsr.types.census import Census
from dpsr.types.ids import Coded


@dataclass(frozen=True, eq=False)
class Mask(Coded):
    """The observed cells of an m x n rating matrix. Public by the definition of the promise.

    `user_ids` and `item_ids` are the vocabularies (int64 or string, ascending). The ratings of user u are the
    positions `indptr[u]:indptr[u+1]` of every column of the table. `timestamps` (Unix seconds) are public too.
    """

    user_ids: pa.Array
    item_ids: pa.Array
    indptr: npt.NDArray[np.int64]
    items: npt.NDArray[np.int32]
    timestamps: npt.NDArray[np.int64] | None = None

    def __post_init__(self) -> None:
        for column in (self.indptr, self.items, self.timestamps):
            if column is not None:
                column.setflags(write=False)

    @property
    def n_users(self) -> int:
        return len(self.user_ids)

    @property
    def n_items(self) -> int:
        return len(self.item_ids)

    @property
    def n_ratings(self) -> int:
        return len(self.items)

    @property
    def shape(self) -> tuple[int, int]:
        return self.n_users, self.n_items

    @cached_property
    def users(self) -> npt.NDArray[np.int32]:
        """The user code of every rating."""
        return np.repeat(np.arange(self.n_users, dtype=np.int32), self.user_counts)

    @cached_property
    def user_counts(self) -> npt.NDArray[np.int64]:
        return np.diff(self.indptr)

    @cached_property
    def item_counts(self) -> npt.NDArray[np.int64]:
        return np.bincount(self.items, minlength=self.n_items).astype(np.int64)

    @cached_property
    def census(self) -> Census:
        """Who is in the table, and how often."""
        return Census(self.user_ids, self.item_ids, self.user_counts, self.item_counts, self.timestamps is not None)

    def select(self, rows: npt.NDArray[np.bool_]) -> Mask:
        """The same users and items with only the chosen ratings."""
        kept = np.concatenate([[0], np.cumsum(rows, dtype=np.int64)])
        times = None if self.timestamps is None else self.timestamps[rows]
        return Mask(self.user_ids, self.item_ids, kept[self.indptr], self.items[rows], times)
