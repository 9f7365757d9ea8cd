"""A file of ratings as a table on Spark: Parquet, or text in any layout that is known.

Text is read as text: what is an id, a number or a time is decided by the same code as in memory, so that "007" and "7"
stay two users. Spark's reader is told to read as Arrow's does: quotes doubled inside quotes, spaces kept, a row with
another number of fields refused.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dpsr.data.columns import HEADERLESS, Layout
from dpsr.data.files.diagnose import not_text, refusal_of_text, unreadable_message
from dpsr.data.files.read import has_quotes, name_of, recognised
from dpsr.data.spark.frame import Origin, spark_table
from dpsr.engine.raw import RawTable
from dpsr.engine.spark.secrecy import spark_errors
from dpsr.errors import DataError
from dpsr.quoting import file_name
from dpsr.types import Scale

_UNKNOWN_COMPRESSION = (".zst", ".lz4")


def spark_table_of_file(session: Any, path: Path, *, scale: Scale, **named: str | None) -> RawTable:
    """The file's ratings as blocks; see `recognised` for what may be named."""
    file, layout, roles = recognised(path, **named)
    frame, origin = frame_of_file(session, file, layout)
    names: dict[str, Any] = dict(zip(HEADERLESS, map(name_of, roles.used), strict=False))
    return spark_table(session, frame, scale=scale, origin=origin, **names)


def frame_of_file(session: Any, file: Path, layout: Layout | None) -> tuple[Any, Origin]:
    """A file as a DataFrame whose columns are called by their places."""

    def refuse(reason: str) -> DataError:
        return DataError(unreadable_message(file, reason)) if layout is None else refusal_of_text(file, layout, reason)

    with spark_errors(refuse):
        frame = _of_parquet(session, file) if layout is None else _of_text(session, file, layout)
    return frame, Origin(file_name(file), layout is not None, refuse)


def _of_parquet(session: Any, file: Path) -> Any:
    frame = session.read.parquet(file.absolute().as_uri())
    return frame.toDF(*(name_of(place) for place in range(len(frame.columns))))


def _of_text(session: Any, file: Path, layout: Layout) -> Any:
    if file.suffix.lower() in _UNKNOWN_COMPRESSION:
        raise DataError(
            f"{file_name(file)}: Spark reads gzip and bzip2, not {file.suffix}. Decompress it, or use --engine disk."
        )
    if problem := not_text(file):  # Spark would put one character in the place of all such bytes
        raise DataError(problem)
    how = {
        "header": layout.header,
        "sep": layout.delimiter,
        "multiLine": layout.quoted
        and has_quotes(file),  # a row may go on in the next line then: the file is read whole
        "mode": "FAILFAST",
        "columnPruning": False,  # or rows with too many fields would pass
        "ignoreLeadingWhiteSpace": False,
        "ignoreTrailingWhiteSpace": False,
        **({"quote": '"', "escape": '"'} if layout.quoted else {"quote": ""}),
    }
    schema = ", ".join(f"`{name_of(place)}` string" for place in range(len(layout.names)))
    return session.read.options(**how).schema(schema).csv(file.absolute().as_uri())
