"""Tables with their secret column, `level` or `weight`. Only the rooms on the curator's side may import this module."""

from __future__ import annotations

from dataclasses import dataclass

from dpsr.engine.table import MemoryTable, Table
from dpsr.types.raw import RawInteractions, RawRatings
from dpsr.types.scale import Scale

LEVEL, WEIGHT = "level", "weight"


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
