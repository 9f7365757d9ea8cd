"""Ratings on Spark: from a DataFrame of user, item, rating to a table of blocks.

Vocabularies and counts come to the driver, codes go back with the function that packs the blocks (`pack.py`).
Ids, ratings and times are read by the same code as in memory. A raw value never comes to the driver.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from dpsr.arrays import Ints
from dpsr.data.coding import code_ids, integers_if_canonical
from dpsr.data.spark.pack import TYPES, Coding, Packed, blocks_of, packed_facts, unnumbered
from dpsr.data.spark.session import beside
from dpsr.engine.raw import RawTable
from dpsr.engine.spark.secrecy import quiet_spark, spark_errors, spark_failed
from dpsr.engine.spark.table import SparkTable
from dpsr.engine.spark.task import changed_input_error
from dpsr.engine.table import BLOCK_RATINGS, TIMESTAMP, block_edges
from dpsr.errors import DataError
from dpsr.quoting import quoted_id
from dpsr.types import Census, Scale


@dataclass(frozen=True)
class Origin:
    """What the ratings are called, whether their ids are text that may spell integers, and why they cannot be read."""

    name: str = "the DataFrame"
    text: bool = False
    refuse: Callable[[str], DataError] = spark_failed


def spark_table(
    session: Any,
    frame: Any,
    *,
    scale: Scale,
    user: str = "user",
    item: str = "item",
    rating: str = "rating",
    timestamp: str | None = None,
    partitions: int | None = None,
    block_ratings: int = BLOCK_RATINGS,
    origin: Origin | None = None,
) -> RawTable:
    """A table of blocks from a DataFrame with the given columns; a pair of user and item may have one rating.

    Bad ratings are refused here, before anything is asked or paid for.
    """
    origin = origin or Origin()
    columns = {"user": user, "item": item, "rating": rating, **({TIMESTAMP: timestamp} if timestamp else {})}
    with spark_errors(origin.refuse), quiet_spark():
        plain = selected(frame, columns)
        table = packed_table(
            session, plain, origin, scale, timed=timestamp is not None, partitions=partitions, rows=block_ratings
        )
    return RawTable(table, scale)


def selected(frame: Any, columns: dict[str, str]) -> Any:
    """The columns of a frame under the names of their roles."""
    return frame.select(*(frame[_quoted(name)].alias(role) for role, name in columns.items()))


def packed_table(
    session: Any, plain: Any, origin: Origin, scale: Scale | None, *, timed: bool, partitions: int | None, rows: int
) -> SparkTable:
    """Blocks of so many rows from a frame of user, item and rating; without a scale, of user, item and weight."""
    users, items = (_Vocabulary.of(plain, role, origin) for role in ("user", "item"))
    census = Census(users.ids, items.ids, users.counts, items.counts, timed)
    edges = block_edges(census.user_counts, rows)
    number = np.repeat(np.arange(len(edges) - 1), np.diff(edges))
    coding = Coding(users.spelt, items.spelt, number, scale, origin.name, timed)
    own, ours = beside(session, plain)
    size = min(partitions or own.sparkContext.defaultParallelism, len(edges) - 1)
    blocks = blocks_of(ours, coding, n_blocks=len(edges) - 1, partitions=size)
    dtypes = {name: kind for name, kind in TYPES.items() if name in coding.columns}
    table = SparkTable(own, blocks, census, dtypes, partitions=size, block_ratings=rows)
    try:
        _check(packed_facts(blocks), census, edges, origin.name)
    except BaseException:
        table.close()
        raise
    return table


@dataclass(frozen=True, eq=False)
class _Vocabulary:
    """The ids of a role, ascending, how many ratings each has, and all spellings in the frame with their codes."""

    ids: pa.Array
    counts: Ints
    spelt: tuple[pa.Array, Ints]

    @classmethod
    def of(cls, frame: Any, role: str, origin: Origin) -> _Vocabulary:
        found = frame.groupBy(role).count().toArrow()
        if not len(found):
            raise DataError(
                f"{origin.name}: there are no ratings. Give at least one row with a user, an item and a rating."
            )
        spelt = found[role].combine_chunks()
        typed = integers_if_canonical(spelt) if origin.text and not spelt.null_count else _without_decimals(spelt)
        codes, ids = code_ids(pa.chunked_array([typed]), role, unnumbered(origin.name))
        counts = np.zeros(len(ids), dtype=np.int64)
        np.add.at(counts, codes, found["count"].to_numpy())
        return cls(ids, counts, (spelt, codes))


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _without_decimals(ids: pa.Array) -> pa.Array:
    """Spark has no unsigned integers, and reads large ones as decimals."""
    if not pa.types.is_decimal(ids.type) or ids.type.scale:
        return ids
    try:
        return ids.cast(pa.int64())
    except pa.ArrowInvalid:
        return ids.cast(pa.string())


def _check(blocks: list[Packed], census: Census, edges: Ints, name: str) -> None:
    """Refuse pairs that are rated more than once, and rows that were others when they were counted."""
    expected = np.add.reduceat(census.user_counts, edges[:-1]).tolist()
    if [facts.ratings for facts in blocks] != expected or census.item_counts.sum() != sum(expected):
        raise changed_input_error()
    repeated = [facts for facts in blocks if facts.pairs]
    if repeated:
        raise _repeated(repeated, census, name)


def _repeated(blocks: list[Packed], census: Census, name: str) -> DataError:
    pairs, surplus = sum(one.pairs for one in blocks), sum(one.surplus for one in blocks)
    user, item = census.user_ids[blocks[0].user].as_py(), census.item_ids[blocks[0].item].as_py()
    return DataError(
        f"{name}: pairs of user and item rated more than once: {pairs:,}, with {surplus:,} ratings too many; the first "
        f"is user {quoted_id(user)} and item {quoted_id(item)}. Spark knows no first and last of them. Keep one rating "
        'of each pair beforehand (dropDuplicates(["user", "item"])), or use --engine disk with --duplicates first or '
        "last."
    )
