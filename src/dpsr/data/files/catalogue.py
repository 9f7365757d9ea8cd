"""A file that lists items: an id in each row and, if there is one, a title.

    CSV, TSV and other delimited text     by a header that names a column of ids; without one, the first column holds
                                          the ids and the second the titles (`movies.dat`, `u.item`, a plain list)
    Parquet                               by extension or first bytes

A column of ids may be called as ratings call theirs (`also`). A first row of words over whole numbers is a header in
which no name is known: it is refused, since it would be an item, and would make text of all other ids.

Ids follow the same rule as ids of ratings, so that the two meet: integers if every one is spelt like an integer, else
text as it is. Further columns are passed over. No rating is read.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from os import PathLike
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dpsr.data.coding import ARROW_ERRORS, code_ids, integers_if_canonical
from dpsr.data.columns import CONVENTIONAL, is_number, name_key, open_bytes
from dpsr.data.files.diagnose import not_text, unreadable_message
from dpsr.data.files.read import existing, first_lines, is_parquet, read_head
from dpsr.errors import DataError
from dpsr.quoting import Source, file_name, quoted, quoted_list
from dpsr.types.catalogue import Catalogue

_IDS = {*CONVENTIONAL["item"].split(), "id", "sku"}
_NAMES = "title name itemtitle itemname movietitle filmtitle booktitle songtitle productname label"
_TITLES = {*_NAMES.split()}
_DELIMITERS = ("::", "\t", ";", "|", ",")


def read_catalogue(path: str | PathLike[str], *, also: str | None = None) -> Catalogue:
    """The items of a file in its order; `also` is what the ratings call theirs, and a column may be called so too."""
    file = existing(Path(path))
    head = read_head(file)
    name = file_name(file)
    if is_parquet(file, head):
        ids, titles = _of_parquet(file, also)
        source = Source(name, lambda row: f"row {row + 1}")
    else:
        lines, ids, titles = _of_text(file, first_lines(file, head), also)
        source = Source(name, lambda row: f"row {lines[row]}")
    if not len(ids):
        raise DataError(f"{name} lists no items. Give one item in each row, its id first and perhaps its title.")
    return Catalogue(_checked(ids, source), titles)


def _checked(ids: pa.Array, source: Source) -> np.ndarray[tuple[int], np.dtype[np.generic]]:
    """Ids as numpy holds them, each there once."""
    codes, vocabulary = code_ids(pa.chunked_array([ids]), "item", source)
    if len(vocabulary) < len(codes):
        order = np.argsort(codes, kind="stable")
        again = order[1:][codes[order][1:] == codes[order][:-1]]
        row = int(again.min())
        earlier = int(np.argmax(codes == codes[row]))
        raise DataError(
            f"{source.at(row)}: the item {quoted(vocabulary[int(codes[row])])} is listed again, as before at "
            f"{source.place(earlier)}. List every item once."
        )
    kind = np.int64 if pa.types.is_integer(vocabulary.type) else np.object_
    return np.array(vocabulary.to_pylist(), dtype=kind)[codes]


def _of_parquet(file: Path, also: str | None) -> tuple[pa.Array, list[str | None]]:
    try:
        with pq.ParquetFile(file) as source:
            names = source.schema_arrow.names
            place, titled = _columns(names, also, file_name(file))
            table = source.read(columns=[names[one] for one in (place, titled) if one is not None])
    except ARROW_ERRORS as error:
        if isinstance(error, DataError):
            raise
        raise DataError(unreadable_message(file, str(error))) from error
    ids = table.column(names[place]).combine_chunks()
    texts: Sequence[object] = [None] * len(table) if titled is None else table.column(names[titled]).to_pylist()
    return ids, [None if text is None else str(text) or None for text in texts]


def _of_text(file: Path, head: str, also: str | None) -> tuple[list[int], pa.Array, list[str | None]]:
    """The line of every item, its id and its title."""
    if problem := not_text(file):
        raise DataError(problem)
    first = next((line for line in head.splitlines() if line.strip()), "")
    mark = max(_DELIMITERS, key=first.count) if any(first.count(one) for one in _DELIMITERS) else ","
    rows = _rows(file, mark)
    number, names = next(rows, (0, []))
    place, titled = 0, 1 if len(names) > 1 else None
    header = also in names or any(name_key(name) in _IDS for name in names)
    if header:
        place, titled = _columns(names, also, file_name(file))
    elif names:
        rows = _again(number, names, rows)
    lines, ids, titles = [], [], []
    for number, row in rows:
        lines.append(number)
        ids.append(row[place].strip() if len(row) > place else "")
        titles.append((row[titled].strip() or None) if titled is not None and len(row) > titled else None)
    if ids and not header and not is_number(ids[0]) and _all_integers(ids[1:]):
        raise DataError(_unknown("no column is", "item", names, file_name(file)))
    return lines, integers_if_canonical(pa.array(ids, pa.string())), titles


def _all_integers(ids: list[str]) -> bool:
    return bool(ids) and pa.types.is_integer(integers_if_canonical(pa.array(ids, pa.string())).type)


def _again(number: int, row: list[str], rows: Iterator[tuple[int, list[str]]]) -> Iterator[tuple[int, list[str]]]:
    yield number, row
    yield from rows


def _rows(file: Path, mark: str) -> Iterator[tuple[int, list[str]]]:
    """Rows that are not empty, each with the line it ends on."""
    with open_bytes(file) as stream, io.TextIOWrapper(stream, encoding="utf-8-sig", newline="") as text:
        if mark == "::":
            yield from ((n, line.rstrip("\r\n").split(mark)) for n, line in enumerate(text, 1) if line.strip())
            return
        try:
            reader = csv.reader(text, delimiter=mark)
            yield from ((reader.line_num, row) for row in reader if row)
        except csv.Error as error:
            raise DataError(unreadable_message(file, str(error))) from error


def _columns(names: Sequence[str], also: str | None, source: str) -> tuple[int, int | None]:
    """The column of ids, and the column of titles if there is one; ids first by the name that ratings use."""
    ids, titles = ([place for place, name in enumerate(names) if name_key(name) in known] for known in (_IDS, _TITLES))
    if also in names:
        ids = [place for place, name in enumerate(names) if name == also]
    elif len(ids) > 1:  # `movieId` says more than `id`
        ids = [place for place in ids if name_key(names[place]) != "id"]
    for role, found in (("item", ids), ("title", titles)):
        if len(found) > 1 or (role == "item" and not found):
            problem = "no column is" if not found else "more than one column could be"
            raise DataError(_unknown(problem, role, names, source))
    return ids[0], titles[0] if titles else None


def _unknown(problem: str, role: str, names: Sequence[str], source: str) -> str:
    return (
        f"{source}: {problem} the {role}; the columns are {quoted_list(names)}. Call the column of ids 'item' and the "
        "column of titles 'title'."
    )
