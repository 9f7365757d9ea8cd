"""What a Parquet file says of its rows besides them, held against the rows: ranges, paths, who wrote it.

The footer states the least and the largest value of every column in every row group, and page headers do it again.
Other readers believe that: they pass over rows that cannot be asked for, or answer from the footer alone, and show what
else stands there. So a range is exactly the one that its rows have, a column has the path of its place in the schema,
the Arrow schema that travels along says what the file's own says, and nothing is said that dpsr does not write.
"""

from __future__ import annotations

import base64
import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpsr.arrays import AnyArray
from dpsr.certify.folder import MalformedError
from dpsr.release.folder.parquet_pages import ColumnChunk, pages_of
from dpsr.release.folder.thrift import Fields

ARROW_SCHEMA = b"ARROW:schema"
_NOTES = "its footer holds notes nobody knows"
_OF_FILE, _OF_GROUP = {1, 2, 3, 4, 5, 6, 7}, {1, 2, 3, 5, 6, 7}
_OF_CHUNK = {1, 2, 3, 4, 5, 6, 7, 9, 11, 12, 13, 16}
"""Numbers of the fields that are written: no index, no filter, no order of rows, no key."""

_TEXTS = {(2, 4), (4, 1, 3, 3), (5, 1), (5, 2), (6,), *((4, 1, 3, 12, number) for number in (1, 2, 5, 6))}
"""Where in a footer a text may stand: names, paths, notes, who wrote it, ends of ranges."""

_WRITER = re.compile(rb"parquet-cpp-arrow version [0-9]{1,4}(\.[0-9]{1,4}){1,3}(-SNAPSHOT)?")
_FORMATS = {"d": "<d", "f": "<f", "l": "<q", "q": "<q"}
_NULLS, _MOST, _LEAST, _EXACT = 3, (1, 5), (2, 6), (7, 8)
"""Fields of a range; the ends stand in an older and in a newer field each."""


def check_notes(footer: Fields, arrow: Mapping[bytes, bytes] | None, schema: pa.Schema) -> None:
    """Refuse a footer that says more than dpsr writes, or of another schema than its own; `arrow` are its notes."""
    groups = footer.structs(4)
    about = [column[3] for group in groups for column in group.structs(1)]
    more = set(footer) - _OF_FILE or any(set(one) - _OF_GROUP for one in groups) or len(footer.get(5, ())) > 1
    if more or any(set(one) - _OF_CHUNK for one in about) or set(arrow or {}) - {ARROW_SCHEMA}:
        raise MalformedError(_NOTES)
    if set(_places_of_text(footer)) - _TEXTS:
        raise MalformedError(_NOTES)
    elements = footer.structs(2)
    if not elements or elements[0].get(4) != b"schema" or not _WRITER.fullmatch(footer.get(6) or b""):
        raise MalformedError("its footer does not say who wrote it as dpsr does")
    paths = list(islice(_paths(elements), len(elements)))
    if any([column[3].get(3) for column in group.structs(1)] != paths for group in groups):
        raise MalformedError("a column lies at another path than the schema says")
    if arrow and _shape(_told(arrow[ARROW_SCHEMA])) != _shape(schema):
        raise MalformedError("it tells Arrow of other columns than it has")


def _places_of_text(value: Any, place: tuple[int, ...] = ()) -> Iterator[tuple[int, ...]]:
    """The numbers of the fields, from the outermost to the innermost, in which a text stands."""
    if isinstance(value, bytes):
        yield place
    elif isinstance(value, Fields):
        for number, one in value.items():
            yield from _places_of_text(one, (*place, number))
    elif isinstance(value, list):
        for one in value:
            yield from _places_of_text(one, place)


def _paths(elements: Sequence[Fields]) -> Iterator[list[bytes]]:
    """The path of every column: elements stand in the order of a walk through the tree, each with its children."""
    open_groups: list[list[Any]] = []
    for element in elements[1:]:
        path = [*(name for name, _ in open_groups), element.get(4)]
        if children := element.get(5):
            open_groups.append([element.get(4), children])
            if len(open_groups) > 4:
                raise MalformedError("its schema goes deeper than any table's")
            continue
        yield path
        while open_groups:
            open_groups[-1][1] -= 1
            if open_groups[-1][1]:
                break
            open_groups.pop()


