"""A file of ratings as columns, or what its columns are called: Parquet and JSON lines by their first bytes or
extension, everything else as delimited text.

Ids and ratings of text are read as text with each distinct value kept once, so that 25 million rows cost little memory,
nothing is guessed from the first block, and an error can quote what the file says. A column of ids becomes integers
only if every id in it is spelt like one.
"""

from __future__ import annotations

import codecs
import os
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import Any

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from dpsr.data.coding import ARROW_ERRORS, RatingColumns, integers_if_canonical
from dpsr.data.columns import (
    BLOCK,
    CONVENTIONAL,
    DOUBLE_COLON,
    INTERACTION_ROWS,
    RATING_ROWS,
    UNIT_SEPARATOR,
    Layout,
    Roles,
    RowKind,
    blocks,
    find_columns,
    is_number,
    line_of_record,
    name_key,
    open_bytes,
    open_table,
    recognise,
    unread_rating,
)
from dpsr.data.files.diagnose import refusal_of_text, unreadable_message
from dpsr.data.files.json_lines import (
    begins_like_json,
    columns_of_json_lines,
    keys_of_json_lines,
    taken_from_json_lines,
)
from dpsr.errors import DataError
from dpsr.quoting import Source, file_name

_PARQUET_SUFFIXES = (".parquet", ".pq", ".parq")
_JSON_SUFFIXES = (".jsonl", ".ndjson", ".json")
_COMPRESSED_SUFFIXES = (".gz", ".bz2", ".zst", ".lz4")
_HEAD = 1 << 20
_WORKBOOK = "an Excel workbook or an archive, not a table of text. Save its sheet as CSV, or unpack it first"
_COMPRESSED = "compressed, and its name does not say so. Let it end in {}, or unpack it first ({})"
_NOT_TEXT = {
    b"SQLite format 3\0": "an SQLite database. Write its address and a query: sqlite:///file.db with "
    "--query 'select user_id, item_id, rating from ratings' (in Python: from_sql)",
    b"PK\x03\x04": _WORKBOOK,
    b"\xd0\xcf\x11\xe0": _WORKBOOK,
    b"\x1f\x8b": _COMPRESSED.format(".gz", "gunzip"),
    b"\x28\xb5\x2f\xfd": _COMPRESSED.format(".zst", "unzstd"),
    **{f"BZh{level}1AY&SY".encode(): _COMPRESSED.format(".bz2", "bunzip2") for level in range(1, 10)},
    b"\xfd7zXZ\0": "compressed by xz, which is not read. Unpack it first (unxz)",
}
"""First bytes of files that people take for tables, and what to do."""


def columns_of_file(path: str | PathLike[str], kind: RowKind = RATING_ROWS, /, **named: str | None) -> RatingColumns:
    """The columns of a file in any layout that is known; see `recognised` for what may be named."""
    if is_json_lines(existing(Path(path))):
        named.pop("delimiter", None)
        return columns_of_json_lines(Path(path), kind, **named)
    file, layout, roles = recognised(path, kind, **named)
    if layout is None:
        return _columns_of_parquet(file, parquet_schema(file), roles)
    return columns_of_text(file, layout, roles)


def columns_taken(path: str | PathLike[str], kind: RowKind = RATING_ROWS, /, **named: str | None) -> dict[str, str]:
    """Which column is taken for which part, by its name, or by its place where there is no header."""
    if is_json_lines(existing(Path(path))):
        named.pop("delimiter", None)
        return taken_from_json_lines(Path(path), kind, **named)
    file, layout, roles = recognised(path, kind, **named)
    names = list(layout.names) if layout else parquet_schema(file).names
    shown = [f"column {place + 1}" for place in range(len(names))] if layout and not layout.header else names
    return roles.taken(shown, kind)


