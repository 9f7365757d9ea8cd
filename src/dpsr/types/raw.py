"""Raw ratings: the secret. Only the rooms on the curator's side may import this module.

`tests/test_house.py` proves that `denoise`, `complete`, `release` and everything below them cannot reach it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import numpy.typing as npt

from dpsr.types.mask import Mask
from dpsr.types.personal import OwnRows
from dpsr.types.scale import Scale


@dataclass(frozen=True, eq=False)
class RawRows:
    """Rows as the curator holds them: who met what, user by user, and whatever else a row has."""

    mask: Mask

    def __len__(self) -> int:
        return self.mask.n_ratings

    def without_timestamps(self) -> Self:
        """The same rows, and nothing of when they were made."""
        return self if self.mask.timestamps is None else replace(self, mask=replace(self.mask, timestamps=None))

    def own_rows(self, start: int, stop: int) -> OwnRows:
        """The rows of the people `start` to `stop`, opened for each of them alone. Secret."""
        mask = self.mask
        rows = slice(int(mask.indptr[start]), int(mask.indptr[stop]))
        indptr = mask.indptr[start : stop + 1] - rows.start
        return OwnRows(mask.user_ids[start:stop], mask.item_ids, indptr, mask.items[rows], self._values_of(rows))

    def _values_of(self, rows: slice) -> npt.NDArray[np.float64]:
        """What stands in the rows besides their pair. Secret."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class RawRatings(RawRows):
    """A rating table as the curator holds it: the public mask, and one secret level per rating."""

    levels: npt.NDArray[np.uint16]
    scale: Scale

    def __post_init__(self) -> None:
        self.levels.setflags(write=False)

    @property
    def values(self) -> npt.NDArray[np.float64]:
        """The ratings themselves, in the order of the mask. Secret."""
        return self.scale.values[self.levels]

    def _values_of(self, rows: slice) -> npt.NDArray[np.float64]:
        return self.scale.values[self.levels[rows]]

    def __repr__(self) -> str:  # never shows a value
        m, n = self.mask.shape
        return f"{type(self).__name__}({len(self):,} ratings, {m:,} users, {n:,} items, scale {self.scale})"


@dataclass(frozen=True, eq=False)
class RawInteractions(RawRows):
    """Who did what, as the curator holds it: the mask is the secret here, and so is the weight of each interaction."""

    weights: npt.NDArray[np.float64]

    def __post_init__(self) -> None:
        self.weights.setflags(write=False)

    @property
    def n_users(self) -> int:
        return self.mask.n_users

    @property
    def n_items(self) -> int:
        return self.mask.n_items

    @property
    def n_interactions(self) -> int:
        return len(self)

    def _values_of(self, rows: slice) -> npt.NDArray[np.float64]:
        return self.weights[rows]

    def __repr__(self) -> str:  # never shows a weight
        return f"{type(self).__name__}({len(self):,} interactions, {self.n_users:,} users, {self.n_items:,} items)"
