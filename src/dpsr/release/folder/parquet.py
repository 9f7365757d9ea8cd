"""Tables by strangers: exactly the columns that are expected, exactly as many rows, sizes checked before unpacking.

    id        int64, or text; text comes back as codes into its distinct values, so that repeats take no room
    whole     int64
    real      float64, every one a finite number
    single    float32, every one a finite number
    vector    a fixed number of float64, every one a finite number
    singles   a fixed number of float32, every one a finite number

The footer is compared with what is expected, the pages with the footer (`parquet_pages`), and only then is anything
unpacked. Missing values, text that is not UTF-8 and numbers whose squares would overflow are refused; so are notes on
the file or a column, texts that no row has, and what is said of rows and not borne out by them (`parquet_claims`):
other readers would show or believe it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from dpsr.arrays import AnyArray
from dpsr.certify.folder import MalformedError
from dpsr.quoting import printable
from dpsr.release.folder.layout import ITEMS, memory_of_machine
from dpsr.release.folder.parquet_claims import check_notes, check_ranges
from dpsr.release.folder.parquet_pages import ColumnChunk, check_pages, read_footer

LARGEST = 1e75
"""A number of a model lies within this: products of four of them are still numbers."""

_LARGEST = {"d": LARGEST, "f": float(np.finfo(np.float32).max)}
"""By type of number."""

MOST_ROWS = (1 << 31) - 1
MOST_WIDE = 1_024
"""Numbers in a vector."""

_ROWS_AT_ONCE = 1 << 16
_FOOTER = 1 << 23
_ROW_BYTES = 48
_NUMBERS = {"whole": pa.int64(), "real": pa.float64(), "single": pa.float32()}
_VECTORS = {"vector": pa.float64(), "singles": pa.float32()}
_TEXT = pa.dictionary(pa.int32(), pa.string())


class Column(NamedTuple):
    """A column that a table has, or may have; `width` of a vector, None if the table decides."""

    name: str
    kind: str
    optional: bool = False
    width: int | None = None


def checked_table(data: bytes, name: str, columns: Sequence[Column], rows: int) -> Mapping[str, Any]:
    """`read_table`, with the name of the file in front of what is wrong with it."""
    try:
        return read_table(data, columns, rows)
    except MalformedError as error:
        raise MalformedError(f"{name}: {error}") from None


def read_table(data: bytes, columns: Sequence[Column], rows: int) -> Mapping[str, Any]:
    """The columns of a table of `rows` rows: ids as Arrow arrays, everything else as numpy arrays."""
    file, groups, found = _examined(data, columns, rows)
    table = _unpacked(file)
    values = {column.name: _values(table[column.name], column) for column in found}
    check_ranges(data, groups, values)
    return values


def read_batches(data: bytes, columns: Sequence[Column], rows: int, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Some columns of such a table, a few rows at a time: a few bytes of a file can stand for billions of rows."""
    file = _examined(data, columns, rows)[0]
    batches = file.iter_batches(_ROWS_AT_ONCE, columns=list(names))
    while True:
        try:
            yield next(batches)
        except StopIteration:
            return
        except Exception as error:  # as below: pages by a stranger
            raise MalformedError(f"its pages cannot be read ({type(error).__name__})") from None


def _examined(
    data: bytes, columns: Sequence[Column], rows: int
) -> tuple[pq.ParquetFile, list[list[ColumnChunk]], list[Column]]:
    """The file of which nothing is unpacked yet, its columns as the footer has them, and which of `columns` it has."""
    footer, groups = read_footer(data, most_bytes=_FOOTER)
    file = _opened(data, [column.name for column in columns if column.kind == "id" and not column.optional])
    ids = [column.name for column in columns if column.kind == "id" and column.name in file.schema_arrow.names]
    file = _opened(data, ids)  # once more, with the optional ones among them that are there
    metadata, schema = file.metadata, file.schema_arrow
    if metadata.num_rows != rows:
        raise MalformedError(f"it has {metadata.num_rows:,} rows, and {rows:,} are stated")
    found = _matched(schema, columns)
    if _annotated(schema):
        raise MalformedError("its footer holds notes nobody knows")
    check_notes(footer, metadata.metadata, schema)
    check_pages(data, groups)
    _check_values(groups, [_width(schema, column) for column in found], rows, len(data))
    return file, groups, found


def _opened(data: bytes, ids: Sequence[str]) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(
            pa.BufferReader(data),
            read_dictionary=list(ids),
            thrift_string_size_limit=_FOOTER,
            thrift_container_size_limit=1 << 20,
        )
    except Exception as error:  # a footer by a stranger may break its reader in any way; every way is this finding
        raise MalformedError(f"its footer cannot be read ({type(error).__name__})") from None


