"""A file larger than memory becomes a table of blocks: checked, coded, sorted, without loading it whole.

Chunks are checked and put on the scale as they pass, and kept in a DuckDB database in the working folder. Distinct ids
are sorted into vocabularies; then DuckDB sorts all ratings by (user, item) on disk, within a memory limit, and they are
cut into blocks as they come. What comes out is what `Ratings.read` would give, in the same order, with the same errors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dpsr.data.coding import RatingColumns, code_ids, code_ratings, distinct, integers_if_canonical, missing, read_times
from dpsr.data.files.chunks import chunks_of_file
from dpsr.data.files.read import recognised
from dpsr.data.ratings import DUPLICATES, repeated_pair_error
from dpsr.engine.disk import ITEMS, DiskTable
from dpsr.engine.raw import LEVEL, RawTable
from dpsr.engine.table import BLOCK_RATINGS, TIMESTAMP
from dpsr.engine.work_folder import SPILLED, STORE, clear_store, private_files
from dpsr.errors import DataError, ParameterError
from dpsr.quoting import Source, quoted
from dpsr.types import Census, Scale

if TYPE_CHECKING:
    import duckdb

_SORTED = "select u.code, i.code, r.level, r.time from raw r join users u on r.user = u.id join items i on "
_SORTED += "r.item = i.id order by u.code, i.code, r.row"
_BATCH = 1 << 17

_NO_ROOM = ("IOException", "OutOfMemoryException", "TransactionException", "FatalException")
"""What DuckDB says when a disk or the memory is full: while it reads and sorts, and while it commits."""


def ingest(
    path: str | Path,
    work: Path,
    *,
    scale: Scale,
    memory: int = 1 << 29,
    duplicates: str = "error",
    block_size: Callable[[Census], int] = lambda census: BLOCK_RATINGS,
    **named: str | None,
) -> RawTable:
    """The file's ratings as blocks in the folder `work`; DuckDB uses at most `memory` bytes.

    `block_size` says how many ratings a block may have, once the users and items are known.
    """
    if duplicates not in DUPLICATES:
        raise ParameterError(f"duplicates is one of {', '.join(DUPLICATES)}, found {quoted(duplicates)}.")
    duckdb = sorting_library()
    clear_store(work)  # a run that was killed may have left one
    try:
        with private_files(), duckdb.connect(str(work / STORE), config=store_limits(work, memory)) as base:
            source, timed = _fill(base, chunks_of_file(path, **named), scale)
            census = census_of(base, source, timed=timed, text=recognised(path, **named)[1] is not None)
            return RawTable(_cut(base, work, census, duplicates, source, block_size(census)), scale)
    except no_room(duckdb) as error:
        raise DataError(
            f"the working folder could not hold the sorted ratings ({type(error).__name__}). Nothing was released. "
            "Give a folder with more room (--work FOLDER), or more memory (--memory), and run again."
        ) from error
    finally:
        clear_store(work)


def sorting_library() -> ModuleType:
    """The library that sorts, which those who release from memory or on Spark can do without."""
    try:
        return import_module("duckdb")
    except ModuleNotFoundError as error:
        raise DataError(
            "files larger than memory are sorted by DuckDB, which is not installed. "
            "Install dpsr[disk], or release without --engine disk."
        ) from error


def no_room(library: ModuleType) -> tuple[type[Exception], ...]:
    """The errors that say that a disk or the memory is full."""
    return tuple(getattr(library, name) for name in _NO_ROOM)


def store_limits(work: Path, memory: int) -> dict[str, Any]:
    """How much memory DuckDB may use, and where it puts the rest."""
    return {
        "memory_limit": f"{memory // (1 << 20)}MB",
        "temp_directory": str(work / SPILLED),
    }


def _fill(base: duckdb.DuckDBPyConnection, chunks: Iterator[RatingColumns], scale: Scale) -> tuple[Source, bool]:
    """All rows with their level, time and number; ids as the file spells them."""
    timed = False

    def secrets(columns: RatingColumns) -> dict[str, Any]:
        nonlocal timed
        timed, source = columns.timestamps is not None, columns.source
        times = np.zeros(len(columns.ratings), dtype=np.int64)
        if columns.timestamps is not None:
            times = read_times(columns.timestamps, source)
        return {"level": code_ratings(columns.ratings, scale, source), "time": times}

    return fill(base, chunks, secrets), timed


def fill(
    base: duckdb.DuckDBPyConnection,
    chunks: Iterator[RatingColumns],
    secrets: Callable[[RatingColumns], Mapping[str, Any]],
) -> Source:
    """All rows as the table `raw`: ids as the file spells them, what is secret in a row, and the row's number."""
    start = 0
    for columns in chunks:
        source, n = columns.source, len(columns.ratings)
        if not start:
            for role, ids in (("user", columns.users), ("item", columns.items)):
                distinct(ids.slice(0, 1), role, source)  # a type that no id has is refused before the database sees it
        ids = {"user": plain_ids(columns.users), "item": plain_ids(columns.items)}
        chunk = pa.table({**ids, **secrets(columns), "row": np.arange(start, start + n)})
        base.register("chunk", chunk)
        base.execute("insert into raw select * from chunk" if start else "create table raw as select * from chunk")
        start += n
        base.unregister("chunk")
    first = source.place
    return Source(source.name, lambda row: first(row - start + n))


