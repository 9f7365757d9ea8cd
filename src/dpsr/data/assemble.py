"""From columns in any order to a table of ratings or interactions in the canonical order.

With users and items coded by the sorted order of their ids, the rating of user u for item j belongs to cell

    c = u * n + j,

and the table is sorted by c: compressed rows, items ascending within a user. The order depends on the set of ratings
only, so nothing about the order of the input rows survives. Cells and row numbers are packed into one int64 and sorted
as numbers, which is several times faster than sorting row numbers by cell and stable for free.

A pair has one rating, and repeated ones are refused or chosen from; interactions of one pair are added up.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dpsr.arrays import Floats, Ints
from dpsr.data.coding import code_ids, code_ratings, read_times, read_weights
from dpsr.data.columns import RatingColumns
from dpsr.errors import DataError, ParameterError
from dpsr.quoting import Source, quoted
from dpsr.types.mask import Mask
from dpsr.types.scale import Scale

DUPLICATES = ("error", "first", "last")


def assemble(columns: RatingColumns, *, scale: Scale, duplicates: str) -> tuple[Mask, npt.NDArray[np.uint16]]:
    """The mask and the level of each of its ratings. `duplicates` says which rating of a repeated pair stays."""
    if duplicates not in DUPLICATES:
        raise ParameterError(f"duplicates is one of {', '.join(DUPLICATES)}, found {quoted(duplicates)}.")
    source = columns.source
    if not len(columns.ratings):
        raise DataError(
            f"{source.name}: there are no ratings. Give at least one row with a user, an item and a rating."
        )
    cells, user_ids, item_ids = _cells(columns)
    levels = code_ratings(columns.ratings, scale, source)
    times = None if columns.timestamps is None else read_times(columns.timestamps, source)
    order, cells = _canonical(cells, len(user_ids) * len(item_ids))
    kept = _without_duplicates(order, cells, duplicates, _Pairs(columns, source))
    order, cells = order[kept], cells[kept]
    mask = mask_of_cells(cells, user_ids, item_ids, None if times is None else times[order])
    return mask, levels[order]


def assemble_interactions(columns: RatingColumns) -> tuple[Mask, Floats, int]:
    """The mask, the weight of each of its interactions, and how many rows repeated a pair and were added to it.

    The time of a pair is that of its latest interaction.
    """
    source = columns.source
    if not len(columns.ratings):
        raise DataError(f"{source.name}: there are no interactions. Give at least one row with a user and an item.")
    cells, user_ids, item_ids = _cells(columns)
    weights = read_weights(columns.ratings, source)
    times = None if columns.timestamps is None else read_times(columns.timestamps, source)
    order, cells = _canonical(cells, len(user_ids) * len(item_ids))
    first = np.flatnonzero(np.concatenate([[True], cells[1:] != cells[:-1]]))
    with np.errstate(over="ignore"):
        total = np.add.reduceat(weights[order], first)
    if not np.isfinite(total).all():
        raise DataError(f"{source.name}: the weights of one pair add up to more than a number can hold. Rescale them.")
    latest = None if times is None else np.maximum.reduceat(times[order], first)
    return mask_of_cells(cells[first], user_ids, item_ids, latest), total, len(cells) - len(first)


def _cells(columns: RatingColumns) -> tuple[Ints, pa.Array, pa.Array]:
    """The cell of every row, and the ids of users and items."""
    cells, user_ids = code_ids(columns.users, "user", columns.source)
    items, item_ids = code_ids(columns.items, "item", columns.source)
    cells *= len(item_ids)
    cells += items  # columns of tens of millions of rows: each is let go as soon as it is used
    return cells, user_ids, item_ids


def mask_of_cells(cells: Ints, user_ids: pa.Array, item_ids: pa.Array, timestamps: Ints | None = None) -> Mask:
    """The mask of strictly ascending cells `u * n + j`; users and items without a rating stay in the vocabulary."""
    n = len(item_ids)
    indptr = np.searchsorted(cells, n * np.arange(len(user_ids) + 1)).astype(np.int64)
    return Mask(user_ids, item_ids, indptr, (cells % n).astype(np.int32), timestamps)


def _canonical(cells: Ints, n_cells: int) -> tuple[Ints, Ints]:
    """Rows sorted by cell, earlier rows first within a cell, and their cells; `cells` itself may be sorted."""
    if bool((cells[1:] > cells[:-1]).all()):
        return np.arange(len(cells)), cells
    bits = len(cells).bit_length()
    if n_cells.bit_length() + bits > 63:
        order = np.argsort(cells, kind="stable")
        return order, cells[order]
    cells <<= bits
    cells |= np.arange(len(cells))
    cells.sort()
    order = cells & ((1 << bits) - 1)
    cells >>= bits
    return order, cells


@dataclass(frozen=True, eq=False)
class _Pairs:
    """The pairs as they were given, for the message about a repeated one."""

    columns: RatingColumns
    source: Source

    def refuse(self, row: int, earlier: int) -> DataError:
        pair = self.columns.users[row].as_py(), self.columns.items[row].as_py()
        return repeated_pair_error(pair, row, earlier, self.source)


def repeated_pair_error(pair: tuple[object, object], row: int, earlier: int, source: Source) -> DataError:
    """The error for a pair that is rated twice."""
    return DataError(
        f"{source.at(row)}: user {quoted(pair[0])} rates item {quoted(pair[1])} again, as before at "
        f"{source.place(earlier)}. "
        'Keep one of them with duplicates="first" or "last" (or --duplicates first).'
    )


def _without_duplicates(order: Ints, cells: Ints, duplicates: str, pairs: _Pairs) -> npt.NDArray[np.bool_] | slice:
    repeats = cells[1:] == cells[:-1]
    if not repeats.any():
        return slice(None)
    if duplicates == "error":
        later = np.flatnonzero(repeats) + 1
        place = later[np.argmin(order[later])]  # the first row of the input that repeats an earlier one
        raise pairs.refuse(int(order[place]), int(order[np.searchsorted(cells, cells[place])]))
    edge = np.array([False])
    return ~np.concatenate([edge, repeats] if duplicates == "first" else [repeats, edge])