def _matched(schema: pa.Schema, columns: Sequence[Column]) -> list[Column]:
    """The columns that are there: all but optional ones, in this order, of the right types, and no other."""
    names = schema.names
    found = [column for column in columns if column.name in names or not column.optional]
    if names != [column.name for column in found]:
        wanted = ", ".join(f"[{column.name}]" if column.optional else column.name for column in columns)
        raise MalformedError(f"its columns are {_listed(names)}, and must be {wanted}")
    for column, field in zip(found, schema, strict=True):
        if not _fits(column, field.type):
            raise MalformedError(f"its column {column.name} has the type {printable(str(field.type), 60)}")
    return found


def _annotated(schema: pa.Schema) -> bool:
    """Whether the schema, a column or the members of its lists have notes of their own."""
    members = [field.type.value_field for field in schema if pa.types.is_fixed_size_list(field.type)]
    return any(one.metadata for one in (schema, *schema, *members))


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"{name[:60]!a}" for name in names[:12]) + (" and more" if len(names) > 12 else "")


def _fits(column: Column, kind: pa.DataType) -> bool:
    if column.kind == "id":
        return kind in (pa.int64(), _TEXT)
    if column.kind in _NUMBERS:
        return kind == _NUMBERS[column.kind]
    if not pa.types.is_fixed_size_list(kind) or kind.value_type != _VECTORS[column.kind]:
        return False
    return 1 <= kind.list_size <= MOST_WIDE if column.width is None else kind.list_size == column.width


def _width(schema: pa.Schema, column: Column) -> int:
    return schema.field(column.name).type.list_size if column.kind in _VECTORS else 1


def _check_values(groups: list[list[ColumnChunk]], widths: Sequence[int], rows: int, size: int) -> None:
    """One number a row, or as many as a vector has; and room for all of them."""
    for place, width in enumerate(widths):
        if any(len(group) != len(widths) for group in groups) or sum(g[place].values for g in groups) != rows * width:
            raise MalformedError("a column has more or fewer values than rows")
        if any(group[place].values != (group[place].rows or 0) * width for group in groups):
            raise MalformedError("a row group has more or fewer rows than its columns")
    need, there = size + rows * (_ROW_BYTES + 16 * sum(widths)), memory_of_machine()
    if need > there:
        raise MalformedError(f"it takes about {need >> 20:,} MB of memory, and this machine has {there >> 20:,} MB")


def _unpacked(file: pq.ParquetFile) -> pa.Table:
    try:
        table = file.read()
        table.validate(full=True)
    except Exception as error:  # as above: pages by a stranger
        raise MalformedError(f"its pages cannot be read ({type(error).__name__})") from None
    return table


def _values(chunks: pa.ChunkedArray, column: Column) -> Any:
    array = _one_array(chunks)
    if column.kind == "id":
        if pa.types.is_dictionary(array.type) and pc.count_distinct(array.indices).as_py() < len(array.dictionary):
            raise MalformedError(f"its column {column.name} holds texts that no row has")
        return array
    numbers = array.flatten() if column.kind in _VECTORS else array
    if array.null_count or numbers.null_count:
        raise MalformedError(f"its column {column.name} has missing values")
    values: AnyArray = numbers.to_numpy(zero_copy_only=False).copy()
    if column.kind != "whole" and not bool((np.abs(values) <= _LARGEST[values.dtype.char]).all()):
        raise MalformedError(f"its column {column.name} holds something that is not a number of at most {LARGEST:g}")
    return values.reshape(len(array), array.type.list_size) if column.kind in _VECTORS else values


def _one_array(chunks: pa.ChunkedArray) -> pa.Array:
    unified = chunks.unify_dictionaries() if pa.types.is_dictionary(chunks.type) else chunks
    combined = unified.combine_chunks()
    return combined.chunk(0) if isinstance(combined, pa.ChunkedArray) else combined


def vocabulary(ids: pa.Array, name: str, who: str) -> pa.Array:
    """Ids of one side, ascending and none twice, so that each is written out once."""
    if pa.types.is_dictionary(ids.type):
        codes, texts = ids.indices, ids.dictionary
        if ids.null_count or texts.null_count or pc.count_distinct(codes).as_py() < len(ids):
            raise MalformedError(f"{name}: every {who} has an id, and no two the same")
        ids = texts.take(codes)
    if ids.null_count or not pc.all(pc.less(ids[:-1], ids[1:]), min_count=0).as_py():  # one alone ascends
        raise MalformedError(f"{name}: every {who} has an id, and they ascend")
    return ids


def titles_of(items: Mapping[str, Any]) -> list[str | None] | None:
    """What items are called, if the release says; an empty text stands for no title."""
    if "title" not in items:
        return None
    texts = items["title"]
    if not pa.types.is_dictionary(texts.type) or texts.null_count or texts.dictionary.null_count:
        raise MalformedError(f"{ITEMS}: titles are text, an empty one for an item without")
    words = [text or None for text in texts.dictionary.to_pylist()]  # each once, however often it is repeated
    return [words[code] for code in texts.indices.to_pylist()]
