"""A pass as Spark's executors see it: Arrow batches of blocks in, Arrow batches of answers out, one row a block.

Everything here travels: it is packed with the task by the driver and opened by a worker, once an attempt. Functions
travel by themselves, or, if they are large, by way of a file on the driver.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from dpsr.arrays import AnyArray
from dpsr.engine.table import Block, BlockResult, Task
from dpsr.errors import DataError
from dpsr.linalg.compiled import one_blas_thread

NUMBER = "number"

Columns: TypeAlias = Mapping[str, Any]
"""What a block has, each column as a buffer of bytes."""


class BlockAnswer(NamedTuple):
    """What a block gave back: rows of its users, its partition's sums if it is the last there, and types of columns."""

    number: int
    rows: bytes
    sums: bytes
    dtypes: str


ANSWER_SCHEMA = pa.schema([(NUMBER, pa.int32()), ("rows", pa.binary()), ("sums", pa.binary()), ("dtypes", pa.string())])


def spark_schema(schema: pa.Schema) -> str:
    """A schema as Spark is told of it."""
    names = {pa.int32(): "int", pa.int64(): "bigint", pa.binary(): "binary", pa.string(): "string"}
    return ", ".join(f"`{field.name}` {names[field.type]}" for field in schema)


def blocks_in(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, Columns]]:
    """The blocks of some batches, nothing copied."""
    for batch in batches:
        numbers, *others = batch.columns
        names = batch.schema.names[1:]
        for place, number in enumerate(numbers.to_pylist()):
            yield number, {name: column[place].as_buffer() for name, column in zip(names, others, strict=True)}


@dataclass(frozen=True, eq=False)
class BlockLoader:
    """A row of the DataFrame as a block, with the columns that `dtypes` names."""

    edges: AnyArray
    indptr: AnyArray
    n_items: int
    dtypes: dict[str, str]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.dtypes)

    def __call__(self, number: int, columns: Columns) -> Block:
        a, b = int(self.edges[number]), int(self.edges[number + 1])
        start, n = int(self.indptr[a]), int(self.indptr[b] - self.indptr[a])
        items, *others = (self._read(columns[name], name, n) for name in self.dtypes)
        indptr = self.indptr[a : b + 1] - start
        return Block(a, start, indptr, items, self.n_items, dict(zip(self.names[1:], others, strict=True)))

    def _read(self, column: Any, name: str, n: int) -> AnyArray:
        found: AnyArray = np.frombuffer(column, dtype=self.dtypes[name])
        if len(found) != n:  # kernels do not look where a block ends
            raise changed_input_error()
        return found


def changed_input_error() -> DataError:
    """The error for ratings that are not those that were counted."""
    return DataError(
        "the ratings changed while Spark was reading them. Nothing was released. Save them where they stay as they are "
        "(a DataFrame that chooses rows at random is computed anew each time), and run again."
    )


