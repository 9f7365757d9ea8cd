"""A block of raw ratings as rows of people: one row for each person and cell, cells ascending."""

from __future__ import annotations

from dataclasses import dataclass

from dpsr.arrays import Floats, Ints
from dpsr.engine import Block
from dpsr.engine.raw import LEVEL
from dpsr.linalg.rows import PeopleRows


@dataclass(frozen=True, eq=False)
class RowReader:
    """Turns blocks into rows: `cell_of` an item (-1: left out) and `y_of` a level.

    Passes carry this to wherever the ratings are, and nothing else of the vault: not its key.
    """

    cell_of: Ints
    y_of: Floats

    def rows(self, block: Block) -> PeopleRows:
        """One row for each person and cell."""
        return PeopleRows.by_cell(block.indptr, self.cells(block), self.values(block))

    def cells(self, block: Block) -> Ints:
        """The cell of every rating."""
        return self.cell_of[block.items]

    def values(self, block: Block) -> Floats:
        """Every rating, in half-widths around the midpoint."""
        return self.y_of[block.columns[LEVEL]]