def unread_column(path: str | PathLike[str], kind: RowKind, /, **named: str | None) -> str | None:
    """The column of a file that looks like a rating where none was asked for, if there is one."""
    file, layout, roles = recognised(path, kind, **named)
    return unread_rating(list(layout.names) if layout else parquet_schema(file).names, roles)


@dataclass(frozen=True)
class Columns:
    """Names in their order, whether they stand in the file, and the one for each part: None if none or several fit."""

    names: tuple[str, ...]
    header: bool
    taken: dict[str, str | None]

    def to_dict(self) -> dict[str, Any]:
        """For scripts."""
        return asdict(self)


def columns_in(path: str | PathLike[str], *, delimiter: str | None = None) -> Columns:
    """The columns of a file in any layout that is known."""
    names, header = _names(existing(Path(path)), delimiter)
    if header and any(is_number(name) for name in names):  # perhaps the first rating of a file without a header
        raise DataError(
            f"{file_name(Path(path))}: columns must have names, and these are numbers. If the file has no header, add "
            "one: user,item,rating."
        )
    return Columns(tuple(names), header, {role: _only(role, names) for role in CONVENTIONAL})


def _names(file: Path, delimiter: str | None) -> tuple[list[str], bool]:
    if is_json_lines(file):
        return keys_of_json_lines(file), True
    head = read_head(file)
    if is_parquet(file, head):
        return list(parquet_schema(file).names), True
    first, name = first_lines(file, head), file_name(file)
    layout = recognise(first, suffix_of(file), source=name, delimiter=delimiter, kind=INTERACTION_ROWS)
    return list(layout.names), layout.header


def _only(role: str, names: list[str]) -> str | None:
    fit = [name for name in names if name_key(name) in CONVENTIONAL[role].split()]
    return fit[0] if len(fit) == 1 else None


def recognised(
    path: str | PathLike[str],
    kind: RowKind = RATING_ROWS,
    /,
    *,
    delimiter: str | None = None,
    **named: str | None,
) -> tuple[Path, Layout | None, Roles]:
    """The file, how it is laid out (None for Parquet), and which of its columns are which.

    Columns are named by `user=`, `item=`, `timestamp=` and the value's part, `rating=` or `weight=`.
    """
    file = existing(Path(path))
    head = read_head(file)
    layout = None
    if is_json_lines(file):
        raise DataError(f"{file_name(file)}: JSON lines are read into memory only. Save it as CSV or Parquet first.")
    if not is_parquet(file, head):
        first = first_lines(file, head)
        layout = recognise(first, suffix_of(file), source=file_name(file), delimiter=delimiter, kind=kind)
    names = list(layout.names) if layout else parquet_schema(file).names
    roles = find_columns(names, source=file_name(file), kind=kind, **named)
    return file, layout, roles


def is_parquet(file: Path, head: bytes) -> bool:
    """By what the name says or how the bytes begin."""
    return file.suffix.lower() in _PARQUET_SUFFIXES or head.startswith(b"PAR1")


def is_json_lines(file: Path) -> bool:
    """By what the name says, compression aside, or how the text begins: what comes through a pipe has no name."""
    if suffix_of(file) in _JSON_SUFFIXES:
        return True
    return not is_parquet(file, b"") and begins_like_json(read_head(file, 64))


def existing(path: Path) -> Path:
    """The path of a file that can be read more than once, or one sentence saying why not."""
    name = file_name(path)
    try:
        kind = path.stat().st_mode
    except FileNotFoundError as error:
        raise DataError(f"{name} does not exist. Check the path, and the folder it is relative to.") from error
    except (OSError, ValueError) as error:  # no permission, or a name no file can have
        raise DataError(f"{name} cannot be opened. Check the path and who may read it.") from error
    if S_ISDIR(kind):
        raise DataError(f"{name} is a folder. Name one file of ratings in it.")
    if S_ISREG(kind) and not os.access(path, os.R_OK):
        raise DataError(f"{name} may not be read by you. Ask whoever owns it, or run as somebody who may.")
    if not S_ISREG(kind):  # a pipe can be read once, and a message about its rows needs to read it again
        raise DataError(f"{name} is not a regular file. Save the ratings to a file first.")
    return path


