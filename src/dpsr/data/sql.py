"""Ratings from a database: one query, read only, streamed to Arrow in chunks.

PostgreSQL runs the query in a read-only transaction with a cursor on the server; SQLite opens the file read-only and
allows nothing but reading it, so that no other file is opened or made. Rows
never exist as Python objects all at once: a chunk of them becomes Arrow columns, ids as codes into their distinct
values, and is forgotten. Decimals become floats (a rating scale is far coarser) and UUIDs their text.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Sequence
from decimal import Decimal
from os import PathLike
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc
from sqlalchemy import Connection, CursorResult
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from dpsr.data.coding import ARROW_ERRORS, RatingColumns
from dpsr.data.columns import RATING_ROWS, RowKind, find_columns, unread_rating
from dpsr.database import Database
from dpsr.errors import DataError
from dpsr.quoting import Source, printable, quoted, without_values

_SELECT = re.compile(r"(?:\s|\(|--[^\n]*\n|/\*.*?\*/)*(select|with|values)\b", re.IGNORECASE | re.DOTALL)
_READING = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE}
_DATA_ERRORS = "22"
"""How PostgreSQL's codes begin where a value is to blame, which its message then quotes."""

CHUNK = 1 << 16
"""Rows held as Python objects at a time."""


def columns_of_query(
    url: str | PathLike[str], query: str, kind: RowKind = RATING_ROWS, /, **named: str | None
) -> RatingColumns:
    """The columns of a query's answer."""
    database = Database.parse(url)
    source = Source(f"the query on {database}", lambda row: f"row {row + 1}")
    if database.is_file and not database.path.is_file():
        raise DataError(f"{database} does not exist. Check the path: sqlite:///relative.db or sqlite:////absolute.db.")
    try:
        with database.engine("ro").connect() as connection, _ask(connection, query, source) as answer:
            names = [str(name) for name in answer.keys()]  # noqa: SIM118 (a result, not a dict)
            roles = find_columns(names, source=source.name, kind=kind, **named)
            columns = _columns(answer.partitions(CHUNK), roles.used, [names[place] for place in roles.used], source)
    except SQLAlchemyError as error:
        reason = database.reason(error) if isinstance(error, DBAPIError) else type(error).__name__
        if str(getattr(getattr(error, "orig", None), "sqlstate", "")).startswith(_DATA_ERRORS):
            reason = without_values(reason)
        raise DataError(
            f"{source.name} failed: {printable(reason, 160)}. Give one SELECT with a user, an item and a rating in "
            "each row, and an address that may read it; nothing else is run."
        ) from None
    return RatingColumns.of(columns, roles, source, unread_rating(names, roles))


def _ask(connection: Connection, query: str, source: Source) -> CursorResult[Any]:
    """The answer, of which the database sends a chunk at a time."""
    statement = query.strip().rstrip(";")
    if not statement:
        raise DataError(f"{source.name} is empty. Give one with --query, such as: select user, item, rating from r.")
    if not _SELECT.match(statement):
        raise DataError(f"{source.name} is not a SELECT. Give one with a user, an item and a rating in each row.")
    if connection.dialect.name == "postgresql":
        connection = connection.execution_options(postgresql_readonly=True, stream_results=True)
        statement = statement.replace("%", "%%")  # the driver's placeholder
    else:
        driver = connection.connection.driver_connection
        assert isinstance(driver, sqlite3.Connection)
        driver.set_authorizer(_reading_only)
    answer = connection.execution_options(yield_per=CHUNK).exec_driver_sql(statement)
    if not answer.returns_rows:
        raise DataError(f"{source.name} gives no rows. Give a SELECT with a user, an item and a rating in each row.")
    return answer


def _reading_only(action: int, *_: str | None) -> int:
    """SQLite asks before it does anything: another file, a setting, a change are refused."""
    return sqlite3.SQLITE_OK if action in _READING else sqlite3.SQLITE_DENY


def _columns(
    chunks: Iterator[Sequence[Any]], places: Sequence[int], names: Sequence[str], source: Source
) -> list[pa.ChunkedArray]:
    arrays: list[list[pa.Array]] = [[] for _ in places]
    for rows in chunks:
        for column, place, name in zip(arrays, places, names, strict=True):
            column.append(_array([row[place] for row in rows], name, source))
    return [_joined(column, name, source) for column, name in zip(arrays, names, strict=True)]


def _array(values: list[Any], name: str, source: Source) -> pa.Array:
    sample = next((value for value in values if value is not None), None)
    if isinstance(sample, Decimal):
        values = [None if value is None else float(value) for value in values]
    elif isinstance(sample, UUID | memoryview):
        values = [None if value is None else _text(value) for value in values]
    try:
        array = pa.array(values)
        return array.dictionary_encode() if pa.types.is_string(array.type) else array
    except ARROW_ERRORS as error:
        raise DataError(_mixed(name, source, error)) from error


def _text(value: Any) -> str | bytes:
    return bytes(value) if isinstance(value, memoryview) else str(value)


def _joined(chunks: list[pa.Array], name: str, source: Source) -> pa.ChunkedArray:
    """Chunks under one type; an all-null chunk has none of its own."""
    types = [chunk.type for chunk in chunks if not pa.types.is_null(chunk.type)]
    kind = types[0] if types else pa.null()
    if any(pa.types.is_floating(each) for each in types):
        kind = pa.float64()
    try:
        return pa.chunked_array([pc.cast(chunk, kind) if chunk.type != kind else chunk for chunk in chunks], type=kind)
    except ARROW_ERRORS as error:
        raise DataError(_mixed(name, source, error)) from error


def _mixed(name: str, source: Source, error: BaseException) -> str:
    return (
        f"{source.name}: the column {quoted(name)} has more than one type ({printable(without_values(error), 60)}). "
        "Cast it in the query, for example cast(rating as real) or cast(user_id as text)."
    )
