"""The pages of a Parquet file, counted without unpacking one: do they hold what the footer declares?

A footer states how many values and bytes every column has, and a reader makes room as its pages go along, whatever the
footer said. A few bytes can stand for billions of values (runs of one value are written once), so before anything is
unpacked the page headers are read and added up:

    values in the data pages   = values of the column, by the footer
    bytes of headers and pages = bytes of the column, packed and unpacked, by the footer
    the columns one after the other, from the first byte after the magic number to the footer, and nothing between

A page that claims to unpack to more than Snappy can pack into its bytes is refused too. Headers are Thrift structures
in the compact protocol: a field is one byte (step to its number, type), integers are zigzag varints.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pyarrow.parquet as pq

from dpsr.certify.schema import MalformedError

MAGIC = b"PAR1"
_DATA, _DICTIONARY = 0, 2
_BEST_RATIO, _ALWAYS = 22, 64
"""Three bytes of Snappy stand for at most 64; and a few bytes whatever the size."""

_STOP, _TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(13)
_DEEPEST = 8


class Page(NamedTuple):
    """What a page header says; `header` is its own length."""

    kind: int
    packed: int
    unpacked: int
    values: int
    header: int


def check_pages(data: bytes, metadata: pq.FileMetaData) -> None:
    """Refuse a file whose pages are not what its footer declares, or that holds bytes nobody would read."""
    at = len(MAGIC)
    for group in range(metadata.num_row_groups):
        for place in range(metadata.num_columns):
            at = _check_column(data, at, metadata.row_group(group).column(place))
    if at + metadata.serialized_size + 4 + len(MAGIC) != len(data):
        raise MalformedError("it holds bytes that belong to no column")


def _check_column(data: bytes, start: int, column: Any) -> int:
    """Read the headers of one column of a row group; where it ends."""
    first = column.dictionary_page_offset if column.has_dictionary_page else column.data_page_offset
    if first != start or column.compression not in ("SNAPPY", "UNCOMPRESSED"):
        raise MalformedError("its columns do not lie one after the other, packed by Snappy")
    at, values, unpacked = start, 0, 0
    stop = start + column.total_compressed_size
    while at < stop <= len(data):
        page = read_header(data, at)
        if page.kind not in (_DATA, _DICTIONARY) or page.unpacked > _BEST_RATIO * page.packed + _ALWAYS:
            raise MalformedError("a page is of another kind, or claims to unpack to more than it can hold")
        values += page.values if page.kind == _DATA else 0
        unpacked += page.unpacked + page.header
        at += page.packed + page.header
    if at != stop or values != column.num_values or unpacked != column.total_uncompressed_size:
        raise MalformedError("its pages do not hold what its footer declares")
    return at


def read_header(data: bytes, at: int) -> Page:
    """The page header that begins at a place."""
    reader = _Compact(data, at)
    try:
        fields = reader.struct()
        kind, unpacked, packed = fields[1], fields[2], fields[3]
        values = fields[5][1] if kind == _DATA else 0
    except (KeyError, TypeError, IndexError, RecursionError):
        raise MalformedError("a page has no header") from None
    if not all(isinstance(number, int) and number >= 0 for number in (unpacked, packed, values)):
        raise MalformedError("a page has no size")
    return Page(kind, packed, unpacked, values, reader.at - at)


class _Compact:
    """Thrift's compact protocol, as far as a page header needs it; numbers are kept, texts are passed over."""

    def __init__(self, data: bytes, at: int) -> None:
        self.data, self.at = data, at
        self._readers: dict[int, Callable[[int], Any]] = {
            _TRUE: lambda _: True,
            _FALSE: lambda _: False,
            _BYTE: lambda _: self._byte(),
            **dict.fromkeys((_I16, _I32, _I64), lambda _: self._zigzag()),
            _DOUBLE: lambda _: self._pass_over(8),
            _BINARY: lambda _: self._pass_over(self._varint()),
            _STRUCT: self.struct,
        }

    def struct(self, depth: int = 0) -> dict[int, Any]:
        """Field numbers and values; a header has no lists or maps."""
        fields: dict[int, Any] = {}
        number = 0
        while (head := self._byte()) != _STOP:
            number = number + (head >> 4) if head >> 4 else self._zigzag()
            if depth > _DEEPEST or head & 15 not in self._readers or number in fields:
                raise MalformedError("a page has a header nobody knows")
            fields[number] = self._readers[head & 15](depth + 1)
        return fields

    def _byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1]

    def _varint(self) -> int:
        value, shift = 0, 0
        while True:
            byte = self._byte()
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
            if shift > 63:
                raise MalformedError("a page has a number without an end")

    def _zigzag(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)

    def _pass_over(self, n: int) -> None:
        self.at += n
