"""Raw rows: the secret, in memory or as a table wherever it is kept. Only the curator's side may import this module.

`tests/test_house.py` proves that the stages of every pipeline, `release` and everything below them cannot reach it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

from dpsr.arrays import Floats, Levels
from dpsr.engine.table import MemoryTable, Table
from dpsr.types import Mask, OwnRows, Scale

LEVEL, WEIGHT = "level", "weight"
"""The secret columns of a table."""


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

    def _values_of(self, rows: slice) -> Floats:
        """What stands in the rows besides their pair. Secret."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class RawRatings(RawRows):
    """A rating table as the curator holds it: the public mask, and one secret level per rating."""

    levels: Levels
    scale: Scale

    def __post_init__(self) -> None:
        self.levels.setflags(write=False)

    @property
    def values(self) -> Floats:
        """The ratings themselves, in the order of the mask. Secret."""
        return self.scale.values[self.levels]

    def _values_of(self, rows: slice) -> Floats:
        return self.scale.values[self.levels[rows]]

    def __repr__(self) -> str:  # never shows a value
        m, n = self.mask.shape
        return f"{type(self).__name__}({len(self):,} ratings, {m:,} users, {n:,} items, scale {self.scale})"


@dataclass(frozen=True, eq=False)
class RawInteractions(RawRows):
    """Who did what, as the curator holds it: the mask is the secret here, and so is the weight of each interaction."""

    weights: Floats

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

    def _values_of(self, rows: slice) -> Floats:
        return self.weights[rows]

    def __repr__(self) -> str:  # never shows a weight
        return f"{type(self).__name__}({len(self):,} interactions, {self.n_users:,} users, {self.n_items:,} items)"


@dataclass(frozen=True, eq=False)
class RawTable:
    """Raw ratings wherever they are kept: a table whose column `level` is the secret."""

    table: Table
    scale: Scale

    @classmethod
    def of(cls, ratings: RawRatings) -> RawTable:
        """Ratings that are in memory."""
        return cls(MemoryTable(ratings.mask, {LEVEL: ratings.levels}), ratings.scale)

    @property
    def public(self) -> Table:
        """Who rated what, and whatever was made from noisy answers; no levels."""
        return self.table.hiding(LEVEL)

    def __repr__(self) -> str:  # never shows a value
        census = self.table.census
        return f"RawTable({census.n_ratings:,} ratings, {census.n_users:,} users, {census.n_items:,} items)"


@dataclass(frozen=True, eq=False)
class InteractionTable:
    """Raw interactions wherever they are kept: who did what is the secret, and so is the column `weight`.

    `notes` say what was made of the rows, for the curator's eyes.
    """

    table: Table
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, interactions: RawInteractions) -> InteractionTable:
        """Interactions that are in memory."""
        return cls(MemoryTable(interactions.mask, {WEIGHT: interactions.weights}))

    def __repr__(self) -> str:  # never shows a value
        return "InteractionTable(who did what is the secret)"


def raw_table(rows: RawRatings | RawInteractions) -> RawTable | InteractionTable:
    """Rows that are in memory."""
    return InteractionTable.of(rows) if isinstance(rows, RawInteractions) else RawTable.of(rows)
