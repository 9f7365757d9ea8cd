"""The engine for tables that fit in memory: blocks are views, kernels use all threads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import pairwise

import numpy as np

from dpsr.arrays import AnyArray
from dpsr.engine.table import BLOCK_RATINGS, TIMESTAMP, Block, PassResult, Table, Task, block_edges
from dpsr.types import Mask


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