def plain_ids(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Ids without dictionaries."""
    kind = column.type
    return column.cast(kind.value_type) if pa.types.is_dictionary(kind) else column


def census_of(base: duckdb.DuckDBPyConnection, source: Source, *, timed: bool, text: bool) -> Census:
    """Who and what is in the rows, and how often."""
    users, items = (_vocabulary(base, role, source, text=text) for role in ("user", "item"))
    return Census(users[0], items[0], users[1], items[1], timed)


def _vocabulary(
    base: duckdb.DuckDBPyConnection, role: str, source: Source, *, text: bool
) -> tuple[pa.Array, npt.NDArray[np.int64]]:
    """The ids of a role, ascending, with their counts; the table `users` or `items` maps spelling to code.

    In a text file, integers are integers; in a typed one, text stays text.
    """
    ((null,),) = base.execute(f"select min(row) from raw where {role} is null").fetchall()
    if null is not None:
        missing(role, int(null), source)
    query = f"select {role} as id, count(*) as n, min(row) as row from raw group by all order by 3"
    found = base.sql(query).to_arrow_table()
    ids = found["id"].combine_chunks()
    if text:
        ids = integers_if_canonical(ids)
    rows = found["row"].to_numpy()
    there = Source(source.name, lambda place: source.place(int(rows[place])))
    codes, vocabulary = code_ids(pa.chunked_array([ids]), role, there)
    counts = np.zeros(len(vocabulary), dtype=np.int64)
    np.add.at(counts, codes, found["n"].to_numpy())
    base.register("spelling", pa.table({"id": found["id"], "code": codes.astype(np.int32)}))
    base.execute(f"create table {role}s as select * from spelling")
    base.unregister("spelling")
    return vocabulary, counts


def _cut(
    base: duckdb.DuckDBPyConnection, work: Path, census: Census, duplicates: str, source: Source, block_ratings: int
) -> DiskTable:
    """Write the blocks as the sorted ratings come."""
    if duplicates != "error":
        census = _deduplicate(base, census, keep=duplicates)
    table = DiskTable(work, census, block_ratings=block_ratings)
    writer = BlockWriter(table, [ITEMS, LEVEL, *([TIMESTAMP] if census.timed else [])])
    last = (-1, -1)
    for batch in base.sql(_SORTED).to_arrow_reader(_BATCH):
        u, j, level, time = (batch.column(place).to_numpy(zero_copy_only=False) for place in range(4))
        if bool(((u == np.r_[last[0], u[:-1]]) & (j == np.r_[last[1], j[:-1]])).any()):
            raise _first_repeat(base.cursor(), source)
        writer.add(j.astype(np.int32), level.astype(np.uint16), time)
        last = (int(u[-1]), int(j[-1]))
    writer.close()
    return table


def _first_repeat(base: duckdb.DuckDBPyConnection, source: Source) -> DataError:
    """The error for the first row of the file that repeats an earlier one."""
    ((user, item, row, earlier),) = base.execute(
        "select r.user, r.item, r.row, first_value(r.row) over pair as earlier from raw r "
        "join users u on r.user = u.id join items i on r.item = i.id "
        "window pair as (partition by u.code, i.code order by r.row) qualify r.row > earlier order by r.row limit 1"
    ).fetchall()
    return repeated_pair_error((user, item), int(row), int(earlier), source)


def _deduplicate(base: duckdb.DuckDBPyConnection, census: Census, *, keep: str) -> Census:
    """One row of each pair, the first or the last of the file; counts anew."""
    order = "row" if keep == "first" else "row desc"
    base.execute(
        "create table kept as select r.* from raw r join users u on r.user = u.id join items i on r.item = i.id "
        f"qualify row_number() over (partition by u.code, i.code order by {order}) = 1"
    )
    base.execute("drop table raw; alter table kept rename to raw")
    counts = []
    for role, size in (("user", census.n_users), ("item", census.n_items)):
        found = base.execute(
            f"select s.code, count(*) from raw r join {role}s s on r.{role} = s.id group by s.code"
        ).fetchnumpy()
        code, n = found.values()
        counts.append(np.bincount(code, n, size).astype(np.int64))
    return Census(census.user_ids, census.item_ids, counts[0], counts[1], census.timed)


class BlockWriter:
    """Rows in order become block files, one for each of the columns `names`."""

    def __init__(self, table: DiskTable, names: list[str]) -> None:
        self._table, self._number, self._held = table, 0, 0
        self._names = names
        self._parts: list[list[npt.NDArray[Any]]] = [[] for _ in self._names]

    def add(self, *columns: npt.NDArray[Any]) -> None:
        """More ratings; whatever completes a block is written."""
        for parts, column in zip(self._parts, columns, strict=False):
            parts.append(column)
        self._held += len(columns[0])
        while self._number < self._table.n_blocks and self._held >= self._size:
            self._write(self._size)

    def close(self) -> None:
        """Blocks of users without ratings at the end."""
        while self._number < self._table.n_blocks:
            self._write(self._size)

    @property
    def _size(self) -> int:
        place = self._table.ratings_of(self._number)
        return place.stop - place.start

    def _write(self, size: int) -> None:
        for at, name in enumerate(self._names):
            whole = np.concatenate(self._parts[at]) if self._parts[at] else np.empty(0)
            self._table.write(name, self._number, whole[:size])
            self._parts[at] = [whole[size:]]
        self._held -= size
        self._number += 1
