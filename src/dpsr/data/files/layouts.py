"""How a text file is laid out, and its bytes and lines.

The layout is decided by the extension and the first row.

    delimiter   the one given; else the first of comma, tab, `::`, semicolon and bar that occurs twice in the first row,
                in the order usual for the extension (`.csv`: comma first; `.tsv`, `.data`: tab first; `.dat`: `::`)
    header      none if the first row is itself a rating: three or four fields, the third a number. The columns are
                then user, item, rating and timestamp, as in MovieLens' `u.data` and `ratings.dat`. Where no rating is
                asked for, two numbers alone are a user and an item

Any other delimiter is never assumed: the error names the one that seems to be used and how to give it.

Files are decompressed by extension. Row numbers in messages are lines of the file, empty ones included, so that an
editor finds them. They are counted only when there is something to report.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa

from dpsr.data.columns import RATING_ROWS, RowKind, is_number
from dpsr.errors import DataError, ParameterError
from dpsr.quoting import quoted

HEADERLESS = ("user", "item", "rating", "timestamp")
DOUBLE_COLON = "::"

_ORDER = {
    ".csv": (",", "\t", DOUBLE_COLON, ";", "|"),
    ".tsv": ("\t", ",", DOUBLE_COLON, ";", "|"),
    ".tab": ("\t", ",", DOUBLE_COLON, ";", "|"),
    ".data": ("\t", ",", DOUBLE_COLON, ";", "|"),
}
_ANY_ORDER = (DOUBLE_COLON, "\t", ",", ";", "|")
_SUSPECTS = (";", "|", "\t", ",", DOUBLE_COLON, " ", ":")


@dataclass(frozen=True)
class Layout:
    """A delimited text file: `leading` empty lines, then `header` (or not), then one rating a row."""

    delimiter: str
    names: tuple[str, ...]
    header: bool
    leading: int

    @property
    def quoted(self) -> bool:
        """Whether `"` protects delimiters; files with `::` come from a world without quotes."""
        return self.delimiter != DOUBLE_COLON


def recognise(
    head: str, suffix: str, *, source: str, delimiter: str | None = None, kind: RowKind = RATING_ROWS
) -> Layout:
    """The layout of a file that begins with `head` (which holds its first row whole)."""
    lines = head.replace("\r\n", "\n").replace("\r", "\n").split("\n")  # splitlines() knows ends that files do not
    leading = next((place for place, line in enumerate(lines) if line), None)
    if leading is None:
        raise DataError(f"{source} is empty. Give a file with a user, an item and a rating in each row.")
    first = lines[leading]
    chosen = _usable(delimiter) if delimiter is not None else _usual(first, suffix, kind.fields - 1)
    fields = _fields(first, chosen)
    if len(fields) < kind.fields:
        raise DataError(_too_few(first, fields, chosen, source, kind))
    header = not _is_data_row(fields)
    return Layout(chosen, tuple(fields) if header else HEADERLESS[: len(fields)], header, leading)


def delimiter_option(delimiter: str) -> str:
    """A delimiter in words a person can type: `delimiter=";"` (or `--delimiter ';'`)."""
    spelt = "\\t" if delimiter == "\t" else delimiter
    return f"delimiter=\"{spelt}\" (or --delimiter '{spelt}')"


def _spelt(delimiter: str) -> str:
    return {"\t": "tabs", " ": "spaces"}.get(delimiter, f"'{delimiter}'")


def _usual(first: str, suffix: str, times: int) -> str:
    order = _ORDER.get(suffix, _ANY_ORDER)
    enough = (mark for least in (2, times) for mark in order if first.count(mark) >= least)
    return next(enough, order[0])


def _usable(delimiter: str) -> str:
    delimiter = "\t" if delimiter == "\\t" else delimiter  # a shell passes the two characters on
    single = len(delimiter) == 1 and delimiter.isascii() and not delimiter.isalnum() and delimiter not in "\r\n\"'.-+\0"
    if not single and delimiter != DOUBLE_COLON:
        raise ParameterError(f"a delimiter is one punctuation mark, a tab, a space or '::', found {quoted(delimiter)}.")
    return delimiter


def _fields(line: str, delimiter: str) -> list[str]:
    if delimiter == DOUBLE_COLON:
        return line.split(delimiter)
    try:
        return next(csv.reader([line], delimiter=delimiter), [])
    except csv.Error:  # a field beyond Python's limit: not a table of ratings, but that is for later to say
        return line.split(delimiter)


def _is_data_row(fields: list[str]) -> bool:
    """A rating by its third field, a number; a pair where both are numbers, since its ids are all there is to see."""
    if len(fields) > len(HEADERLESS):
        return False
    return is_number(fields[2]) if len(fields) > 2 else all(map(is_number, fields))


def _too_few(first: str, fields: list[str], delimiter: str, source: str, kind: RowKind) -> str:
    likely = next((mark for mark in _SUSPECTS if mark != delimiter and len(_fields(first, mark)) >= kind.fields), None)
    if likely is not None:
        return (
            f"{source}, row 1: the fields seem to be separated by {_spelt(likely)} and not by {_spelt(delimiter)}. "
            f"Read it with {delimiter_option(likely)}."
        )
    needed = "a rating needs a user, an item and a value" if kind.needed else "an interaction needs a user and an item"
    return (
        f"{source}: {needed}, the first row has only {len(fields)} of them. "
        f"Give a table with these {'three' if kind.needed else 'two'} columns, "
        "and its delimiter with delimiter=\"...\" (or --delimiter ';')."
    )


BLOCK = 1 << 23
"""Bytes read at a time, and the longest row that can be read."""

UNIT_SEPARATOR = "\x1f"
"""Stands for `::` while Arrow reads, whose delimiters are single bytes; ASCII made it for this, no id contains it."""


def open_bytes(path: Path) -> Any:
    """The decompressed file (`.gz`, `.bz2`, `.zst`, `.lz4`)."""
    return pa.input_stream(str(path), compression="detect")


def open_table(path: Path, layout: Layout) -> Any:
    """The file with a delimiter of one byte."""
    stream = open_bytes(path)
    return io.BufferedReader(_SingleByteDelimiter(stream), BLOCK) if layout.delimiter == DOUBLE_COLON else stream


def blocks(path: Path) -> Iterator[bytes]:
    """The file in large pieces."""
    with open_bytes(path) as stream:
        while block := stream.read(BLOCK):
            yield block


def lines(path: Path) -> Iterator[str]:
    """The lines without their ends, whatever system wrote them; bytes stand for characters."""
    with open_bytes(path) as stream, io.TextIOWrapper(stream, encoding="latin-1", newline=None) as text:
        for line in text:
            yield line.removesuffix("\n")


def records(path: Path, layout: Layout) -> Iterator[tuple[int, int]]:
    """For every record, the header included: the line (from 1) on which it begins, and its number of fields.

    As Arrow reads it: empty lines are skipped, and quotes hide delimiters and line breaks.
    """
    start, n_fields, inside = 0, 0, False
    for number, line in enumerate(lines(path), start=1):
        if not inside:
            if not line:
                continue
            start, n_fields = number, 1
        pieces = line.split('"') if layout.quoted else [line]
        n_fields += sum(piece.count(layout.delimiter) for piece in pieces[inside::2])
        inside ^= len(pieces) % 2 == 0
        if not inside:
            yield start, n_fields
    if inside:
        yield start, n_fields


def line_of_record(path: Path, layout: Layout, record: int) -> int:
    """The line on which a record (from 0, the header is one) begins."""
    begin, _ = next(islice(records(path, layout), record, None), (record + 1, 0))
    return begin


class _SingleByteDelimiter(io.RawIOBase):
    """A stream whose `::` are replaced as they pass, also where a block ends between the colons."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._pending = b""  # a last colon whose twin may come with the next block
        self._ready = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._ready:
            fresh = bytes(self._stream.read(BLOCK))
            block = self._pending + fresh
            if not block:
                return 0
            self._pending = b":" if fresh and (len(block) - len(block.rstrip(b":"))) % 2 else b""
            block = block.removesuffix(self._pending)
            self._ready = memoryview(block.replace(DOUBLE_COLON.encode(), UNIT_SEPARATOR.encode()))
        size = min(len(buffer), len(self._ready))
        buffer[:size], self._ready = self._ready[:size], self._ready[size:]
        return size

    def close(self) -> None:
        self._stream.close()
        super().close()
