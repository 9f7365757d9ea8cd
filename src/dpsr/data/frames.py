"""Arrays and data frames as Arrow columns, without importing the library they come from.

pandas, polars and others hand their columns over through the Arrow interface (`__arrow_c_stream__`), so they are known
by what they can do and not by their type. Spark collects a whole frame as one Arrow table.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from dpsr.data.coding import ARROW_ERRORS, RatingColumns
from dpsr.data.columns import RATING_ROWS, Roles, RowKind, find_columns, unread_rating
from dpsr.errors import DataError
from dpsr.quoting import Source, position, printable, quoted, quoted_list, without_values

_FRAME = Source("the frame", position)
_ARRAYS = Source("the arrays", position)


def columns_of_frame(frame: Any, kind: RowKind = RATING_ROWS, /, **named: str | None) -> RatingColumns:
    """The columns of a pandas, polars or Spark DataFrame, an Arrow Table or RecordBatch, or what else exports Arrow."""
    frame = _collected(frame) if is_spark_frame(frame) else frame
    labels = _labels(frame)
    names = [str(label) for label in labels]
    try:
        wanted = {role: name if name is None else str(name) for role, name in named.items()}  # 0, 1, 2 are names, too
        roles = find_columns(names, source=_FRAME.name, kind=kind, **wanted)
    except DataError as error:
        index = [str(name) for name in getattr(getattr(frame, "index", None), "names", ()) if name is not None]
        if not index:
            raise
        advice = f"Its index is {quoted_list(index)}: reset_index() makes columns of that"
        raise DataError(f"{error} {advice}.") from None
    columns = [_column_of(frame, place, labels) for place in roles.used]
    return RatingColumns.of(columns, roles, _FRAME, unread_rating(names, roles))


def columns_of_arrays(kind: RowKind = RATING_ROWS, /, **given: Any | None) -> RatingColumns:
    """Lists, numpy arrays, Series or Arrow arrays of equal length: users, items, values or weights, timestamps."""
    columns = {name: _column(array, name, _ARRAYS) for name, array in given.items() if array is not None}
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        found = ", ".join(f"{length:,} {name}" for name, length in lengths.items())
        row = "rating" if kind.needed else "interaction"
        raise DataError(f"the arrays have one entry per {row} and equal lengths, found {found}. Align them first.")
    there = {name: place for place, name in enumerate(columns)}
    value, time = there.get("values", there.get("weights")), there.get("timestamps")
    return RatingColumns.of(list(columns.values()), Roles(there["users"], there["items"], value, time), _ARRAYS)


def is_spark_frame(frame: Any) -> bool:
    """Whether it is a DataFrame of Spark, as far as can be seen without importing that."""
    return hasattr(frame, "toArrow")


def _collected(frame: Any) -> pa.Table:
    """A Spark DataFrame in the memory of this process; what Spark cannot do is one sentence that quotes no row."""
    from dpsr.engine.spark.secrecy import quiet_spark, spark_errors

    with spark_errors(), quiet_spark():
        return frame.toArrow()


def _labels(frame: Any) -> list[Any]:
    if isinstance(frame, pa.Table | pa.RecordBatch):
        return list(frame.schema.names)
    if hasattr(frame, "__arrow_c_stream__") and hasattr(frame, "columns"):
        return list(frame.columns)
    if hasattr(frame, "collect"):
        found = quoted(type(frame).__name__)
        raise DataError(f"from_frame takes a frame that is there, found {found}: collect() it first.")
    raise DataError(
        "from_frame takes a pandas, polars or Spark DataFrame, an Arrow Table or a RecordBatch, found "
        f"{quoted(type(frame).__name__)}. For arrays use from_arrays, for files read."
    )


def _column_of(frame: Any, place: int, labels: list[Any]) -> pa.ChunkedArray:
    """One column at a time: the others may hold what Arrow cannot, and need not be converted."""
    if isinstance(frame, pa.Table | pa.RecordBatch):
        return _column(frame.column(place), str(labels[place]), _FRAME)
    if labels.count(labels[place]) > 1:  # labels that differ but print alike are told apart, equal ones cannot be
        raise DataError(f"{_FRAME.name}: two columns are named {quoted(labels[place])}. Rename one of them.")
    return _column(frame[labels[place]], str(labels[place]), _FRAME)


def _column(array: Any, name: str, source: Source) -> pa.ChunkedArray:
    try:
        return _to_arrow(array)
    except ARROW_ERRORS as error:
        raise DataError(
            f"{source.name}: {quoted(name)} cannot be read as one column ({printable(without_values(error), 60)}). "
            "Give numbers only or strings only, in one dimension; integers beyond 64 bits are given as strings."
        ) from error


def _to_arrow(array: Any) -> pa.ChunkedArray:
    if isinstance(array, pa.ChunkedArray):
        return array
    if isinstance(array, pa.Array):
        return pa.chunked_array([array])
    if hasattr(array, "__arrow_c_stream__"):
        return pa.chunked_array(array)
    if isinstance(array, list | tuple):  # numpy would pad every string to the longest one
        return pa.chunked_array([pa.array(array, from_pandas=True)])
    if isinstance(array, np.ma.MaskedArray):  # what is masked is missing, whatever stands below the mask
        return pa.chunked_array([pa.array(np.ma.getdata(array), mask=np.ma.getmaskarray(array))])
    dense = np.asarray(array)
    return pa.chunked_array([pa.array(dense, from_pandas=dense.dtype == object)])
