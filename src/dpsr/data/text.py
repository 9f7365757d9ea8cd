"""Delimited text as Arrow columns.

Ids and ratings are read as text with each distinct value kept once, so that 25 million rows cost little memory, nothing
is guessed from the first block, and an error can quote what the file says. A column of ids becomes integers only
if every id in it is spelt like one.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pacsv

from dpsr.data.assemble import RatingColumns
from dpsr.data.columns import Roles
from dpsr.data.diagnose import refusal
from dpsr.data.distinct import ARROW_ERRORS
from dpsr.data.identifiers import integers_if_canonical
from dpsr.data.layouts import DOUBLE_COLON, Layout
from dpsr.data.quoting import Source, file_name
from dpsr.data.streams import BLOCK, UNIT_SEPARATOR, blocks, line_of_record, open_table
from dpsr.errors import DataError

_DISTINCT_TEXT = pa.dictionary(pa.int32(), pa.string())


def columns_of_text(path: Path, layout: Layout, roles: Roles) -> RatingColumns:
    """The columns of a text file, read by as many threads as Arrow likes."""
    source = Source(file_name(path), lambda row: f"row {line_of_record(path, layout, row + layout.header)}")
    types = dict.fromkeys((name_of(place) for place in (roles.user, roles.item, roles.rating)), _DISTINCT_TEXT)
    if roles.timestamp is not None:
        types[name_of(roles.timestamp)] = pa.string()
    try:
        table = _parse(path, layout, types)
    except ARROW_ERRORS as error:
        raise refusal(path, layout, str(error)) from error
    if layout.header and not len(table):
        raise DataError(f"{source.name} holds a header but no ratings. Give at least one row of data below it.")
    return RatingColumns(
        users=_ids(table[name_of(roles.user)]),
        items=_ids(table[name_of(roles.item)]),
        ratings=table[name_of(roles.rating)],
        timestamps=None if roles.timestamp is None else table[name_of(roles.timestamp)],
        source=source,
    )


def name_of(place: int) -> str:
    """Columns are known by place: headers may repeat names, or have none."""
    return f"column {place}"


def parsing(path: Path, layout: Layout, types: dict[str, pa.DataType]) -> tuple[Any, Any, Any]:
    """How Arrow is to read, parse and convert a text file."""
    read = pacsv.ReadOptions(
        column_names=[name_of(place) for place in range(len(layout.names))],
        skip_rows=layout.leading + layout.header,
        block_size=BLOCK,
    )
    parse = pacsv.ParseOptions(
        delimiter=UNIT_SEPARATOR if layout.delimiter == DOUBLE_COLON else layout.delimiter,
        quote_char='"' if layout.quoted else False,
        newlines_in_values=layout.quoted and has_quotes(path),  # only then must Arrow look for the end of a row
    )
    convert = pacsv.ConvertOptions(column_types=types, include_columns=list(types), strings_can_be_null=False)
    return read, parse, convert


def _parse(path: Path, layout: Layout, types: dict[str, pa.DataType]) -> pa.Table:
    read, parse, convert = parsing(path, layout, types)
    with open_table(path, layout) as stream:
        return pacsv.read_csv(stream, read_options=read, parse_options=parse, convert_options=convert)


def has_quotes(path: Path) -> bool:
    """Whether a quote stands anywhere in the file."""
    return any(b'"' in block for block in blocks(path))


def _ids(column: pa.ChunkedArray) -> pa.ChunkedArray:
    combined = column.unify_dictionaries().combine_chunks()
    encoded = combined.chunk(0) if isinstance(combined, pa.ChunkedArray) else combined
    values = integers_if_canonical(encoded.dictionary)
    return pa.chunked_array([pa.DictionaryArray.from_arrays(encoded.indices, values)])
