"""Rows of people: one for each person and cell, cells ascending."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpsr.arrays import Floats, Ints
from dpsr.linalg.compiled import kernel


@dataclass(frozen=True, eq=False, repr=False)  # a generated repr would show values
class PeopleRows:
    """Everybody's rows; `y`, in half-widths around the midpoint, are means where items share a cell."""

    indptr: Ints
    cells: Ints
    y: Floats

    @classmethod
    def by_cell(cls, indptr: Ints, cells: Ints, y: Floats) -> PeopleRows:
        """From ratings, person by person, in any order; those without a cell (-1) go."""
        return cls(*_one_row_per_cell(indptr, cells, y))


@kernel
def _one_row_per_cell(indptr: Ints, cells: Ints, y: Floats) -> tuple[Ints, Ints, Floats]:
    """Each person's rows, cells ascending; values in one cell become their mean, rows without a cell (-1) go."""
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
