"""A table with the secret column `level`. Only the rooms on the curator's side may import this module."""

from __future__ import annotations

from dataclasses import dataclass

from dpsr.engine.memory import MemoryTable
from dpsr.engine.table import Table
from dpsr.types.raw import RawRatings
from dpsr.types.scale import Scale

LEVEL = "level"


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
