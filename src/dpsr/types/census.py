"""Who is in a rating table, and how often: public, and small enough to hold whatever the size of the table."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dpsr.types.ids import Coded


@dataclass(frozen=True, eq=False)
class Census(Coded):
    """Vocabularies (int64 or string, ascending) and how many ratings each user and item has."""

    user_ids: pa.Array
    item_ids: pa.Array
    user_counts: npt.NDArray[np.int64]
    item_counts: npt.NDArray[np.int64]
    timed: bool = False

    @property
    def n_users(self) -> int:
        return len(self.user_ids)

    @property
    def n_items(self) -> int:
        return len(self.item_ids)

    @property
    def n_ratings(self) -> int:
        return int(self.user_counts.sum())

    @property
    def shape(self) -> tuple[int, int]:
        return self.n_users, self.n_items
