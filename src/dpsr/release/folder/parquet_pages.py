"""The pages of a Parquet file, counted without unpacking one: do they hold what the footer declares?

A footer states how many values and bytes every column has, and a reader makes room as its pages go along, whatever the
footer said. A few bytes can stand for billions of values (runs of one value are written once), so before anything is
unpacked the page headers are read and added up:

    values in the data pages   = values of the column, by the footer
    bytes of headers and pages = bytes of the column, packed and unpacked, by the footer
    the columns one after the other, from the first byte after the magic number to the footer, and nothing between

A page that claims to unpack to more than Snappy can pack into its bytes is refused too.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from dpsr.certify.folder import MalformedError
from dpsr.release.folder.thrift import I32, I64, Compact, Fields

MAGIC = b"PAR1"
_DATA, _DICTIONARY = 0, 2
_OF_PAGE = {_DATA: (5, {1, 2, 3, 4, 5}), _DICTIONARY: (7, {1, 2, 3})}
"""By kind of page: the field that is its own header, and the fields that has."""

_BEST_RATIO, _ALWAYS = 22, 64
"""Three bytes of Snappy stand for at most 64; and a few bytes whatever the size."""

_PACKED_BY = (0, 1)
"""Nothing, or Snappy."""


class ColumnChunk(NamedTuple):
    """What a footer says of one column in one row group of `rows`; `range` is what it says of its values."""

    start: int
    packed: int
    unpacked: int
    values: int
    rows: int | None = None
    range: Fields = Fields()


class Page(NamedTuple):
    """What a page header says; `header` is its own length, `range` what it says of its values."""

    kind: int
    packed: int
    unpacked: int
    values: int
    header: int
    range: Fields = Fields()


def read_footer(data: bytes, *, most_bytes: int) -> tuple[Fields, list[list[ColumnChunk]]]:
    """The footer, and of it the columns of every row group, in order."""
    size = int.from_bytes(data[-8:-4], "little")
    if len(data) < 12 or data[:4] != MAGIC or data[-4:] != MAGIC or not 0 < size <= min(len(data) - 12, most_bytes):
        raise MalformedError("it is not a Parquet file")
    reader, end = Compact(data[: len(data) - 8], len(data) - 8 - size), len(data) - 8
    try:
        footer = reader.struct()
        found = [[_chunk(column, group.get(3)) for column in group.structs(1)] for group in footer.structs(4)]
    except (IndexError, RecursionError):
        raise MalformedError("its footer cannot be read") from None
    if reader.at != end:
        raise MalformedError("its footer is followed by something else")
    return footer, found


def _chunk(column: Fields, rows: Any) -> ColumnChunk:
    about = column.get(3)
    if set(column) - {2, 3} or not isinstance(about, Fields):
        raise MalformedError("a column lies in another file, is encrypted, or has an index")
    if 8 in about:
        raise MalformedError("its footer holds notes nobody knows")
    if about.integer(4, I32) not in _PACKED_BY:
        raise MalformedError("a column is packed in another way, and columns are packed by Snappy")
    start = about.integer(11 if 11 in about else 9, I64)
    packed, unpacked, values = (about.integer(number, I64) for number in (7, 6, 5))
    return ColumnChunk(start, packed, unpacked, values, rows, _range(about.get(12)))


def _range(stated: Any) -> Fields:
    if not isinstance(stated, Fields | None):
        raise MalformedError("a page or the footer has a field nobody knows")
    return Fields() if stated is None else stated


def check_pages(data: bytes, groups: list[list[ColumnChunk]]) -> None:
    """Refuse a file whose pages are not what its footer declares, or that holds bytes nobody would read."""
    at = len(MAGIC)
    for column in (column for group in groups for column in group):
        at = _check_column(data, at, column)
    if at + int.from_bytes(data[-8:-4], "little") + 4 + len(MAGIC) != len(data):
        raise MalformedError("it holds bytes that belong to no column")


def _check_column(data: bytes, start: int, column: ColumnChunk) -> int:
    """Read the headers of one column of a row group; where it ends."""
    if column.start != start:
        raise MalformedError("its columns do not lie one after the other")
    at, values, unpacked = start, 0, 0
    stop = start + column.packed
    while at < stop <= len(data):
        page = read_header(data, at)
        if page.kind not in (_DATA, _DICTIONARY) or page.unpacked > _BEST_RATIO * page.packed + _ALWAYS:
            raise MalformedError("a page is of another kind, or claims to unpack to more than it can hold")
        values += page.values if page.kind == _DATA else 0
        unpacked += page.unpacked + page.header
        at += page.packed + page.header
    if at != stop or values != column.values or unpacked != column.unpacked:
        raise MalformedError("its pages do not hold what its footer declares")
    return at


def read_header(data: bytes, at: int) -> Page:
    """The page header that begins at a place."""
    reader = Compact(data, at)
    try:
        fields = reader.struct()
        kind, unpacked, packed = fields[1], fields[2], fields[3]
        own, known = _OF_PAGE.get(kind, (5, set()))
        if kind in _OF_PAGE and (set(fields) != {1, 2, 3, own} or set(fields[own]) - known):
            raise MalformedError("a page or the footer has a field nobody knows")
        values, stated = (fields[5][1], fields[5].get(5)) if kind == _DATA else (0, None)
    except (KeyError, TypeError, IndexError, AttributeError, RecursionError):
        raise MalformedError("a page has no header") from None
    if not all(isinstance(number, int) and number >= 0 for number in (unpacked, packed, values)):
        raise MalformedError("a page has no size")
    return Page(kind, packed, unpacked, values, reader.at - at, _range(stated))


def pages_of(data: bytes, column: ColumnChunk) -> Iterator[Page]:
    """The data pages of a column in one row group, which `check_pages` has counted."""
    at = column.start
    while at < column.start + column.packed:
        page = read_header(data, at)
        at += page.packed + page.header
        if page.kind == _DATA:
            yield page
