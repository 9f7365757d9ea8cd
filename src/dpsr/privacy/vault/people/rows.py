"""A block of raw ratings as rows of people: one row for each person and cell, cells ascending."""

from __future__ import annotations

from dataclasses import dataclass

from dpsr.arrays import Floats, Ints
from dpsr.engine import Block
from dpsr.engine.raw import LEVEL
from dpsr.linalg.rows import one_row_per_cell


@dataclass(frozen=True, eq=False)
class PeopleRows:
    """Everybody's rows: the values, in half-widths around the midpoint, are means where items share a cell."""

    indptr: Ints
    cells: Ints
    y: Floats

    @classmethod
    def of(cls, block: Block, cell_of: Ints, y_of: Floats) -> PeopleRows:
        """`cell_of` an item (-1: left out) and `y_of` a level."""
        return cls(*one_row_per_cell(block.indptr, cell_of[block.items], y_of[block.columns[LEVEL]]))
