"""The engine for those who outgrow one machine: blocks are rows of a Spark DataFrame.

    number int, items binary, level binary, ...        one row a block, one binary column a column of the table

A pass is one `mapInArrow` with the same kernels inside: every task adds up the blocks of its partition, and the driver
adds up the tasks. Columns stay with the executors. A task is a pure function of its blocks and of what the driver sent,
so a retried or speculative one gives the same numbers, and the same noise: draws are read at the rating's own place in
a keyed stream.

What is light stays with the driver: user-side rows, and who rated what (four bytes a rating) for the passes that read
nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from io import BytesIO
from typing import Any

import numpy as np
import pyarrow as pa

from dpsr.engine.block import BLOCK_RATINGS, Array, Block, block_edges
from dpsr.engine.memory import MemoryTable
from dpsr.engine.table import Answer, Table, Task
from dpsr.errors import PrivacyError
from dpsr.types import Census, Mask

ITEMS = "items"
_NUMBER, _ROWS, _SUMS = "number", "rows of users", "sums"
_ONE_AT_A_TIME = {"spark.sql.execution.arrow.maxRecordsPerBatch": "1"}
"""Blocks are large; a batch holds one."""

_THROUGH_A_FILE = 1 << 20
"""Spark sends functions larger than this by way of a file on the driver."""


class SparkTable(Table):
    """A census and a DataFrame of blocks."""

    def __init__(
        self, session: Any, frame: Any, census: Census, dtypes: dict[str, str], *, block_ratings: int = BLOCK_RATINGS
    ) -> None:
        self.session, self.census = session, census
        self._edges = block_edges(census.user_counts, block_ratings)
        self._indptr = np.concatenate([[0], np.cumsum(census.user_counts)]).astype(np.int64)
        self._state = _State(frame, dict(dtypes))
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
        if set(reads) & self._hidden:
            raise KeyError(f"the columns {sorted(set(reads) & self._hidden)} are hidden")
        work = _Work(task, tuple(np.zeros_like(one) for one in sums), tuple(reads), tuple(writes), self._loader(reads))
        if secret:
            self._refuse_to_write_a_key(work)
        with _settings(self.session, _ONE_AT_A_TIME):
            answers = self._state.map(work)
        answers.sort(key=lambda answer: answer[0])
        for _, _, partial in answers:
            for total, part in zip(sums, _unpack(partial), strict=bool(partial)):
                total += part
        rows = [_unpack(packed) for _, packed, _ in answers if packed]
        return Answer(tuple(sums), tuple(np.concatenate(parts) for parts in zip(*rows, strict=True)))

    @cached_property
    def room(self) -> int:  # type: ignore[override]
        """See `Table`. Every task sends its own sums to the driver."""
        return Table.room // int(self._state.frame.rdd.getNumPartitions())

    def gather(self) -> None:
        """Make the blocks now, and keep them with the executors."""
        self._state.frame.count()

    def scan(self, reads: Sequence[str] = ()) -> Iterator[Block]:
        """See `Table`. One block at a time comes to the driver."""
        if set(reads) & self._hidden:
            raise KeyError(f"the columns {sorted(set(reads) & self._hidden)} are hidden")
        load = self._loader(reads)
        chosen = self._state.frame.select(_NUMBER, ITEMS, *reads).orderBy(_NUMBER)
        for row in chosen.toLocalIterator():
            yield load(row.asDict())

    def hiding(self, column: str) -> SparkTable:
        """See `Table`."""
        view = SparkTable.__new__(SparkTable)
        view.__dict__.update(self.__dict__)
        view._hidden = self._hidden | {column}
        return view

    def drop(self, column: str) -> None:
        """See `Table`."""
        self._state.frame = self._state.frame.drop(column)
        del self._state.dtypes[column]

    def at_hand(self) -> Table:
        """Who rated what, with the driver."""
        return self._mask

    @cached_property
    def _mask(self) -> MemoryTable:
        items = np.concatenate([block.items for block in self.scan()])
        return MemoryTable(Mask(self.census.user_ids, self.census.item_ids, self._indptr, items))

    def _loader(self, reads: Sequence[str]) -> _Loader:
        kinds = {name: self._state.dtypes[name] for name in reads}
        return _Loader(self._edges, self._indptr, self.census.n_items, kinds)

    def _refuse_to_write_a_key(self, work: _Work) -> None:
        from pyspark.serializers import CloudPickleSerializer

        size = len(CloudPickleSerializer().dumps(work))  # type: ignore[no-untyped-call]
        encrypted = self.session.conf.get("spark.io.encryption.enabled", "false") == "true"
        if size > _THROUGH_A_FILE and not encrypted:
            raise PrivacyError(
                "this Spark session would write the noise key to a disk in the clear. Nothing was drawn. Start the "
                "session with spark.io.encryption.enabled=true, or let dpsr start one."
            )


class _State:
    """The DataFrame, shared by all views of a table, and the types of its columns."""

    def __init__(self, frame: Any, dtypes: dict[str, str]) -> None:
        self.frame, self.dtypes = frame.persist(), dtypes

    def map(self, work: _Work) -> list[tuple[int, bytes, bytes]]:
        """Run, keep what is to be kept, and bring back rows and sums block by block."""
        if not work.writes:
            schema = f"{_NUMBER} int, `{_ROWS}` binary, {_SUMS} binary"
            source = self.frame.select(_NUMBER, ITEMS, *work.reads)
            return _collect(source.mapInArrow(work.answer, schema))
        kept = [name for name in self.frame.columns if name not in work.writes]
        columns = ", ".join(f"{name} {'int' if name == _NUMBER else 'binary'}" for name in [*kept, *work.writes])
        out = self.frame.mapInArrow(
            work.carry(kept), f"{columns}, `{_ROWS}` binary, {_SUMS} binary, kinds string"
        ).persist()
        found = _collect(out)
        first = out.select("kinds").head()
        self.dtypes.update(zip(work.writes, first[0].split(" "), strict=True))
        old, self.frame = self.frame, out.drop(_ROWS, _SUMS, "kinds")
        old.unpersist()
        return found


class _Loader:
    """A row of the DataFrame as a block."""

    def __init__(self, edges: Array, indptr: Array, n_items: int, kinds: dict[str, str]) -> None:
        self.edges, self.indptr, self.n_items, self.kinds = edges, indptr, n_items, kinds

    def __call__(self, row: dict[str, Any]) -> Block:
        number = row[_NUMBER]
        a, b = int(self.edges[number]), int(self.edges[number + 1])
        return Block(
            first=a,
            start=int(self.indptr[a]),
            indptr=self.indptr[a : b + 1] - self.indptr[a],
            items=np.frombuffer(row[ITEMS], dtype=np.int32),
            n_items=self.n_items,
            columns={name: np.frombuffer(row[name], dtype=kind) for name, kind in self.kinds.items()},
        )


class _Work:
    """A pass as the executors see it: rows of blocks in, rows of answers out."""

    def __init__(
        self, task: Task, zeros: tuple[Array, ...], reads: tuple[str, ...], writes: tuple[str, ...], load: _Loader
    ) -> None:
        self.task, self.zeros, self.reads, self.writes, self.load = task, zeros, reads, writes, load

    def answer(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Number, user rows, and the partition's sums beside its last block."""
        for row, made, sums in self._work(batches):
            yield pa.RecordBatch.from_pylist(
                [{_NUMBER: row[_NUMBER], _ROWS: _pack(made.rows) if made else b"", _SUMS: _pack(sums)}],
                schema=_schema([], answers=True),
            )

    def carry(self, kept: list[str]) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
        """The same with the block's old columns and its new ones."""

        def carried(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            names = [*kept, *self.writes]
            for row, made, sums in self._work(batches):
                new = {name: np.ascontiguousarray(made.columns[name]) for name in self.writes}
                record = {name: row[name] for name in kept} | {name: one.tobytes() for name, one in new.items()}
                record |= {_ROWS: _pack(made.rows), _SUMS: _pack(sums)}
                record["kinds"] = " ".join(str(one.dtype) for one in new.values())
                yield pa.RecordBatch.from_pylist([record], schema=_schema(names, answers=True, kinds=True))

        return carried

    def _work(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[dict[str, Any], Any, tuple[Array, ...]]]:
        from numba import set_num_threads

        set_num_threads(1)  # Spark deals out cores, one a task
        sums = tuple(zero.copy() for zero in self.zeros)
        pending: tuple[dict[str, Any], Any] | None = None
        for batch in batches:
            for row in batch.to_pylist():
                if pending is not None:
                    yield *pending, ()
                pending = row, self.task(self.load(row), *sums)
        if pending is not None:
            yield *pending, sums


def _schema(names: list[str], *, answers: bool, kinds: bool = False) -> pa.Schema:
    fields = [(name, pa.int32() if name == _NUMBER else pa.binary()) for name in names]
    if _NUMBER not in names:
        fields.insert(0, (_NUMBER, pa.int32()))
    fields += [(_ROWS, pa.binary()), (_SUMS, pa.binary())] if answers else []
    return pa.schema(fields + ([("kinds", pa.string())] if kinds else []))


def _collect(frame: Any) -> list[tuple[int, bytes, bytes]]:
    rows = frame.select(_NUMBER, f"`{_ROWS}`", _SUMS).collect()
    return [(row[0], bytes(row[1]), bytes(row[2])) for row in rows]


def _pack(arrays: Sequence[Array]) -> bytes:
    """Arrays as bytes, without pickles; nothing as nothing."""
    if not arrays:
        return b""
    out = BytesIO()
    for array in arrays:
        np.save(out, array, allow_pickle=False)
    return out.getvalue()


def _unpack(packed: bytes) -> list[Array]:
    source, arrays = BytesIO(packed), []
    while source.tell() < len(packed):
        arrays.append(np.load(source, allow_pickle=False))
    return arrays


@contextmanager
def _settings(session: Any, wanted: dict[str, str]) -> Iterator[None]:
    """A session's settings for the length of a pass; they are the user's again afterwards."""
    before = {name: session.conf.get(name) for name in wanted}
    try:
        for name, value in wanted.items():
            session.conf.set(name, value)
        yield
    finally:
        for name, value in before.items():
            session.conf.set(name, value)
