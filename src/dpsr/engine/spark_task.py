"""A pass as Spark's executors see it: blocks in, answers out, bytes on both sides.

Everything here travels: it is packed with the task by the driver and opened by a worker, once an attempt.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import NamedTuple, TypeAlias

import numpy as np

from dpsr.engine.block import Array, Block, Made
from dpsr.engine.table import Task
from dpsr.errors import DataError
from dpsr.linalg.compiled import one_blas_thread

Columns: TypeAlias = dict[str, bytes]


class Answered(NamedTuple):
    """What a block gave back: rows of its users, and its partition's sums if it is the last there."""

    number: int
    rows: bytes
    sums: bytes
    kinds: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Loader:
    """An element of the RDD as a block, with the columns that `kinds` names."""

    edges: Array
    indptr: Array
    n_items: int
    kinds: dict[str, str]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.kinds)

    def __call__(self, element: tuple[int, Columns]) -> Block:
        number, columns = element[0], element[1]
        a, b = int(self.edges[number]), int(self.edges[number + 1])
        start, n = int(self.indptr[a]), int(self.indptr[b] - self.indptr[a])
        items, *others = (self._read(columns[name], name, n) for name in self.kinds)
        indptr = self.indptr[a : b + 1] - start
        return Block(a, start, indptr, items, self.n_items, dict(zip(self.names[1:], others, strict=True)))

    def _read(self, column: bytes, name: str, n: int) -> Array:
        found: Array = np.frombuffer(column, dtype=self.kinds[name])
        if len(found) != n:  # kernels do not look where a block ends
            raise changed()
        return found


def changed() -> DataError:
    """The error for ratings that are not those that were counted."""
    return DataError(
        "the ratings changed while Spark was reading them. Nothing was released. Save them where they stay as they are "
        "(a DataFrame that chooses rows at random is computed anew each time), and run again."
    )


@dataclass(eq=False)
class Work:
    """A task with all it needs on the other side; sums travel as shapes, and start from zero there."""

    task: Task
    sums: tuple[tuple[tuple[int, ...], str], ...]
    writes: tuple[str, ...]
    load: Loader
    kept: tuple[str, ...] = ()

    @classmethod
    def of(cls, task: Task, sums: Sequence[Array], writes: Sequence[str], load: Loader) -> Work:
        """The work of one pass."""
        return cls(task, tuple((one.shape, one.dtype.str) for one in sums), tuple(writes), load)

    def answer(self, elements: Iterable[tuple[int, Columns]]) -> Iterator[Answered]:
        """The answers of a partition."""
        for _, _, answered in self._work(elements):
            yield answered

    def carry(self, elements: Iterable[tuple[int, Columns]]) -> Iterator[tuple[int, Columns, Answered]]:
        """The blocks with their new columns, and the answers beside them."""
        for columns, made, answered in self._work(elements):
            new = {name: np.ascontiguousarray(made.columns[name]) for name in self.writes}
            kinds = tuple(one.dtype.str for one in new.values())
            kept = {name: columns[name] for name in self.kept}
            packed = {name: one.tobytes() for name, one in new.items()}
            yield answered.number, kept | packed, answered._replace(kinds=kinds)

    def _work(self, elements: Iterable[tuple[int, Columns]]) -> Iterator[tuple[Columns, Made, Answered]]:
        """Every block's columns, what was made of it, and its answer; sums stand in the last one."""
        from numba import set_num_threads

        set_num_threads(1)  # Spark deals out cores, one a task
        sums = tuple(np.zeros(shape, dtype=kind) for shape, kind in self.sums)
        pending: tuple[Columns, Made, Answered] | None = None
        with one_blas_thread():
            for element in elements:
                if pending is not None:
                    yield pending
                made = self.task(self.load(element), *sums) or Made()
                pending = element[1], made, Answered(element[0], pack(made.rows), b"", ())
        if pending is not None:
            yield *pending[:2], pending[2]._replace(sums=pack(sums))


def chosen(names: Sequence[str]) -> Callable[[Iterable[tuple[int, Columns]]], Iterator[tuple[int, Columns]]]:
    """Blocks with some of their columns."""

    def choose(elements: Iterable[tuple[int, Columns]]) -> Iterator[tuple[int, Columns]]:
        for element in elements:
            yield element[0], {name: element[1][name] for name in names}

    return choose


def only_answers(elements: Iterable[tuple[int, Columns, Answered]]) -> Iterator[Answered]:
    """Answers without the blocks they stand beside."""
    for _, _, answered in elements:
        yield answered


def pack(arrays: Sequence[Array]) -> bytes:
    """Arrays as bytes; nothing as nothing."""
    if not arrays:
        return b""
    out = BytesIO()
    for array in arrays:
        np.save(out, array, allow_pickle=False)
    return out.getvalue()


def unpack(packed: bytes) -> list[Array]:
    """The arrays again."""
    source, arrays = BytesIO(packed), []
    while source.tell() < len(packed):
        arrays.append(np.load(source, allow_pickle=False))
    return arrays
