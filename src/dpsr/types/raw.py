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
class RawRatings:
    """A rating table as the curator holds it: the public mask, and one secret level per rating."""

    mask: Mask
    levels: npt.NDArray[np.uint16]
    scale: Scale

    def __post_init__(self) -> None:
        self.levels.setflags(write=False)

    def __len__(self) -> int:
        return self.mask.n_ratings

    @property
    def values(self) -> npt.NDArray[np.float64]:
        """The ratings themselves, in the order of the mask. Secret."""
        return self.scale.values[self.levels]

    def without_timestamps(self) -> Self:
        """The same ratings, and nothing of when they were given."""
        return self if self.mask.timestamps is None else replace(self, mask=replace(self.mask, timestamps=None))

    def own_rows(self, start: int, stop: int) -> OwnRows:
        """The rows of the people `start` to `stop`, opened for each of them alone. Secret."""
        mask = self.mask
        rows = slice(int(mask.indptr[start]), int(mask.indptr[stop]))
        values, indptr = self.scale.values[self.levels[rows]], mask.indptr[start : stop + 1] - rows.start
        return OwnRows(mask.user_ids[start:stop], mask.item_ids, indptr, mask.items[rows], values)

    def __repr__(self) -> str:  # never shows a value
        m, n = self.mask.shape
        return f"{type(self).__name__}({len(self):,} ratings, {m:,} users, {n:,} items, scale {self.scale})"