def suffix_of(path: Path) -> str:
    """The extension, compression aside."""
    name = path.name.lower()
    plain = name.removesuffix(path.suffix.lower()) if path.suffix.lower() in _COMPRESSED_SUFFIXES else name
    return Path(plain).suffix


def read_head(path: Path, size: int = _HEAD) -> bytes:
    """The first row and what follows, up to a mebibyte."""
    try:
        with open_bytes(path) as stream:
            return bytes(stream.read(size))
    except ARROW_ERRORS as error:
        raise DataError(unreadable_message(path, str(error))) from error


def first_lines(path: Path, head: bytes) -> str:
    """The head of a text file as text; the beginning of something else is refused."""
    name = file_name(path)
    for magic, what in _NOT_TEXT.items():
        if head.startswith(magic):
            raise DataError(f"{name} is {what}.")
    if begins_like_json(head):  # ratings in JSON are read elsewhere
        raise DataError(f"{name} is JSON, of which ratings alone are read. Save it as CSV, TSV or Parquet.")
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise DataError(f"{name}, row 1: the file is UTF-16 and not UTF-8. Save it as UTF-8.")
    if len(head) == _HEAD and len(head.lstrip(b"\r\n").splitlines()) < 2:
        raise DataError(
            f"{name}, row 1: the first row has more than a million characters. Check for missing line breaks; "
            "each rating stands on its own line."
        )
    return head.decode("utf-8-sig", errors="replace")


def parquet_schema(path: Path) -> pa.Schema:
    """The columns of a Parquet file and their types."""
    name = file_name(path)
    try:
        with pq.ParquetFile(path) as file:
            return file.schema_arrow
    except ARROW_ERRORS as error:
        raise DataError(
            f"{name} is not a complete Parquet file. Copy or export it again, or rename it if it is text."
        ) from error


def _columns_of_parquet(path: Path, schema: pa.Schema, roles: Roles) -> RatingColumns:
    names = [schema.names[place] for place in roles.used]
    texts = [name for name in names[:2] if pa.types.is_string(schema.field(name).type)]
    try:
        with pq.ParquetFile(path, read_dictionary=texts) as file:  # each distinct id is kept once
            table = file.read(columns=names)
        columns = [table.column(name) for name in names]
    except ARROW_ERRORS as error:
        raise DataError(unreadable_message(path, str(error))) from error
    source = Source(file_name(path), lambda row: f"row {row + 1}")
    return RatingColumns.of(columns, roles, source, unread_rating(schema.names, roles))


_DISTINCT_TEXT = pa.dictionary(pa.int32(), pa.string())


def columns_of_text(path: Path, layout: Layout, roles: Roles) -> RatingColumns:
    """The columns of a text file, read by as many threads as Arrow likes."""
    source = Source(file_name(path), lambda row: f"row {line_of_record(path, layout, row + layout.header)}")
    types = dict.fromkeys(map(name_of, roles.used), _DISTINCT_TEXT)
    if roles.timestamp is not None:
        types[name_of(roles.timestamp)] = pa.string()
    try:
        table = _parse(path, layout, types)
    except ARROW_ERRORS as error:
        raise refusal_of_text(path, layout, str(error)) from error
    if layout.header and not len(table):
        raise DataError(f"{source.name} holds a header but no ratings. Give at least one row of data below it.")
    columns = [table[name_of(place)] for place in roles.used]
    columns[:2] = map(_ids, columns[:2])
    names = layout.names if layout.header else [f"column {place + 1}" for place in range(len(layout.names))]
    unread = unread_rating(layout.names, roles)
    return RatingColumns.of(columns, roles, source, unread and names[layout.names.index(unread)])


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
