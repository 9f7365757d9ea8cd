"""A file of ratings a chunk at a time, for files larger than memory. Same layouts, same checks as `read.py`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from os import PathLike
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from dpsr.data.coding import ARROW_ERRORS, RatingColumns
from dpsr.data.columns import RATING_ROWS, Layout, Roles, RowKind, line_of_record, open_table
from dpsr.data.files.diagnose import refusal_of_text, unreadable_message
from dpsr.data.files.read import name_of, parsing, recognised
from dpsr.errors import DataError
from dpsr.quoting import Source, file_name

CHUNK = 1 << 18
"""Rows of a Parquet file in a chunk; a chunk of text is as long as the text reader likes."""


def chunks_of_file(
    path: str | PathLike[str], kind: RowKind = RATING_ROWS, /, **named: str | None
) -> Iterator[RatingColumns]:
    """The columns of a file in any layout that is known; each chunk counts its rows from the file's first."""
    file, layout, roles = recognised(path, kind, **named)
    if layout is None:
        source = Source(file_name(file), lambda row: f"row {row + 1}")
        nothing = f"{source.name}: there are no ratings. Give at least one row with a user, an item and a rating."
        yield from _numbered(_parquet_chunks(file, roles), roles, source, nothing)
    else:
        source = Source(file_name(file), lambda row: f"row {line_of_record(file, layout, row + layout.header)}")
        nothing = f"{source.name} holds a header but no ratings. Give at least one row of data below it."
        yield from _numbered(_text_chunks(file, layout, roles), roles, source, nothing)


def _numbered(
    chunks: Iterator[list[pa.ChunkedArray]], roles: Roles, source: Source, nothing: str
) -> Iterator[RatingColumns]:
    """Chunks that know where they stand; `nothing` is what to say if no row comes."""
    start = 0
    for columns in chunks:
        here = replace(source, place=_from(start, source.place))
        yield RatingColumns.of(columns, roles, here)
        start += len(columns[0])
    if not start:
        raise DataError(nothing)


def _from(start: int, place: Callable[[int], str]) -> Callable[[int], str]:
    return lambda row: place(start + row)


def _parquet_chunks(path: Path, roles: Roles) -> Iterator[list[pa.ChunkedArray]]:
    with _reported(lambda message: DataError(unreadable_message(path, message))), pq.ParquetFile(path) as file:
        names = [file.schema_arrow.names[place] for place in roles.used]
        for batch in file.iter_batches(CHUNK, columns=names, use_threads=False):
            yield [pa.chunked_array([batch.column(name)]) for name in names]


def _text_chunks(path: Path, layout: Layout, roles: Roles) -> Iterator[list[pa.ChunkedArray]]:
    names = [name_of(place) for place in roles.used]
    read, parse, convert = parsing(path, layout, dict.fromkeys(names, pa.string()))
    with _reported(lambda message: refusal_of_text(path, layout, message)), open_table(path, layout) as stream:
        for batch in pacsv.open_csv(stream, read_options=read, parse_options=parse, convert_options=convert):
            yield [pa.chunked_array([batch.column(name)]) for name in names]


@contextmanager
def _reported(words: Callable[[str], DataError]) -> Iterator[None]:
    """What the reader cannot take, in our words."""
    try:
        yield
    except ARROW_ERRORS as error:
        raise words(str(error)) from error
