"""Ratings as JSON lines: one object a line, its keys are the columns."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pyarrow.json as pajson

from dpsr.data.coding import ARROW_ERRORS, RatingColumns
from dpsr.data.columns import BLOCK, RATING_ROWS, RowKind, find_columns, open_bytes, unread_rating
from dpsr.data.files.diagnose import unreadable_message
from dpsr.errors import DataError
from dpsr.quoting import Source, file_name

_OBJECT = re.compile(rb'\s*(\[\s*)?\{\s*"')


def begins_like_json(head: bytes) -> bool:
    """Whether text begins as an object with a key does, or an array of them."""
    return _OBJECT.match(head) is not None


def columns_of_json_lines(file: Path, kind: RowKind = RATING_ROWS, /, **named: str | None) -> RatingColumns:
    """The columns; rows count from 1, as an editor counts lines where none is empty."""
    source = Source(file_name(file), lambda row: f"row {row + 1}")
    try:
        with open_bytes(file) as stream:
            _refuse_array(stream.read(64), source.name)
        with open_bytes(file) as stream:
            table = pajson.read_json(stream, read_options=pajson.ReadOptions(block_size=BLOCK))
    except ARROW_ERRORS as error:
        if isinstance(error, DataError):
            raise
        raise DataError(unreadable_message(file, str(error))) from error
    roles = find_columns(table.column_names, source=source.name, kind=kind, **named)
    found = [table.column(place) for place in roles.used]
    return RatingColumns.of(found, roles, source, unread_rating(table.column_names, roles))


def taken_from_json_lines(file: Path, kind: RowKind = RATING_ROWS, /, **named: str | None) -> dict[str, str]:
    """Which key is taken for which part."""
    names = keys_of_json_lines(file)
    return find_columns(names, source=file_name(file), kind=kind, **named).taken(names, kind)


def keys_of_json_lines(file: Path) -> list[str]:
    """The keys of the first object; none where the first line is something else."""
    with open_bytes(file) as stream:
        head = bytes(stream.read(BLOCK))
    _refuse_array(head, file_name(file))
    first = head.splitlines()[:1]
    try:
        found = json.loads(first[0]) if first else {}
    except ValueError as error:
        raise DataError(unreadable_message(file, str(error))) from error
    return [str(name) for name in found] if isinstance(found, dict) else []


def _refuse_array(head: bytes, name: str) -> None:
    if head.lstrip()[:1] == b"[":
        raise DataError(f"{name} is one JSON array. Write one object a line (for example: jq -c '.[]' FILE).")
