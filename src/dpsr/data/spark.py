"""Ratings on Spark: from a DataFrame of user, item, rating to a table of blocks.

Vocabularies and counts come to the driver, codes go back by a join, and every block is packed by one task: sorted,
checked for duplicates, put on the scale. A raw value never comes to the driver.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpsr.engine.block import BLOCK_RATINGS, block_edges
from dpsr.engine.raw import LEVEL, RawTable
from dpsr.engine.spark import ITEMS, SparkTable
from dpsr.engine.table import TIMESTAMP
from dpsr.errors import DataError
from dpsr.types import Census, Scale

_TYPES = {ITEMS: "int32", LEVEL: "uint16", TIMESTAMP: "int64"}


def start_session(cores: str = "*") -> Any:
    """The session that is already there, or a local one that keeps what it spills encrypted."""
    if shutil.which("java") is None:
        raise DataError(
            "Spark needs Java, and no java command was found. Install a Java 17 runtime (on Debian: apt-get install "
            "openjdk-17-jre-headless), or use --engine memory or --engine disk."
        )
    try:
        from pyspark.sql import SparkSession
    except ModuleNotFoundError as error:
        raise DataError("Spark is not installed. Install dpsr[spark], or use --engine memory or disk.") from error
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # or the workers would run another Python, without dpsr
    builder = SparkSession.builder.master(f"local[{cores},4]").appName("dpsr")
    for name, value in {
        "spark.io.encryption.enabled": "true",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": "4g",
        "spark.driver.maxResultSize": "4g",
        "spark.sql.shuffle.partitions": "8",
    }.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")  # what went wrong is said in our words, once
    return session


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
) -> RawTable:
    """A table of blocks from a DataFrame with the given columns; a pair of user and item may have one rating."""
    columns = {"user": user, "item": item, "rating": rating, **({TIMESTAMP: timestamp} if timestamp else {})}
    plain = frame.select(*(frame[name].alias(role) for role, name in columns.items()))
    census = _census(plain, timed=timestamp is not None)
    edges = block_edges(census.user_counts, block_ratings)
    numbers = np.repeat(np.arange(len(edges) - 1), np.diff(edges)).astype(np.int32)
    users = pa.table({"user": census.user_ids, "u": np.arange(census.n_users, dtype=np.int32), "number": numbers})
    items = pa.table({"item": census.item_ids, "j": np.arange(census.n_items, dtype=np.int32)})
    coded = plain.join(session.createDataFrame(users), "user").join(session.createDataFrame(items), "item")
    kept = ["number", "u", "j", "rating", *([TIMESTAMP] if timestamp else [])]
    dtypes = {name: kind for name, kind in _TYPES.items() if name != TIMESTAMP or timestamp}
    schema = "number int, " + ", ".join(f"{name} binary" for name in dtypes)
    packed = coded.select(*kept).groupBy("number").applyInArrow(_packer(scale, bool(timestamp)), schema)
    wanted = partitions or session.sparkContext.defaultParallelism
    blocks = packed.repartitionByRange(max(1, min(wanted, len(edges) - 1)), "number").sortWithinPartitions("number")
    table = SparkTable(session, blocks, census, dtypes, block_ratings=block_ratings)
    with _in_our_words():
        table.gather()  # now, so that bad ratings are refused before anything is asked or paid for
    return RawTable(table, scale)


@contextmanager
def _in_our_words() -> Iterator[None]:
    """What a task refused, as the driver's own error: Spark wraps it into the worker's traceback."""
    from pyspark.errors import PythonException

    try:
        yield
    except PythonException as error:
        said = re.search(r"dpsr\.errors\.\w+: (.+)", str(error))
        if said is None:
            raise
        raise DataError(said[1].strip()) from None


def _census(frame: Any, *, timed: bool) -> Census:
    users, items = (_counted(frame, role) for role in ("user", "item"))
    if min(len(users[0]), len(items[0])) < 2:
        raise DataError("at least 2 users and 2 items are needed. Check that the right columns are named.")
    return Census(users[0], items[0], users[1], items[1], timed)


def _counted(frame: Any, role: str) -> tuple[pa.Array, Any]:
    """The ids of a role, ascending, and how many ratings each has."""
    table = frame.groupBy(role).count().toArrow()
    ids = table[role].combine_chunks()
    if ids.null_count:
        raise DataError(f"a {role} id is missing. Remove such rows, or fill them in.")
    ids = ids.cast(pa.int64() if pa.types.is_integer(ids.type) else pa.string())
    order = pc.sort_indices(ids)
    return ids.take(order), table["count"].combine_chunks().take(order).to_numpy().astype(np.int64)


def _numbers(column: pa.ChunkedArray) -> Any:
    try:
        values = column.cast(pa.float64()).to_numpy()
    except pa.ArrowException:
        raise DataError("a rating is not a number. Correct the column, or name another one.") from None
    if not np.isfinite(values).all():
        raise DataError("a rating is missing (null or NaN). Fill it in or remove the row.")
    return values


def _packer(scale: Scale, timed: bool) -> Any:
    def pack(rows: pa.Table) -> pa.Table:
        u, j = rows["u"].to_numpy(), rows["j"].to_numpy()
        order = np.lexsort((j, u))
        u, j = u[order], j[order]
        if bool(((u[1:] == u[:-1]) & (j[1:] == j[:-1])).any()):
            raise DataError("a user rated an item twice. Keep one rating of each pair before handing them over.")
        values = _numbers(rows["rating"])[order]
        columns = {ITEMS: j.astype(np.int32), LEVEL: scale.encode(values).astype(np.uint16)}
        if timed:
            columns[TIMESTAMP] = rows[TIMESTAMP].to_numpy()[order].astype(np.int64)
        number = pa.array([rows["number"][0].as_py()], type=pa.int32())
        return pa.table({"number": number, **{name: pa.array([one.tobytes()]) for name, one in columns.items()}})

    return pack
