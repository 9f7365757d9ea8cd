"""Coded ratings on Spark, packed into blocks: sorted, put on the scale, in the order of the blocks.

    rows (number, u, j, rating[, timestamp])  ->  (number, {items, level[, timestamp]}, Packed)

A block is packed by one task, from rows in any order; what comes out depends on the set of ratings alone. Pairs that
are rated more than once are counted here and refused by the driver.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from dpsr.data.numbers import code_ratings, read_times
from dpsr.data.quoting import Source
from dpsr.engine.raw import LEVEL
from dpsr.engine.spark import ITEMS
from dpsr.engine.table import TIMESTAMP
from dpsr.types import Scale

TYPES = {ITEMS: "int32", LEVEL: "uint16", TIMESTAMP: "int64"}


class Packed(NamedTuple):
    """How many ratings a block has, how many pairs occur more than once, by how many ratings, and the first of them."""

    ratings: int
    pairs: int
    surplus: int
    user: int
    item: int


def unnumbered(name: str) -> Source:
    """Where a rating stands, on Spark: rows have no numbers there."""
    return Source(name, lambda row: "one of its rows")


def blocks_of(coded: Any, scale: Scale, name: str, *, n_blocks: int, partitions: int) -> Any:
    """The RDD of blocks, consecutive ones in a partition."""
    timed = TIMESTAMP in coded.columns
    columns = [name for name in TYPES if timed or name != TIMESTAMP]
    schema = ", ".join(["number int", *(f"{one} int" for one in Packed._fields), *(f"{one} binary" for one in columns)])
    packed = coded.groupBy("number").applyInArrow(_packer(scale, name, timed=timed), schema)
    size = min(partitions, n_blocks)
    placed = packed.rdd.map(_element(columns)).partitionBy(size, lambda number: number * size // n_blocks)
    return placed.mapPartitions(_in_order, preservesPartitioning=True)


def packed_facts(blocks: Any) -> list[tuple[int, Packed]]:
    """What was packed into every block; makes the blocks."""
    return sorted(blocks.map(lambda block: (block[0], Packed(*block[2]))).collect())


def _element(columns: list[str]) -> Callable[[Any], tuple[int, tuple[dict[str, bytes], tuple[int, ...]]]]:
    def element(row: Any) -> tuple[int, tuple[dict[str, bytes], tuple[int, ...]]]:
        return row["number"], ({name: bytes(row[name]) for name in columns}, tuple(row[one] for one in Packed._fields))

    return element


def _in_order(placed: Iterable[tuple[int, tuple[Any, Any]]]) -> Iterator[tuple[int, Any, Any]]:
    for number, (columns, facts) in sorted(placed, key=lambda one: one[0]):
        yield number, columns, facts


def _packer(scale: Scale, name: str, *, timed: bool) -> Callable[[pa.Table], pa.Table]:
    def pack(rows: pa.Table) -> pa.Table:
        u, j, source = rows["u"].to_numpy(), rows["j"].to_numpy(), unnumbered(name)
        order = np.lexsort((j, u))
        columns = {ITEMS: j[order], LEVEL: code_ratings(rows["rating"], scale, source)[order]}
        if timed:
            columns[TIMESTAMP] = read_times(rows[TIMESTAMP], source)[order]
        packed = {one: [column.astype(TYPES[one]).tobytes()] for one, column in columns.items()}
        number = pa.array([rows["number"][0].as_py()], type=pa.int32())
        counted = {one: pa.array([n], pa.int32()) for one, n in _facts(u[order], j[order])._asdict().items()}
        return pa.table({"number": number, **counted, **{one: pa.array(packed[one], pa.binary()) for one in packed}})

    return pack


def _facts(u: Any, j: Any) -> Packed:
    """Of pairs that are sorted."""
    again = (u[1:] == u[:-1]) & (j[1:] == j[:-1])
    first = int(np.argmax(again)) if again.any() else 0
    begins = again & ~np.r_[False, again][: len(again)]
    return Packed(len(u), int(begins.sum()), int(again.sum()), int(u[first]), int(j[first]))
