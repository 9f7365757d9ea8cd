"""What a stage may ask of a rating table, wherever it is kept, and the table in memory that answers.

A stage is a pass over blocks of consecutive users. In memory blocks are views; larger tables are in `disk` and `spark`.

Blocks are cut by public counts alone, the same way for every engine, so that all engines add up the same numbers in
nearly the same order. One person's ratings are always in one block.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from dpsr.arrays import AnyArray, Codes, Ints
from dpsr.linalg.compiled import kernel
from dpsr.types import Census, Mask

BLOCK_RATINGS = 1 << 19
"""Ratings in a block, unless one user alone has more: large enough to hide what a block costs by itself."""


@dataclass(frozen=True, eq=False)
class ByItem:
    """A block's ratings item by item: the items that occur, pointers, the local users, and places in user order."""

    items: Codes
    ptr: Ints
    rows: Codes
    places: Codes


@dataclass(frozen=True, eq=False)
class Block:
    """Ratings of the users `first`, `first + 1`, ...; `start` is the place of the first rating in the whole table.

    `columns` hold one number a rating, as asked for by the pass. Nothing of it may be written to: a pass may run again,
    and a kernel is compiled once for all engines.
    """

    first: int
    start: int
    indptr: Ints
    items: Codes
    n_items: int
    columns: Mapping[str, AnyArray] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for column in (self.items, *self.columns.values()):
            column.setflags(write=False)

    @property
    def n_users(self) -> int:
        return len(self.indptr) - 1

    @property
    def users(self) -> slice:
        """Where this block's users stand in a user-side array."""
        return slice(self.first, self.first + self.n_users)

    @property
    def ratings(self) -> slice:
        """Where its ratings stand in the whole table."""
        return slice(self.start, self.start + len(self.items))

    @property
    def counts(self) -> Ints:
        return np.diff(self.indptr)

    @property
    def rows(self) -> Codes:
        """The local user of every rating."""
        return np.repeat(np.arange(self.n_users, dtype=np.int32), self.counts)

    def every(self, step: int, values: AnyArray) -> AnyArray:
        """Of one value a rating, those that stand at multiples of `step` in the whole table, however it is cut.

        A copy: a view would keep all of them in memory.
        """
        return values[-self.start % step :: step].copy()

    @cached_property
    def by_item(self) -> ByItem:
        return ByItem(*_by_item(self.indptr, self.items, self.n_items))


@dataclass(frozen=True, eq=False)
class BlockResult:
    """What a pass made of one block besides its sums: columns (one number a rating) and rows (one line a user)."""

    columns: Mapping[str, AnyArray] = field(default_factory=dict)
    rows: tuple[AnyArray, ...] = ()


def block_edges(user_counts: Ints, size: int = BLOCK_RATINGS) -> Ints:
    """Codes of the users at which blocks begin, and the number of users: whole users, about `size` ratings each."""
    ends = np.cumsum(user_counts)
    edges = [0]
    while edges[-1] < len(ends):
        before = ends[edges[-1] - 1] if edges[-1] else 0
        edges.append(max(int(np.searchsorted(ends, before + size, side="right")), edges[-1] + 1))
    return np.array(edges, dtype=np.int64)


@kernel
def _by_item(indptr: Ints, items: Codes, n_items: int) -> tuple[Codes, Ints, Codes, Codes]:
    """A counting sort that keeps the order of the users within an item."""
    counts = np.zeros(n_items, np.int64)
    for e in range(len(items)):
        counts[items[e]] += 1
    some = 0
    for j in range(n_items):
        some += counts[j] > 0
    occurring = np.empty(some, np.int32)
    ptr = np.zeros(some + 1, np.int64)
    cursor = counts
    at = 0
    for j in range(n_items):
        if counts[j] > 0:
            occurring[at] = j
            ptr[at + 1] = ptr[at] + counts[j]
            cursor[j] = ptr[at]
            at += 1
    rows = np.empty(len(items), np.int32)
    places = np.empty(len(items), np.int32)
    for u in range(len(indptr) - 1):
        for e in range(indptr[u], indptr[u + 1]):
            to = cursor[items[e]]
            rows[to], places[to] = u, e
            cursor[items[e]] += 1
    return occurring, ptr, rows, places


Task: TypeAlias = Callable[..., BlockResult | None]
"""task(block, *sums): adds to the sums in place, returns what it made of the block. It reads nothing else that changes,
so that it may be run again."""


TIMESTAMP = "timestamp"
"""The column of times, in tables that have them. Public."""


