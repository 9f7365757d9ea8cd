"""Pairs of a user and an item in a file, read piece by piece: what somebody wants predictions for.

    CSV, TSV and other delimited text     a header names the columns; ids are whole numbers if every one in a column is
                                          spelt like one, else text, as for ratings
    Parquet                               by extension or first bytes

Further columns are passed over, so that a rating file will do. No rating is read.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from os import PathLike
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from dpsr.data.coding import ARROW_ERRORS, integers_if_canonical
from dpsr.data.columns import BLOCK, find_pair, open_bytes
from dpsr.data.files.read import existing, first_lines, is_parquet, read_head
from dpsr.errors import DataError
from dpsr.quoting import file_name, printable

_ROWS = 1 << 18
_DELIMITERS = (",", "\t", ";", "|")


Names = tuple[str | None, str | None]
"""What the columns of user and item are called, where that is known."""


def read_pairs(
    path: str | PathLike[str],
    *,
    user: str | None = None,
    item: str | None = None,
    delimiter: str | None = None,
    also: Names = (None, None),
) -> Iterator[pa.RecordBatch]:
    """Batches of two columns, `user` and `item`, in the order of the file.

    `also` is what ratings call theirs, and columns of pairs may be called so too.
    """
    file = existing(Path(path))
    head = read_head(file)
    try:
        if is_parquet(file, head):
            yield from _of_parquet(file, (user, item), also)
        else:
            yield from _of_text(file, first_lines(file, head), (user, item), also, delimiter)
    except ARROW_ERRORS as error:
        if isinstance(error, DataError):
            raise
        raise DataError(
            f"{file_name(file)} cannot be read as pairs ({printable(str(error), 80)}). Give a header and, below it, "
            "one user and one item in each row."
        ) from error


def _wanted(names: list[str], file: Path, named: Names, also: Names) -> list[str]:
    user, item = (given or (theirs if theirs in names else None) for given, theirs in zip(named, also, strict=True))
    return [names[place] for place in find_pair(names, source=file_name(file), user=user, item=item)]


def _of_parquet(file: Path, named: Names, also: Names) -> Iterator[pa.RecordBatch]:
    with pq.ParquetFile(file) as source:
        wanted = _wanted(source.schema_arrow.names, file, named, also)
        for batch in source.iter_batches(batch_size=_ROWS, columns=wanted):
            yield _named(batch.select(wanted))


def _of_text(file: Path, head: str, named: Names, also: Names, delimiter: str | None) -> Iterator[pa.RecordBatch]:
    header = next((line for line in head.splitlines() if line), None)
    if header is None:
        raise DataError(f"{file_name(file)} is empty. Give a header with a user and an item, and one pair in each row.")
    mark = {"\\t": "\t", None: _likely(header)}.get(delimiter, delimiter) or ","
    wanted = _wanted(next(csv.reader([header], delimiter=mark)), file, named, also)
    convert = pacsv.ConvertOptions(
        column_types=dict.fromkeys(wanted, pa.string()), include_columns=wanted, strings_can_be_null=False
    )
    parse = pacsv.ParseOptions(delimiter=mark)
    read = pacsv.ReadOptions(block_size=BLOCK)

    def batches() -> Iterator[pa.RecordBatch]:
        with open_bytes(file) as stream:
            for batch in pacsv.open_csv(stream, read_options=read, parse_options=parse, convert_options=convert):
                yield _named(batch)

    whole = {"user": True, "item": True}
    for batch in batches():  # once to see what the ids are, so that every piece of the answer has the same type
        whole = {name: fits and _whole(batch[name]) for name, fits in whole.items()}
    for batch in batches():
        yield pa.record_batch({name: batch[name].cast(pa.int64()) if whole[name] else batch[name] for name in whole})


def _whole(ids: pa.Array) -> bool:
    return bool(pa.types.is_integer(integers_if_canonical(ids).type))


def _likely(header: str) -> str:
    """The delimiter that occurs most often in the header; of two, the more usual."""
    return max(_DELIMITERS, key=header.count)


def _named(batch: pa.RecordBatch) -> pa.RecordBatch:
    return pa.record_batch(batch.columns, names=["user", "item"])