def _told(text: bytes) -> pa.Schema:
    try:
        return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text, validate=True)))
    except Exception as error:  # by a stranger, as the footer is
        raise MalformedError(f"its footer cannot be read ({type(error).__name__})") from None


def _shape(schema: pa.Schema) -> list[tuple[str, str]]:
    """Names and types; text may be coded or not, and what members of a list are called does not matter."""
    if schema.metadata or any(field.metadata for field in schema):
        raise MalformedError(_NOTES)
    return [(field.name, _kind(field.type)) for field in schema]


def _kind(kind: pa.DataType) -> str:
    if pa.types.is_fixed_size_list(kind):
        return f"{kind.value_type} {kind.list_size}"
    return str(kind.value_type) if pa.types.is_dictionary(kind) else str(kind)


class _Values(NamedTuple):
    """The values of a column: numbers, or the rank of each row's text among `texts`, which ascend in this `order`."""

    numbers: AnyArray
    texts: pa.Array | None = None
    order: AnyArray | None = None

    def end(self, values: AnyArray, *, most: bool) -> Any:
        """The largest or the least of some of them."""
        found = values.max() if most else values.min()
        return found if self.texts is None or self.order is None else self.texts[int(self.order[found])].as_py()

    def read(self, stated: bytes) -> Any:
        """The value that a footer states; None if it is none of this type."""
        if self.texts is not None:
            return stated
        form = _FORMATS[self.numbers.dtype.char]
        return struct.unpack(form, stated)[0] if len(stated) == struct.calcsize(form) else None


def check_ranges(data: bytes, groups: list[list[ColumnChunk]], columns: Mapping[str, Any]) -> None:
    """Refuse a range in the footer or in a page header that is not its rows' own."""
    for place, (name, column) in enumerate(columns.items()):
        values = _values_of(column)
        if values is not None and not all(_holds(values, *one) for one in _ranges(data, groups, place)):
            raise MalformedError(f"the range that is stated of its column {name} is not that of its rows")


def _values_of(column: Any) -> _Values | None:
    """In the order in which pages hold them; None where rows are missing, which every reader of ids refuses."""
    if isinstance(column, np.ndarray):
        return _Values(column.ravel())
    if column.null_count:
        return None
    if not pa.types.is_dictionary(column.type):
        return _Values(column.to_numpy())
    texts = column.dictionary.cast(pa.binary())
    if texts.null_count:
        return None
    order = pc.sort_indices(texts).to_numpy()
    ranks = np.empty(len(order), dtype=np.int64)
    ranks[order] = np.arange(len(order))
    return _Values(ranks[column.indices.to_numpy()], texts, order)


def _ranges(data: bytes, groups: list[list[ColumnChunk]], place: int) -> Iterator[tuple[int, int, Fields]]:
    """What is stated of which values of a column: of those in a row group, and of those in each of its pages."""
    start = 0
    for chunk in (group[place] for group in groups):
        yield start, start + chunk.values, chunk.range
        for page in pages_of(data, chunk):
            yield start, start + page.values, page.range
            start += page.values


def _holds(values: _Values, start: int, stop: int, stated: Fields) -> bool:
    if set(stated) - {_NULLS, *_MOST, *_LEAST, *_EXACT} or stated.get(_NULLS, 0) != 0:
        return False
    if any(stated.get(field, True) is not True for field in _EXACT):
        return False
    rows = values.numbers[start:stop]
    for fields, most in ((_MOST, True), (_LEAST, False)):
        ends = [stated[field] for field in fields if field in stated]
        if ends and (not len(rows) or any(not _is(values, one, values.end(rows, most=most)) for one in ends)):
            return False
    return True


def _is(values: _Values, stated: Any, found: Any) -> bool:
    return isinstance(stated, bytes) and bool(values.read(stated) == found)