@dataclass(frozen=True, eq=False)
class PassResult:
    """The sums over all blocks, and the rows of all users, in the order of the users."""

    sums: tuple[AnyArray, ...]
    rows: tuple[AnyArray, ...]


class Table(ABC):
    """Ratings user by user, cut into blocks, with columns beside the item codes."""

    census: Census

    sum_bytes: int = 1 << 28
    """Bytes that the item-side sums of one pass may take, where a stage can choose."""

    @abstractmethod
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
        """One pass: `task` on every block, with the columns it `reads`; the columns it `writes` are kept.

        `sums` are where item-side sums start from, usually zeros; they are added to in place. A `secret` task carries
        a key, which must not reach a disk on its way. With `keep`, columns that were written before a run was killed
        stay as they are, where the table outlives the run.
        """

    @abstractmethod
    def scan(self, reads: Sequence[str] = ()) -> Iterator[Block]:
        """All blocks in order, with columns: for what must be written down one after the other."""

    @abstractmethod
    def hiding(self, column: str) -> Table:
        """The same table, its later columns included, without one column: for those who may not read it."""

    @abstractmethod
    def drop(self, column: str) -> None:
        """Forget a column."""

    @property
    def cells(self) -> Mask | Census:
        """Who rated what, where that is in memory; else who is in the table, and how often."""
        return self.census

    def check_keeps_secrets(self) -> None:
        """Refuse, before anything is asked or paid for, to draw where the key would be written down in the clear."""
        return

    def mask_only(self) -> Table:
        """A table for passes that read nothing but who rated what and are too light to travel."""
        return self


class MemoryTable(Table):
    """A mask with columns."""

    def __init__(
        self, mask: Mask, columns: Mapping[str, AnyArray] | None = None, *, block_ratings: int = BLOCK_RATINGS
    ) -> None:
        self.mask = mask
        self._block_ratings = block_ratings
        self.census = mask.census
        self._columns: dict[str, AnyArray] = dict(columns or {})
        if mask.timestamps is not None:
            self._columns[TIMESTAMP] = mask.timestamps
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
        made = []
        for block in self.scan(reads):
            result = task(block, *sums)
            if result is not None:
                made.append((block, result))
        for name in writes:
            self._keep(name, [(block, result.columns[name]) for block, result in made])
        rows = zip(*(result.rows for _, result in made), strict=True)
        return PassResult(tuple(sums), tuple(np.concatenate(parts) for parts in rows))

    def scan(self, reads: Sequence[str] = ()) -> Iterator[Block]:
        """See `Table`."""
        for block in self._blocks:
            yield _with(block, {name: self[name][block.ratings] for name in reads})

    @property
    def cells(self) -> Mask:
        """See `Table`."""
        return self.mask

    def hiding(self, column: str) -> MemoryTable:
        """See `Table`."""
        view = MemoryTable(self.mask)
        view._columns, view._hidden = self._columns, self._hidden | {column}
        view.__dict__["_blocks"] = self._blocks
        return view

    def drop(self, column: str) -> None:
        """See `Table`."""
        del self._columns[column]

    def __getitem__(self, column: str) -> AnyArray:
        """A whole column."""
        if column in self._hidden:
            raise KeyError(f"the column {column} is hidden")
        return self._columns[column]

    @cached_property
    def _blocks(self) -> list[Block]:
        mask, edges = self.mask, block_edges(self.mask.user_counts, self._block_ratings)
        return [
            Block(
                first=int(a),
                start=int(mask.indptr[a]),
                indptr=mask.indptr[a : b + 1] - mask.indptr[a],
                items=mask.items[mask.indptr[a] : mask.indptr[b]],
                n_items=mask.n_items,
            )
            for a, b in pairwise(edges)
        ]

    def _keep(self, name: str, parts: list[tuple[Block, AnyArray]]) -> None:
        if name not in self._columns:
            self._columns[name] = np.empty(self.mask.n_ratings, dtype=parts[0][1].dtype)
        for block, part in parts:
            self._columns[name][block.ratings] = part


def _with(block: Block, columns: Mapping[str, AnyArray]) -> Block:
    """The block with columns, and with what was computed about it before."""
    fresh = Block(block.first, block.start, block.indptr, block.items, block.n_items, columns)
    fresh.__dict__["by_item"] = block.by_item  # sorted once, used in every pass
    return fresh


def zeros(*shape: int) -> npt.NDArray[np.float64]:
    """An empty item-side sum."""
    return np.zeros(shape)
