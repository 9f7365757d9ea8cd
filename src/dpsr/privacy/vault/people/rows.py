"""A block of raw ratings as rows of people: one row for each person and cell, cells ascending."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpsr.arrays import Floats, Ints
from dpsr.engine import Block
from dpsr.engine.raw import LEVEL
from dpsr.linalg.compiled import kernel


@dataclass(frozen=True, eq=False)
class PeopleRows:
    """Everybody's rows: the values, in half-widths around the midpoint, are means where items share a cell."""

    indptr: Ints
    cells: Ints
    y: Floats

    @classmethod
    def of(cls, block: Block, cell_of: Ints, y_of: Floats) -> PeopleRows:
        """`cell_of` an item (-1: left out) and `y_of` a level."""
        return cls(*_merged(block.indptr, cell_of[block.items], y_of[block.columns[LEVEL]]))


@kernel
def _merged(indptr: Ints, cells: Ints, y: Floats) -> tuple[Ints, Ints, Floats]:
    """Each person's rows sorted by cell; equal cells become their mean, rows without a cell go."""
    ptr, to = np.zeros(len(indptr), np.int64), 0
    out_cells, out_y = np.empty(len(cells), np.int64), np.empty(len(cells))
    for u in range(len(indptr) - 1):
        first, last = indptr[u], indptr[u + 1]
        order = np.argsort(cells[first:last], kind="mergesort")
        start, many = to, 0
        for i in order:
            c = cells[first + i]
            if c < 0:
                continue
            if to > start and out_cells[to - 1] == c:
                many += 1
                out_y[to - 1] += (y[first + i] - out_y[to - 1]) / many
            else:
                out_cells[to], out_y[to], many = c, y[first + i], 1
                to += 1
        ptr[u + 1] = to
    return ptr, out_cells[:to], out_y[:to]
