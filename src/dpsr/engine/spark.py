"""The engine for those who outgrow one machine: blocks are elements of a Spark RDD.

    (number, {column: bytes})        in the order of the blocks, one partition after the other

A pass is one `mapPartitions` with the same kernels inside: every task adds up the blocks of its partition, and the
driver adds up the tasks. Columns stay with the executors. A task is a pure function of its blocks and of what the
driver sent, so a retried or speculative one gives the same numbers, and the same noise: draws are read at the rating's
own place in a keyed stream. Columns that are lost with an executor are made again by the functions that made them
first, which Spark keeps with their key.

RDDs and not DataFrames: planning a query costs more than most passes do. What is light stays with the driver: user-side
rows, and who rated what (four bytes a rating) for the passes that read nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import numpy as np

from dpsr.engine.block import BLOCK_RATINGS, Array, Block, block_edges
from dpsr.engine.memory import MemoryTable
from dpsr.engine.spark_task import Answered, Columns, Loader, Work, chosen, only_answers, unpack
from dpsr.engine.table import Answer, Table, Task
from dpsr.errors import DataError, PrivacyError
from dpsr.types import Census, Mask

ITEMS = "items"


class SparkTable(Table):
    """A census and an RDD of blocks, which is kept with the executors until `close`."""

    def __init__(
        self, session: Any, blocks: Any, census: Census, dtypes: dict[str, str], *, block_ratings: int = BLOCK_RATINGS
    ) -> None:
        self.session, self.census = session, census
        self._edges = block_edges(census.user_counts, block_ratings)
        self._indptr = np.concatenate([[0], np.cumsum(census.user_counts)]).astype(np.int64)
        self._state = _State(blocks.persist(), dict(dtypes))
        self._hidden: frozenset[str] = frozenset()

    def run(
        self,
        task: Task,
        sums: Sequence[Array] = (),
        *,
        reads: Sequence[str] = (),
        writes: Sequence[str] = (),
        secret: bool = False,
        keep: bool = False,
    ) -> Answer:
        """See `Table`."""
        work = Work.of(task, sums, writes, self._loader(reads))
        if secret:
            self._refuse_to_write_a_key(work)
        with in_our_words():
            answers = self._state.write(work) if writes else self._ask(work)
        for one in sorted(answers):
            for total, part in zip(sums, unpack(one.sums), strict=bool(one.sums)):
                total += part
        rows = [unpack(one.rows) for one in sorted(answers) if one.rows]
        return Answer(tuple(sums), tuple(np.concatenate(parts) for parts in zip(*rows, strict=True)))

    @cached_property
    def room(self) -> int:  # type: ignore[override]
        """See `Table`. Every task sends its own sums to the driver."""
        return Table.room // int(self._state.blocks.getNumPartitions())

    def scan(self, reads: Sequence[str] = ()) -> Iterator[Block]:
        """See `Table`. One partition at a time comes to the driver."""
        load = self._loader(reads)
        with in_our_words():
            yield from map(load, self._state.blocks.mapPartitions(chosen(load.names)).toLocalIterator())

    def hiding(self, column: str) -> SparkTable:
        """See `Table`."""
        view = SparkTable.__new__(SparkTable)
        view.__dict__.update(self.__dict__)
        view._hidden = self._hidden | {column}
        return view

    def drop(self, column: str) -> None:
        """See `Table`. Its bytes go when the next column is written."""
        del self._state.dtypes[column]

    def at_hand(self) -> Table:
        """Who rated what, with the driver."""
        return self._mask

    def close(self) -> None:
        """Let the executors forget the blocks."""
        self._state.blocks.unpersist()

    @cached_property
    def _mask(self) -> MemoryTable:
        items = np.concatenate([block.items for block in self.scan()])
        return MemoryTable(Mask(self.census.user_ids, self.census.item_ids, self._indptr, items))

    def _loader(self, reads: Sequence[str]) -> Loader:
        if set(reads) & self._hidden:
            raise KeyError(f"the columns {sorted(set(reads) & self._hidden)} are hidden")
        kinds = {name: self._state.dtypes[name] for name in (ITEMS, *reads)}
        return Loader(self._edges, self._indptr, self.census.n_items, kinds)

    def _ask(self, work: Work) -> list[Answered]:
        """A pass that leaves nothing behind."""
        with _sent(self.session.sparkContext, work.answer) as function:
            found: list[Answered] = self._state.blocks.mapPartitions(function).collect()
        return found

    def _refuse_to_write_a_key(self, work: Work) -> None:
        context = self.session.sparkContext
        encrypted = context.getConf().get("spark.io.encryption.enabled", "false") == "true"
        if not encrypted and len(_packed(work.carry)) + _ENVELOPE > _through_a_file(context):
            raise PrivacyError(
                "this Spark session would write the noise key to a disk in the clear. Nothing was drawn. Start the "
                "session with spark.io.encryption.enabled=true, or let dpsr start one."
            )


class _State:
    """The blocks as they are now, shared by all views of a table, and the types of their columns."""

    def __init__(self, blocks: Any, dtypes: dict[str, str]) -> None:
        self.blocks, self.dtypes = blocks, dtypes

    def write(self, work: Work) -> list[Answered]:
        """Run, keep the new columns beside the old ones, and bring back rows and sums."""
        work.kept = tuple(name for name in self.dtypes if name not in work.writes)
        out = self.blocks.mapPartitions(work.carry).persist()
        try:
            answers: list[Answered] = out.mapPartitions(only_answers).collect()
        except BaseException:
            out.unpersist()
            raise
        self.dtypes.update(zip(work.writes, answers[0].kinds, strict=True))
        old, self.blocks = self.blocks, out
        old.unpersist()
        return answers


_ENVELOPE = 1 << 12
"""What Spark wraps around a function, amply."""


def _packed(function: Callable[..., Any]) -> bytes:
    from pyspark.serializers import CloudPickleSerializer

    packed: bytes = CloudPickleSerializer().dumps(function)  # type: ignore[no-untyped-call]
    return packed


def _through_a_file(context: Any) -> int:
    """Spark sends functions larger than this by way of a file on the driver."""
    return int(context._jvm.PythonUtils.getBroadcastThreshold(context._jsc))


@contextmanager
def _sent(context: Any, function: Callable[..., Any]) -> Iterator[Callable[..., Any]]:
    """A function as it is, or, if it is large, in a broadcast that ends with the pass; Spark's own would stay."""
    packed = _packed(function)
    if len(packed) + _ENVELOPE <= _through_a_file(context):
        yield function
        return
    box = context.broadcast(packed)
    try:
        yield _Opened(box)
    finally:
        box.destroy()


