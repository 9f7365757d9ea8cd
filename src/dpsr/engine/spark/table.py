"""The engine for those who outgrow one machine: blocks are rows of a Spark DataFrame.

    number, items, level, ...        one row a block, every column the bytes of an array

A pass is one `mapInArrow` with the same kernels inside: every task adds up the blocks of its partition, and the driver
adds up the tasks; where these are many, a few other tasks do most of that first. Columns stay with the executors.

A task is a pure function of its blocks and of what the driver sent, so a retried or speculative one gives the same
numbers, and the same noise: draws are read at the rating's own place in a keyed stream. Columns that are lost with an
executor are made again by the functions that made them first, which Spark keeps with their key.

What is light stays with the driver: user-side rows, and who rated what (four bytes a rating) for the passes that read
nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isqrt
from typing import Any

import numpy as np

from dpsr.arrays import AnyArray
from dpsr.engine.spark.secrecy import check_encrypts, quiet_spark, spark_errors
from dpsr.engine.spark.task import (
    ANSWER_SCHEMA,
    NUMBER,
    BlockAnswer,
    BlockLoader,
    PassOnWorkers,
    add_sums,
    broadcast_if_large,
    merged_answers,
    spark_schema,
    unpack,
)
from dpsr.engine.table import BLOCK_RATINGS, Block, MemoryTable, PassResult, Table, Task, block_edges
from dpsr.types import Census, Mask

ITEMS = "items"
FEW = 8
"""So many partitions send their sums to the driver themselves."""


class SparkTable(Table):
    """A census and a DataFrame of blocks, which is kept with the executors until `close`."""

    def __init__(
        self,
        session: Any,
        blocks: Any,
        census: Census,
        dtypes: dict[str, str],
        *,
        partitions: int,
        block_ratings: int = BLOCK_RATINGS,
    ) -> None:
        self.session, self.census = session, census
        self._edges = block_edges(census.user_counts, block_ratings)
        self._indptr = np.concatenate([[0], np.cumsum(census.user_counts)]).astype(np.int64)
        self._state = _State(blocks.persist(), dict(dtypes), Gathering(len(self._edges) - 1, partitions))
        self._hidden: frozenset[str] = frozenset()

    def run(
        self,
        task: Task,
        sums: Sequence[AnyArray] = (),
        *,
        reads: Sequence[str] = (),
        writes: Sequence[str] = (),
        secret: bool = False,
        keep: bool = False,
    ) -> PassResult:
        """See `Table`."""
        work = PassOnWorkers.of(task, sums, writes, self._loader(reads))
        if secret:
            self.check_keeps_secrets()
        with spark_errors(), quiet_spark():
            answers = self._state.write(work) if writes else self._ask(work)
        add_sums([sums, *(unpack(one.sums) for one in answers if one.sums)])
        rows = [unpack(one.rows) for one in answers if one.rows]
        return PassResult(tuple(sums), tuple(np.concatenate(parts) for parts in zip(*rows, strict=True)))

    @cached_property
    def sum_bytes(self) -> int:  # type: ignore[override]
        """See `Table`. The driver gets the sums several times."""
        return Table.sum_bytes // self._state.gathering.senders

    def scan(self, reads: Sequence[str] = ()) -> Iterator[Block]:
        """See `Table`. One partition at a time comes to the driver."""
        load = self._loader(reads)
        with spark_errors():
            for row in self._state.blocks.select(NUMBER, *load.names).toLocalIterator():
                yield load(row[NUMBER], row.asDict())

    def hiding(self, column: str) -> SparkTable:
        """See `Table`."""
        view = SparkTable.__new__(SparkTable)
        view.__dict__.update(self.__dict__)
        view._hidden = self._hidden | {column}
        return view

    def drop(self, column: str) -> None:
        """See `Table`. Its bytes go when the next column is written."""
        del self._state.dtypes[column]

    def mask_only(self) -> Table:
        """Who rated what, with the driver."""
        return self._mask

    def check_keeps_secrets(self) -> None:
        """See `Table`."""
        check_encrypts(self.session.sparkContext)

    def close(self) -> None:
        """Let the executors forget the blocks."""
        self._state.blocks.unpersist()

    @cached_property
    def _mask(self) -> MemoryTable:
        items = np.concatenate([block.items for block in self.scan()])
        return MemoryTable(Mask(self.census.user_ids, self.census.item_ids, self._indptr, items))

    def _loader(self, reads: Sequence[str]) -> BlockLoader:
        if set(reads) & self._hidden:
            raise KeyError(f"the columns {sorted(set(reads) & self._hidden)} are hidden")
        dtypes = {name: self._state.dtypes[name] for name in (ITEMS, *reads)}
        return BlockLoader(self._edges, self._indptr, self.census.n_items, dtypes)

    def _ask(self, work: PassOnWorkers) -> list[BlockAnswer]:
        """A pass that leaves nothing behind."""
        blocks = self._state.blocks.select(NUMBER, *work.load.names)
        with broadcast_if_large(self.session.sparkContext, work.answer) as function:
            return self._state.gathering.answers(blocks.mapInArrow(function, spark_schema(ANSWER_SCHEMA)))


class _State:
    """The blocks as they are now, shared by all views of a table, the types of their columns, how answers come back."""

    def __init__(self, blocks: Any, dtypes: dict[str, str], gathering: Gathering) -> None:
        self.blocks, self.dtypes, self.gathering = blocks, dtypes, gathering

    def write(self, work: PassOnWorkers) -> list[BlockAnswer]:
        """Run, keep the new columns beside the old ones, and bring back rows and sums."""
        work.kept = tuple(name for name in self.dtypes if name not in work.writes)
        needed = dict.fromkeys((*work.kept, *work.load.names))
        out = self.blocks.select(NUMBER, *needed).mapInArrow(work.write, spark_schema(work.written_schema)).persist()
        try:
            answers = self.gathering.answers(out)
        except BaseException:
            out.unpersist()
            raise
        self.dtypes.update(zip(work.writes, answers[0].dtypes.split(","), strict=True))
        old, self.blocks = self.blocks, out
        old.unpersist()
        return answers


def group_of(number: Any, blocks: int, groups: int) -> Any:
    """Consecutive blocks, dealt evenly into groups: the group of a column of block numbers."""
    return (number.cast("bigint") * groups / blocks).cast("int")


@dataclass(frozen=True)
class Gathering:
    """How the answers of so many blocks in so many partitions come to the driver."""

    blocks: int
    partitions: int

    @property
    def senders(self) -> int:
        """How many times the driver gets the sums."""
        return self.partitions if self.partitions <= FEW else isqrt(self.partitions)

    def answers(self, frame: Any) -> list[BlockAnswer]:
        """What the blocks of a frame gave back."""
        found = frame.select(*ANSWER_SCHEMA.names)
        if self.partitions > FEW:
            group = group_of(found[NUMBER], self.blocks, self.senders)
            found = found.repartitionById(self.senders, group).mapInArrow(merged_answers, spark_schema(ANSWER_SCHEMA))
        return sorted(BlockAnswer(**row) for row in found.toArrow().to_pylist())
