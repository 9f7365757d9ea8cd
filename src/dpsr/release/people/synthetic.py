"""Made-up people as a table: user, item, rating.

An item is called by its name where it may be named. Without a declared list most may not, and something is known about
all of them by their cell: such a cell is called `cell:` and its number, which follows from an item's id by the public
hash. Items that share a cell share a name here; of several that may be named, the first one's.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from dpsr.arrays import Ints
from dpsr.synthesis.people import MadeUpPeople
from dpsr.types.item_side import ItemIndex
from dpsr.types.scale import Scale

CELL = "cell:"


def item_names(index: ItemIndex, cells: Ints) -> pa.Array:
    """What made-up people call the items of these cells."""
    if index.declared is not None:
        return index.declared.take(pa.array(cells))
    distinct, places = np.unique(cells, return_inverse=True)
    names: dict[int, str] = {}
    for cell, name in zip(index.named_cells.tolist(), map(str, index.named.to_pylist()), strict=True):
        if not name.startswith(CELL):
            names.setdefault(cell, name)
    called = pa.array([names.get(cell, f"{CELL}{cell}") for cell in distinct.tolist()], type=pa.string())
    return called.take(pa.array(places.ravel()))


def synthetic_rows(people: MadeUpPeople, index: ItemIndex, scale: Scale) -> pa.Table:
    """One row a rating; people are numbered from 1."""
    columns = {
        "user": people.owners + 1,
        "item": item_names(index, people.cells),
        "rating": scale.values[people.places],
    }
    return pa.table(columns)