@dataclass(eq=False)
class PassOnWorkers:
    """A task with all it needs on the other side; sums travel as shapes, and start from zero there."""

    task: Task
    sums: tuple[tuple[tuple[int, ...], str], ...]
    writes: tuple[str, ...]
    load: BlockLoader
    kept: tuple[str, ...] = ()

    @classmethod
    def of(cls, task: Task, sums: Sequence[AnyArray], writes: Sequence[str], load: BlockLoader) -> PassOnWorkers:
        """The work of one pass."""
        return cls(task, tuple((one.shape, one.dtype.str) for one in sums), tuple(writes), load)

    def answer(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The answers of a partition."""
        for _, _, answered in self._run_blocks(batches):
            yield pa.RecordBatch.from_pylist([answered._asdict()], schema=ANSWER_SCHEMA)

    @property
    def written_schema(self) -> pa.Schema:
        """Of what `write` gives."""
        return pa.schema([*ANSWER_SCHEMA, *((name, pa.binary()) for name in (*self.kept, *self.writes))])

    def write(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The blocks with their new columns, and the answers beside them."""
        schema = self.written_schema
        for columns, made, answered in self._run_blocks(batches):
            new = {name: np.ascontiguousarray(made.columns[name]) for name in self.writes}
            dtypes = ",".join(one.dtype.str for one in new.values())
            row = {**answered._replace(dtypes=dtypes)._asdict(), **{name: bytes(columns[name]) for name in self.kept}}
            row |= {name: one.tobytes() for name, one in new.items()}
            yield pa.RecordBatch.from_pylist([row], schema=schema)

    def _run_blocks(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[Columns, BlockResult, BlockAnswer]]:
        """Every block's columns, what was made of it, and its answer; sums stand in the last one."""
        from numba import set_num_threads

        set_num_threads(1)  # Spark deals out cores, one a task
        sums = tuple(np.zeros(shape, dtype=kind) for shape, kind in self.sums)
        pending: tuple[Columns, BlockResult, BlockAnswer] | None = None
        with one_blas_thread():
            for number, columns in blocks_in(batches):
                if pending is not None:
                    yield pending
                made = self.task(self.load(number, columns), *sums) or BlockResult()
                pending = columns, made, BlockAnswer(number, pack(made.rows), b"", "")
        if pending is not None:
            yield *pending[:2], pending[2]._replace(sums=pack(sums))


def merged_answers(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The answers of several partitions as those of one: sums are added up in the order of the blocks."""
    found = sorted(BlockAnswer(**row) for batch in batches for row in batch.to_pylist())
    if not found:
        return
    sums = add_sums([unpack(one.sums) for one in found if one.sums])
    whole = [one._replace(sums=b"") for one in found[:-1]] + [found[-1]._replace(sums=pack(sums))]
    yield pa.RecordBatch.from_pylist([one._asdict() for one in whole], schema=ANSWER_SCHEMA)


def add_sums(parts: Sequence[Sequence[AnyArray]]) -> Sequence[AnyArray]:
    """Item-side sums of several partitions, added to the first one's."""
    if not parts:
        return ()
    total, *others = parts
    for one in others:
        for mine, more in zip(total, one, strict=True):
            mine += more
    return total


def pack(arrays: Sequence[AnyArray]) -> bytes:
    """Arrays as bytes; nothing as nothing."""
    if not arrays:
        return b""
    out = BytesIO()
    for array in arrays:
        np.save(out, array, allow_pickle=False)
    return out.getvalue()


def unpack(packed: bytes) -> list[AnyArray]:
    """The arrays again."""
    source, arrays = BytesIO(packed), []
    while source.tell() < len(packed):
        arrays.append(np.load(source, allow_pickle=False))
    return arrays


_ENVELOPE = 1 << 12
"""What Spark wraps around a function, amply."""


@contextmanager
def broadcast_if_large(context: Any, function: Callable[..., Any]) -> Iterator[Callable[..., Any]]:
    """A function as it is, or, if it is large, in a broadcast that ends with the pass; Spark's own would stay."""
    if not goes_through_a_file(context, function):
        yield function
        return
    broadcast = context.broadcast(_packed(function))
    try:
        yield _FromBroadcast(broadcast)
    finally:
        broadcast.destroy()


def goes_through_a_file(context: Any, function: Callable[..., Any]) -> bool:
    """Whether Spark would write it to the driver's disk on its way."""
    most = int(context._jvm.PythonUtils.getBroadcastThreshold(context._jsc))
    return len(_packed(function)) + _ENVELOPE > most


def _packed(function: Callable[..., Any]) -> bytes:
    from pyspark.serializers import CloudPickleSerializer

    packed: bytes = CloudPickleSerializer().dumps(function)  # type: ignore[no-untyped-call]
    return packed


class _FromBroadcast:
    """A function that travels in a broadcast."""

    def __init__(self, broadcast: Any) -> None:
        self.broadcast = broadcast

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark.serializers import CloudPickleSerializer

        return CloudPickleSerializer().loads(self.broadcast.value)(batches)  # type: ignore[no-untyped-call]
