"""Ratings on Spark, coded and packed into blocks: sorted, put on the scale, in the order of the blocks.

    rows (user, item, rating[, timestamp])  ->  pieces (number, u, items, level[, timestamp])     where the rows are
    pieces of one block                     ->  blocks (number, items, level[, timestamp], facts)   where it is to stay

Rows become pieces of blocks before they travel: some millions of rows are a few arrays by then. What comes out depends
on the set of ratings alone. Pairs that are rated more than once are counted here and refused by the driver.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpsr.arrays import AnyArray
from dpsr.data.coding import code_ratings, read_times, read_weights
from dpsr.engine.raw import LEVEL, WEIGHT
from dpsr.engine.spark.table import ITEMS, group_of
from dpsr.engine.spark.task import NUMBER, Columns, blocks_in, changed_input_error, spark_schema
from dpsr.engine.table import TIMESTAMP
from dpsr.quoting import Source
from dpsr.types import Scale

TYPES = {ITEMS: "int32", LEVEL: "uint16", WEIGHT: "float64", TIMESTAMP: "int64"}

_USER = "u"
_KINDS = {_USER: "int32", **TYPES}
_ROWS = 1 << 21
"""Rows that a task holds before it makes pieces of them."""


class Packed(NamedTuple):
    """How many ratings a block has, how many pairs occur more than once, by how many ratings, and the first of them."""

    number: int
    ratings: int
    pairs: int
    surplus: int
    user: int
    item: int


@dataclass(frozen=True, eq=False)
class Coding:
    """How rows become pieces: the code of every spelling of an id, the block of every user's code, the scale.

    Without a scale the rows are interactions, and their value is a weight.
    """

    users: tuple[pa.Array, AnyArray]
    items: tuple[pa.Array, AnyArray]
    numbers: AnyArray
    scale: Scale | None
    name: str
    timed: bool

    @property
    def columns(self) -> list[str]:
        absent = {WEIGHT if self.scale is not None else LEVEL, *(() if self.timed else (TIMESTAMP,))}
        return [name for name in _KINDS if name not in absent]

    @property
    def schema(self) -> pa.Schema:
        """Of the pieces."""
        return pa.schema([(NUMBER, pa.int32()), *((name, pa.binary()) for name in self.columns)])

    def pieces(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows of a task, some millions at a time."""
        held: list[pa.RecordBatch] = []
        for batch in batches:
            held.append(batch)
            if sum(map(len, held)) >= _ROWS:
                yield self._cut(pa.Table.from_batches(held))
                held = []
        if held:
            yield self._cut(pa.Table.from_batches(held))

    def _cut(self, rows: pa.Table) -> pa.RecordBatch:
        """Rows by block, in the order in which they came."""
        source = unnumbered(self.name)
        made = {_USER: _codes(rows["user"], *self.users), ITEMS: _codes(rows["item"], *self.items)}
        if self.scale is None:
            made[WEIGHT] = read_weights(rows["weight"], source)
        else:
            made[LEVEL] = code_ratings(rows["rating"], self.scale, source)
        if self.timed:
            made[TIMESTAMP] = read_times(rows[TIMESTAMP], source)
        block = self.numbers[made[_USER]]
        order = np.argsort(block, kind="stable")
        numbers, starts = np.unique(block[order], return_index=True)
        ends = [*starts[1:], len(order)]
        packed: dict[str, Any] = {NUMBER: numbers.astype(np.int32)}
        for name, column in made.items():
            ordered = column[order].astype(_KINDS[name])
            packed[name] = [ordered[a:b].tobytes() for a, b in zip(starts, ends, strict=True)]
        return pa.RecordBatch.from_pydict(packed, schema=self.schema)


def unnumbered(name: str) -> Source:
    """Where a rating stands, on Spark: rows have no numbers there."""
    return Source(name, lambda row: "one of its rows")


def _codes(ids: pa.ChunkedArray, spellings: pa.Array, codes: AnyArray) -> AnyArray:
    """The codes of ids whose spellings were all seen when they were counted."""
    if pa.types.is_floating(ids.type):
        ids = pc.add(ids, pa.scalar(0.0, ids.type))  # minus zero is zero
    places = pc.index_in(ids, value_set=spellings)
    if places.null_count:
        raise changed_input_error()
    found: AnyArray = codes[places.to_numpy()]
    return found


def blocks_of(frame: Any, coding: Coding, *, n_blocks: int, partitions: int) -> Any:
    """The DataFrame of blocks, consecutive ones in a partition."""
    pieces = frame.mapInArrow(coding.pieces, spark_schema(coding.schema))
    placed = pieces.repartitionById(partitions, group_of(pieces[NUMBER], n_blocks, partitions))
    return placed.mapInArrow(merged, spark_schema(_merged(coding.columns)))


def _merged(columns: Iterable[str]) -> pa.Schema:
    """Of the blocks."""
    facts = [(name, pa.int64()) for name in Packed._fields[1:]]
    return pa.schema([(NUMBER, pa.int32()), *((name, pa.binary()) for name in columns if name != _USER), *facts])


def merged(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The blocks of a partition, each from all its pieces."""
    found: dict[int, list[Columns]] = {}
    for number, columns in blocks_in(batches):
        found.setdefault(number, []).append(columns)
    for number in sorted(found):
        parts = found.pop(number)
        whole = {name: np.concatenate([np.frombuffer(one[name], _KINDS[name]) for one in parts]) for name in parts[0]}
        order = np.lexsort((whole[ITEMS], whole[_USER]))
        facts = packed(number, whole[_USER][order], whole[ITEMS][order])
        block = {name: column[order].tobytes() for name, column in whole.items()}
        yield pa.RecordBatch.from_pylist([{**block, **facts._asdict()}], schema=_merged(whole))


def packed(number: int, u: AnyArray, j: AnyArray) -> Packed:
    """Facts about pairs that are sorted."""
    again = (u[1:] == u[:-1]) & (j[1:] == j[:-1])
    first = int(np.argmax(again)) if again.any() else 0
    begins = again & ~np.r_[False, again][: len(again)]
    return Packed(number, len(u), int(begins.sum()), int(again.sum()), int(u[first]), int(j[first]))


def packed_facts(blocks: Any) -> list[Packed]:
    """What was packed into every block; makes the blocks."""
    return sorted(Packed(**row) for row in blocks.select(*Packed._fields).toArrow().to_pylist())
