"""Interactions on Spark: from a DataFrame of user, item and perhaps weight to a table of blocks.

Weights are read by the same code as in memory, row by row, and those of one pair are added up in ascending order: the
sum does not depend on where the rows are. Where weights are counts it is the same number as in memory; others may
differ from it in the last bit. Times are left out, as on disk.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from dpsr.data.coding import read_weights
from dpsr.data.columns import INTERACTION_ROWS
from dpsr.data.files.read import name_of, recognised, unread_column
from dpsr.data.interactions import notes_of
from dpsr.data.spark.files import frame_of_file
from dpsr.data.spark.frame import Origin, packed_table, selected
from dpsr.data.spark.pack import unnumbered
from dpsr.engine.raw import WEIGHT, InteractionTable
from dpsr.engine.spark.secrecy import quiet_spark, spark_errors
from dpsr.engine.table import BLOCK_RATINGS


def spark_interactions(
    session: Any,
    frame: Any,
    *,
    user: str = "user",
    item: str = "item",
    weight: str | None = None,
    partitions: int | None = None,
    block_rows: int = BLOCK_RATINGS,
    origin: Origin | None = None,
    unread: str | None = None,
) -> InteractionTable:
    """A table of blocks from a DataFrame with the given columns; without a weight every row weighs one.

    Bad weights are refused here, before anything is asked or paid for. `unread` is a column that looks like a rating.
    """
    from pyspark.sql import functions as sql

    origin = origin or Origin()
    columns = {"user": user, "item": item, **({WEIGHT: weight} if weight else {})}
    with spark_errors(origin.refuse), quiet_spark():
        plain = selected(frame, columns)
        one = plain.withColumn(WEIGHT, sql.lit(1.0))
        rows = plain.mapInArrow(_Weighing(origin.name), _schema(plain)) if weight else one
        added = sql.aggregate(sql.sort_array(sql.collect_list(WEIGHT)), sql.lit(0.0), lambda total, one: total + one)
        pairs = rows.groupBy("user", "item").agg(added.alias(WEIGHT))
        table = packed_table(session, pairs, origin, None, timed=False, partitions=partitions, rows=block_rows)
        repeated = plain.count() - table.census.n_ratings
    return InteractionTable(table, tuple(notes_of(repeated, unread)))


def spark_interactions_of_file(session: Any, path: Path, **named: str | None) -> InteractionTable:
    """The file's interactions as blocks; see `recognised` for what may be named."""
    named["timestamp"] = ""
    file, layout, roles = recognised(path, INTERACTION_ROWS, **named)
    frame, origin = frame_of_file(session, file, layout)
    weight = None if roles.value is None else name_of(roles.value)
    unread = unread_column(path, INTERACTION_ROWS, **named)
    user, item = name_of(roles.user), name_of(roles.item)
    return spark_interactions(session, frame, user=user, item=item, weight=weight, origin=origin, unread=unread)


@dataclass(frozen=True)
class _Weighing:
    """Weights as numbers, refused where they are none."""

    name: str

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        source = unnumbered(self.name)
        for batch in batches:
            weights = read_weights(pa.chunked_array([batch.column(2)]), source)
            yield pa.RecordBatch.from_arrays(
                [batch.column(0), batch.column(1), pa.array(weights)], ["user", "item", WEIGHT]
            )


def _schema(plain: Any) -> Any:
    from pyspark.sql.types import DoubleType, StructField, StructType

    return StructType([plain.schema["user"], plain.schema["item"], StructField(WEIGHT, DoubleType())])
