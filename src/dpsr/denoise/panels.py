"""The neighbours of `neighbours.py` for tables larger than memory: panel by panel, one pass each.

Items with a direction are renamed by popularity, the most popular first (`columns.py`). A panel is a run of names
first <= p < last; its pass holds one sum per pair of a panel's item with an item at least as popular,

    s_pq = sum_{u rated both} x_up x_uq,      q < p,      8 (last - first) last bytes,

as many as `Table.room` allows. So each pair is met once, and n items take about 4 n^2 / room passes. Sums are doubles,
taken over the raters in ascending order: on one machine these are the bits of `item_neighbours`, and no second look is
needed. On Spark the tasks' sums are added up, which moves the last bits; the grid of 2^-31 is there for that.

Mean and length of a column take two passes. Values of private ratings are a channel's outputs: equal, or apart by far
more than CONSTANT. So a column is constant if its squares add up to less than those of a spread of CONSTANT.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from numba import prange

from dpsr.denoise.columns import CONSTANT
from dpsr.denoise.heap import INDEX_BITS, LAST, Keys
from dpsr.denoise.neighbours import Neighbours, room_for
from dpsr.denoise.verdict import QUANTA
from dpsr.engine import Block, Table
from dpsr.engine.table import zeros
from dpsr.linalg.compiled import kernel, parallel_kernel, threads_for
from dpsr.linalg.pattern import Codes, Integers
from dpsr.types import Scale

Floats = npt.NDArray[np.float64]
Names = npt.NDArray[np.uint32]

_NOTHING = 0.25
"""Quanta that are rounded to none."""


@dataclass(frozen=True, eq=False)
class Directions:
    """What turns ratings of an item into its column: item p by popularity is `order[p]`, x = (r - centre) / length."""

    order: Integers
    centre: Floats
    length: Floats


def table_neighbours(table: Table, ratings: str, scale: Scale, *, k: int) -> Neighbours:
    """The `k` items most similar to each item, by the column `ratings` of private ratings."""
    n = table.census.n_items
    k = room_for(k, n)
    to = directions(table, ratings, scale)
    keys, similarities = np.zeros((n, k), np.int64), np.zeros((n, k))
    for first, last in panels(len(to.order), table.room):
        offer(_similarities(table, ratings, to, first, last), first, to.order, keys, similarities)
    return Neighbours(np.where(keys > 0, LAST - (keys & LAST), -1).astype(np.int32), similarities)


def directions(table: Table, ratings: str, scale: Scale) -> Directions:
    """Means and lengths of the columns, in two passes; columns that are constant have no direction."""
    counts = table.census.item_counts

    def add(block: Block, totals: Floats) -> None:
        _add(block.items, block.columns[ratings], totals)

    centre = table.run(add, [zeros(len(counts))], reads=[ratings]).sums[0] / np.maximum(counts, 1)

    def add_squares(block: Block, squares: Floats) -> None:
        _add_squares(block.items, block.columns[ratings], centre, squares)

    squares = table.run(add_squares, [zeros(len(counts))], reads=[ratings]).sums[0]
    live = np.flatnonzero(squares > (CONSTANT * scale.width) ** 2 / 2)
    return Directions(live[np.argsort(-counts[live], kind="stable")], centre, np.sqrt(squares))


def panels(n: int, room: int) -> Iterator[tuple[int, int]]:
    """Runs of names whose sums fit in `room` bytes: 8 (last - first) last; at least one name each."""
    first = 0
    while first < n:
        widest = int((first + np.sqrt(first**2 + room / 2)) / 2)
        last = min(max(widest, first + 1), n)
        yield first, last
        first = last


def _similarities(table: Table, ratings: str, to: Directions, first: int, last: int) -> Floats:
    """s_pq for the names p of a panel and q < p."""
    order, centre, length = to.order[:last], to.centre, to.length

    def add(block: Block, sums: Floats) -> None:
        by = block.by_item
        places = np.full(block.n_items + 1, -1, np.int64)
        places[by.items] = np.arange(len(by.items))
        begins = places[order]
        lists = _lists(begins, by.ptr, by.rows, by.places, order, block.indptr, block.columns[ratings], centre, length)
        with threads_for(int((block.counts**2).sum()) // 2) as threads:
            _add_pairs(begins, by.ptr, by.rows, block.indptr, *lists, first, sums, threads)

    return table.run(add, [zeros(last - first, last)], reads=[ratings]).sums[0]


@kernel
def _add(items: Codes, values: Floats, totals: Floats) -> None:
    for e in range(len(items)):
        totals[items[e]] += values[e]


@kernel
def _add_squares(items: Codes, values: Floats, centre: Floats, squares: Floats) -> None:
    for e in range(len(items)):
        squares[items[e]] += (values[e] - centre[items[e]]) ** 2


@kernel
def _lists(
    begins: Integers,
    ptr: Integers,
    rows: Codes,
    places: Codes,
    order: Integers,
    indptr: Integers,
    values: Floats,
    centre: Floats,
    length: Floats,
) -> tuple[Names, Floats, Codes]:
    """Each user's names, ascending, and their x; and where in these lists the entries by item went.

    Name p stands by item in place `begins[p]`, -1 if the block has none of it.
    """
    ends = indptr[:-1].copy()
    names, x = np.empty(len(rows), np.uint32), np.empty(len(rows), np.float64)
    went = np.empty(len(rows), np.int32)
    for p in range(len(order)):
        if begins[p] < 0:
            continue
        j = order[p]
        for e in range(ptr[begins[p]], ptr[begins[p] + 1]):
            at = ends[rows[e]]
            ends[rows[e]] = at + 1
            names[at], x[at] = p, (values[places[e]] - centre[j]) / length[j]
            went[e] = at
    return names, x, went


@parallel_kernel
def _add_pairs(
    begins: Integers,
    ptr: Integers,
    rows: Codes,
    indptr: Integers,
    names: Names,
    x: Floats,
    went: Codes,
    first: int,
    sums: Floats,
    threads: int,
) -> None:
    """Item by item, so that a row of sums stays in cache for all raters of a block; one thread owns a row."""
    for t in prange(threads):
        for p in range(first + t, first + len(sums), threads):
            if begins[p] < 0:
                continue
            row = sums[p - first]
            for e in range(ptr[begins[p]], ptr[begins[p] + 1]):
                weight = x[went[e]]
                for f in range(indptr[rows[e]], went[e]):
                    row[names[f]] += weight * x[f]


def offer(sums: Floats, first: int, order: Integers, keys: npt.NDArray[np.int64], similarities: Floats) -> None:
    """Offer the pairs of a panel to both sides; by code, `keys` hold the best from the strongest on."""
    floors = np.maximum((keys[order, -1] >> INDEX_BITS) - 1, _NOTHING) / QUANTA
    _offer(sums, first, order, floors, keys, similarities)


@kernel
def _offer(
    sums: Floats, first: int, order: Integers, floors: Floats, keys: npt.NDArray[np.int64], similarities: Floats
) -> None:
    """`floors`, by name, are sizes below which an item needs no more offers."""
    for p in range(first, first + len(sums)):
        row = sums[p - first]
        for q in range(p):
            size = abs(row[q])
            if size >= floors[p]:
                floors[p] = _insert(keys[order[p]], similarities[order[p]], row[q], order[q])
            if size >= floors[q]:
                floors[q] = _insert(keys[order[q]], similarities[order[q]], row[q], order[p])


@kernel
def _insert(keys: Keys, similarities: Floats, s: float, code: int) -> float:
    """Put a candidate in its place if it is better than the last; returns the floor."""
    quanta, at = int(np.rint(abs(s) * QUANTA)), len(keys) - 1
    key = (quanta << INDEX_BITS) + (LAST - code)
    if quanta > 0 and key > keys[at]:
        while at > 0 and keys[at - 1] < key:
            keys[at], similarities[at] = keys[at - 1], similarities[at - 1]
            at -= 1
        keys[at], similarities[at] = key, s
    return max((keys[-1] >> INDEX_BITS) - 1, _NOTHING) / QUANTA