class _Opened:
    """A function that travels in a broadcast."""

    def __init__(self, box: Any) -> None:
        self.box = box

    def __call__(self, elements: Iterator[tuple[int, Columns]]) -> Iterator[Any]:
        from pyspark.serializers import CloudPickleSerializer

        return CloudPickleSerializer().loads(self.box.value)(elements)  # type: ignore[no-untyped-call]


def gave_up(reason: str) -> DataError:
    """The error for a pass that Spark could not finish."""
    return DataError(f"Spark gave up: {reason}. Nothing was released. Look at the executors' logs, and run again.")


@contextmanager
def in_our_words(refuse: Callable[[str], DataError] = gave_up) -> Iterator[None]:
    """What a task refused, as the driver's own error: Spark wraps it into the worker's and its own traceback."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        said = re.search(r"dpsr\.errors\.\w+: (.+)", str(error))
        if said is None:
            raise refuse(_reason(str(error))) from error
        raise DataError(said[1].strip()) from None


def _reason(message: str) -> str:
    """What Spark says about itself, or the kind of error a task met; a task's own words might quote a rating."""
    found = re.findall(r"([\w.]*(?:Error|Exception))(?:: (.*))?", message)
    own = [words for kind, words in found if kind.startswith("org.apache.spark") and words]
    others = [kind for kind, _ in found if not kind.startswith(("org.apache.spark", "py4j", "java"))]
    return (others or own or ["no reason was given"])[-1][:200].rstrip(".")
