"""Coded ratings on Spark, packed into blocks: sorted, put on the scale, in the order of the blocks.

    rows (number, u, j, rating[, timestamp])  ->  (number, {items, level[, timestamp]}, repeats)

A block is packed by one task, from rows in any order; what comes out depends on the set of ratings alone. `repeats`
says how many of its pairs are rated more than once, by how many ratings, and which is the first: they are counted here
and refused by the driver.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from dpsr.data.numbers import code_ratings, read_times
from dpsr.data.quoting import Source
from dpsr.engine.raw import LEVEL
from dpsr.engine.spark import ITEMS
from dpsr.engine.table import TIMESTAMP
from dpsr.types import Scale

TYPES = {ITEMS: "int32", LEVEL: "uint16", TIMESTAMP: "int64"}

_PAIRS, _SURPLUS, _USER, _ITEM = _REPEATS = ("pairs", "surplus", "user", "item")


def unnumbered(name: str) -> Source:
    """Where a rating stands, on Spark: rows have no numbers there."""
    return Source(name, lambda row: "one of its rows")


def blocks_of(coded: Any, scale: Scale, name: str, *, n_blocks: int, partitions: int) -> Any:
    """The RDD of blocks, consecutive ones in a partition."""
    timed = TIMESTAMP in coded.columns
    columns = [name for name in TYPES if timed or name != TIMESTAMP]
    schema = ", ".join(["number int", *(f"{one} int" for one in _REPEATS), *(f"{one} binary" for one in columns)])
    packed = coded.groupBy("number").applyInArrow(_packer(scale, name, timed=timed), schema)
    size = min(partitions, n_blocks)
    placed = packed.rdd.map(_element(columns)).partitionBy(size, lambda number: number * size // n_blocks)
    return placed.mapPartitions(_in_order, preservesPartitioning=True)


def repeats_of(blocks: Any) -> list[tuple[int, int, int, int]]:
    """What the blocks say about repeated pairs, those that have any; makes the blocks."""
    found = blocks.map(lambda block: block[2]).collect()
    return [one for one in found if one[0]]


def _element(columns: list[str]) -> Callable[[Any], tuple[int, tuple[dict[str, bytes], tuple[int, ...]]]]:
    def element(row: Any) -> tuple[int, tuple[dict[str, bytes], tuple[int, ...]]]:
        return row["number"], ({name: bytes(row[name]) for name in columns}, tuple(row[name] for name in _REPEATS))

    return element


def _in_order(placed: Iterable[tuple[int, tuple[Any, Any]]]) -> Iterator[tuple[int, Any, Any]]:
    for number, (columns, repeats) in sorted(placed, key=lambda one: one[0]):
        yield number, columns, repeats


def _packer(scale: Scale, name: str, *, timed: bool) -> Callable[[pa.Table], pa.Table]:
    def pack(rows: pa.Table) -> pa.Table:
        u, j, source = rows["u"].to_numpy(), rows["j"].to_numpy(), unnumbered(name)
        order = np.lexsort((j, u))
        columns = {ITEMS: j[order], LEVEL: code_ratings(rows["rating"], scale, source)[order]}
        if timed:
            columns[TIMESTAMP] = read_times(rows[TIMESTAMP], source)[order]
        packed = {one: [column.astype(TYPES[one]).tobytes()] for one, column in columns.items()}
        number = pa.array([rows["number"][0].as_py()], type=pa.int32())
        counted = {key: pa.array([n], type=pa.int32()) for key, n in _repeats(u[order], j[order]).items()}
        return pa.table({"number": number, **counted, **{one: pa.array(packed[one], pa.binary()) for one in packed}})

    return pack


def _repeats(u: Any, j: Any) -> dict[str, int]:
    """Pairs that occur more than once among sorted ones, ratings beyond the first, and the first such pair."""
    again = (u[1:] == u[:-1]) & (j[1:] == j[:-1])
    first = int(np.argmax(again)) if again.any() else 0
    pairs = int(np.count_nonzero(again & ~np.r_[False, again[:-1]])) if len(again) else 0
    return {_PAIRS: pairs, _SURPLUS: int(again.sum()), _USER: int(u[first]), _ITEM: int(j[first])}
