"""The engine for tables larger than memory: blocks are Parquet files in a working folder.

    items-00012.block.parquet     the item codes of block 12; every other column likewise
    indptr is not stored: it follows from the census

A pass holds one block, reads the next in a thread meanwhile, and writes new columns file by file, each under a
temporary name first: a file that exists is complete. So a run that was killed finds the columns it had finished, and a
block whose symbols were drawn is never drawn again (`keep`).

The folder holds the secret column too, exactly as the input file does. It belongs on the curator's disk, and its
files are for their owner alone (`work_folder`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dpsr.arrays import AnyArray
from dpsr.engine.table import BLOCK_RATINGS, Block, PassResult, Table, Task, block_edges
from dpsr.engine.work_folder import block_file, create_private
from dpsr.errors import DataError
from dpsr.types import Census

ITEMS = "items"


class _Growing:
    """Rows put together as they come, in place: parts and the whole are never held at once."""

    def __init__(self, like: AnyArray) -> None:
        self.array = np.empty((0, *like.shape[1:]), like.dtype)

    def add(self, part: AnyArray) -> None:
        """More rows at the end."""
        size = len(self.array)
        self.array.resize((size + len(part), *part.shape[1:]), refcheck=False)
        self.array[size:] = part


class DiskTable(Table):
    """A census and a folder of blocks."""

    def __init__(self, folder: Path, census: Census, *, block_ratings: int = BLOCK_RATINGS) -> None:
        self.folder, self.census = folder, census
        self._edges = block_edges(census.user_counts, block_ratings)
        self._indptr = np.concatenate([[0], np.cumsum(census.user_counts)]).astype(np.int64)
        self._hidden: frozenset[str] = frozenset()

    @property
    def n_blocks(self) -> int:
        return len(self._edges) - 1

    def ratings_of(self, number: int) -> slice:
        """Where the ratings of a block stand in the whole table."""
        a, b = self._edges[number], self._edges[number + 1]
        return slice(int(self._indptr[a]), int(self._indptr[b]))

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
        rows: list[_Growing] = []
        for number, block in enumerate(self.scan(reads)):
            if keep and all(self.has(name, number) for name in writes):
                continue
            made = task(block, *sums)
            if made is not None:
                rows = rows or [_Growing(part) for part in made.rows]
                for whole, part in zip(rows, made.rows, strict=True):
                    whole.add(part)
                for name in writes:
                    self.write(name, number, made.columns[name])
        return PassResult(tuple(sums), tuple(whole.array for whole in rows))

    def scan(self, reads: Sequence[str] = ()) -> Iterator[Block]:
        """See `Table`. The next block is read while this one is worked on, and sorted by item if this one was."""
        with ThreadPoolExecutor(1) as reader:
            ahead, by_item = reader.submit(self._load, 0, reads), False
            for number in range(self.n_blocks):
                block = ahead.result()
                if number + 1 < self.n_blocks:
                    ahead = reader.submit(self._load, number + 1, reads, by_item=by_item)
                yield block
                by_item = "by_item" in block.__dict__

    def hiding(self, column: str) -> DiskTable:
        """See `Table`."""
        view = DiskTable.__new__(DiskTable)
        view.__dict__.update(self.__dict__)
        view._hidden = self._hidden | {column}
        return view

    def drop(self, column: str) -> None:
        """See `Table`."""
        for number in range(self.n_blocks):
            self._path(column, number).unlink(missing_ok=True)

    def has(self, column: str, number: int) -> bool:
        """Whether a block's column was written before."""
        return self._path(column, number).exists()

    def write(self, column: str, number: int, values: AnyArray) -> None:
        """Keep a block's column; it appears whole or not at all."""
        path = self._path(column, number)
        draft = path.with_suffix(".partial")
        try:
            pq.write_table(pa.table({column: values}), create_private(draft), compression="none", use_dictionary=False)
            os.replace(draft, path)
        except OSError as error:
            draft.unlink(missing_ok=True)
            raise DataError(
                f"the working folder could not be written: {error.strerror or error}. Nothing was released. Give one "
                "with more room (--work FOLDER) and run again."
            ) from error

    def read(self, column: str, number: int) -> AnyArray:
        """A block's column."""
        if column in self._hidden:
            raise KeyError(f"the column {column} is hidden")
        path, place = self._path(column, number), self.ratings_of(number)
        try:
            found: AnyArray = pq.ParquetFile(path, memory_map=False).read(use_threads=False)[column].to_numpy()
            if len(found) != place.stop - place.start:  # kernels do not look where a block ends
                raise pa.ArrowInvalid("a block of another length")
        except (OSError, KeyError, pa.ArrowException) as error:
            raise DataError(
                f"the block file {path.name} of the working folder is missing or damaged. Nothing was released. "
                "Leave that folder alone while dpsr runs, and run again."
            ) from error
        return found

    def _load(self, number: int, reads: Sequence[str], *, by_item: bool = False) -> Block:
        a, b = int(self._edges[number]), int(self._edges[number + 1])
        block = Block(
            first=a,
            start=int(self._indptr[a]),
            indptr=self._indptr[a : b + 1] - self._indptr[a],
            items=self.read(ITEMS, number),
            n_items=self.census.n_items,
            columns={name: self.read(name, number) for name in reads},
        )
        if by_item:
            block.by_item  # noqa: B018 (sorted here, while the pass works on the block before)
        return block

    def _path(self, column: str, number: int) -> Path:
        return block_file(self.folder, column, number)
