"""The K items most like each item, from sparse columns (Algorithm 1, lines 11, 12 and 15).

    s_jk = sum_{i rated both} x_ij x_ik,      x_ij = (r_ij - mean_j) / sqrt( sum_{i rated j} (r_ij - mean_j)^2 )

the cosine of item columns centred by their own mean and zero elsewhere: co-raters in the numerator, all raters in the
denominator. N_j are the K largest |s_jk|, ties to the lower index, zeros never, j itself never.

Equal similarities must tie, and zero ones vanish, whatever order the sums were taken in. So similarities are compared
on a grid: |s| counts as rint(|s| 2^31) quanta. Two values that are equal in real numbers differ by some 1e-16 in floats
and land on different grid points with probability below 1e-6; a finer grid would only make that likelier, and a coarser
one would begin to merge similarities that differ.

Items with a direction are renamed by popularity, the most popular first. A panel is a run of names first <= p < last;
its pass holds one sum per pair of a panel's item with an item at least as popular, 8 (last - first) last bytes, as many
as `Table.sum_bytes` allows. So each pair is met once, and n items take about 4 n^2 / sum_bytes passes.

Mean and length of a column take two passes. Values of private ratings are a channel's outputs: equal, or apart by far
more than CONSTANT. So a column is constant, and drops out, if its squares add up to less than those of a spread of
that.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numba import prange

from dpsr.arrays import Codes, Floats, Ints, Names
from dpsr.engine import Block, Table
from dpsr.engine.table import zeros
from dpsr.errors import ParameterError
from dpsr.linalg.compiled import kernel, parallel_kernel, threads_for
from dpsr.types import Scale

CONSTANT = 2.0**-30
"""The spread, as a share of the scale's width, up to which a column counts as constant."""

QUANTA = 2.0**31
_NOTHING = 0.25
"""Quanta that are rounded to none."""

_INDEX_BITS = 31
_LAST = (1 << _INDEX_BITS) - 1
"""A candidate's key is its quanta, then the index counted from the last, so that the larger key is the better one."""


@dataclass(frozen=True, eq=False)
class Neighbours:
    """For each item, its neighbours from the most similar on.

    `items[j]` are item codes padded with -1, `similarities[j]` the signed s_jk padded with 0.
    """

    items: Codes
    similarities: Floats

    def __post_init__(self) -> None:
        self.items.setflags(write=False)
        self.similarities.setflags(write=False)

    @property
    def counts(self) -> Ints:
        """How many neighbours each item has, at most K."""
        return (self.items >= 0).sum(axis=1)


@dataclass(frozen=True, eq=False)
class Directions:
    """What turns ratings of an item into its column: item p by popularity is `order[p]`, x = (r - centre) / length."""

    order: Ints
    centre: Floats
    length: Floats


def item_neighbours(table: Table, ratings: str, scale: Scale, *, k: int) -> Neighbours:
    """The `k` items most similar to each item, by the column `ratings` of private ratings.

    The result does not depend on the number of threads, nor on how the table is cut into blocks.
    """
    if k < 1:
        raise ParameterError(f"an item needs room for at least one neighbour, found k={k}. Choose k between 5 and 50.")
    n = table.census.n_items
    k = min(k, max(n - 1, 1))
    columns = directions(table, ratings, scale)
    keys, similarities = np.zeros((n, k), np.int64), np.zeros((n, k))
    for first, last in panels(len(columns.order), table.sum_bytes):
        sums = _similarities(table, ratings, columns, first, last)
        floors = np.maximum((keys[columns.order, -1] >> _INDEX_BITS) - 1, _NOTHING) / QUANTA
        _offer(sums, first, columns.order, floors, keys, similarities)
    return Neighbours(np.where(keys > 0, _LAST - (keys & _LAST), -1).astype(np.int32), similarities)


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


def panels(n: int, n_bytes: int) -> Iterator[tuple[int, int]]:
    """Runs of names whose sums fit in so many bytes: 8 (last - first) last; at least one name each."""
    first = 0
    while first < n:
        widest = int((first + np.sqrt(first**2 + n_bytes / 2)) / 2)
        last = min(max(widest, first + 1), n)
        yield first, last
        first = last


def _similarities(table: Table, ratings: str, columns: Directions, first: int, last: int) -> Floats:
    """s_pq for the names p of a panel and q < p."""
    order, centre, length = columns.order[:last], columns.centre, columns.length

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
    begins: Ints,
    ptr: Ints,
    rows: Codes,
    places: Codes,
    order: Ints,
    indptr: Ints,
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
    begins: Ints,
    ptr: Ints,
    rows: Codes,
    indptr: Ints,
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


@kernel
def _offer(sums: Floats, first: int, order: Ints, floors: Floats, keys: Ints, similarities: Floats) -> None:
    """Offer the pairs of a panel to both sides; by code, `keys` hold the best from the strongest on.

    `floors`, by name, are sizes below which an item needs no more offers.
    """
    for p in range(first, first + len(sums)):
        row = sums[p - first]
        for q in range(p):
            size = abs(row[q])
            if size >= floors[p]:
                floors[p] = _insert(keys[order[p]], similarities[order[p]], row[q], order[q])
            if size >= floors[q]:
                floors[q] = _insert(keys[order[q]], similarities[order[q]], row[q], order[p])


@kernel
def _insert(keys: Ints, similarities: Floats, s: float, code: int) -> float:
    """Put a candidate in its place if it is better than the last; returns the floor."""
    quanta, at = int(np.rint(abs(s) * QUANTA)), len(keys) - 1
    key = (quanta << _INDEX_BITS) + (_LAST - code)
    if quanta > 0 and key > keys[at]:
        while at > 0 and keys[at - 1] < key:
            keys[at], similarities[at] = keys[at - 1], similarities[at - 1]
            at -= 1
        keys[at], similarities[at] = key, s
    return max((keys[-1] >> _INDEX_BITS) - 1, _NOTHING) / QUANTA
