"""A file of interactions larger than memory becomes a table of blocks: as `ingest`, with repeats added up.

What comes out is what `Interactions.read` would give, in the same order, with the same errors; times are left out.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dpsr.data.coding import RatingColumns, read_weights
from dpsr.data.columns import INTERACTION_ROWS
from dpsr.data.files.chunks import chunks_of_file
from dpsr.data.files.read import recognised, unread_column
from dpsr.data.ingest import BlockWriter, census_of, fill, no_room, sorting_library, store_limits
from dpsr.data.interactions import notes_of
from dpsr.engine.disk import ITEMS, DiskTable
from dpsr.engine.raw import WEIGHT, InteractionTable
from dpsr.engine.table import BLOCK_RATINGS
from dpsr.engine.work_folder import STORE, clear_store, private_files
from dpsr.errors import DataError
from dpsr.quoting import Source
from dpsr.types import Census

if TYPE_CHECKING:
    import duckdb

_ADDED = (
    "create table pairs as select u.code as user, i.code as item, sum(r.weight order by r.row) as weight from raw r "
)
_ADDED += "join users u on r.user = u.id join items i on r.item = i.id group by u.code, i.code"
_BATCH = 1 << 17


def ingest_interactions(
    path: str | Path,
    work: Path,
    *,
    memory: int = 1 << 29,
    block_size: Callable[[Census], int] = lambda census: BLOCK_RATINGS,
    **named: str | None,
) -> InteractionTable:
    """The file's interactions as blocks in the folder `work`; DuckDB uses at most `memory` bytes."""
    library = sorting_library()
    named["timestamp"] = ""
    clear_store(work)  # a run that was killed may have left one
    try:
        with private_files(), library.connect(str(work / STORE), config=store_limits(work, memory)) as base:
            source = fill(base, chunks_of_file(path, INTERACTION_ROWS, **named), _weights)
            text = recognised(path, INTERACTION_ROWS, **named)[1] is not None
            found = census_of(base, source, timed=False, text=text)
            census = _added_up(base, found, source)
            notes = notes_of(found.n_ratings - census.n_ratings, unread_column(path, INTERACTION_ROWS, **named))
            return InteractionTable(_cut(base, work, census, block_size(census)), tuple(notes))
    except no_room(library) as error:
        raise DataError(
            f"the working folder could not hold the sorted interactions ({type(error).__name__}). Nothing was "
            "released. Give a folder with more room (--work FOLDER), or more memory (--memory), and run again."
        ) from error
    finally:
        clear_store(work)


def _weights(columns: RatingColumns) -> dict[str, Any]:
    return {"weight": read_weights(columns.ratings, columns.source)}


def _added_up(base: duckdb.DuckDBPyConnection, census: Census, source: Source) -> Census:
    """One row of each pair, weights added up; counts anew."""
    base.execute(_ADDED)
    ((finite,),) = base.execute("select bool_and(isfinite(weight)) from pairs").fetchall()
    if not finite:
        raise DataError(f"{source.name}: the weights of one pair add up to more than a number can hold. Rescale them.")
    counts = []
    for role, size in (("user", census.n_users), ("item", census.n_items)):
        code, n = base.execute(f"select {role}, count(*) from pairs group by {role}").fetchnumpy().values()
        counts.append(np.bincount(code, n, size).astype(np.int64))
    return Census(census.user_ids, census.item_ids, counts[0], counts[1], False)


def _cut(base: duckdb.DuckDBPyConnection, work: Path, census: Census, block_rows: int) -> DiskTable:
    """Write the blocks as the sorted interactions come."""
    table = DiskTable(work, census, block_ratings=block_rows)
    writer = BlockWriter(table, [ITEMS, WEIGHT])
    for batch in base.sql("select item, weight from pairs order by user, item").to_arrow_reader(_BATCH):
        j, weight = (batch.column(place).to_numpy(zero_copy_only=False) for place in range(2))
        writer.add(j.astype(np.int32), weight.astype(np.float64))
    writer.close()
    return table
