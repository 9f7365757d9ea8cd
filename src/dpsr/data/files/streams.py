"""The bytes of a text file, decompressed by extension, and its lines.

Row numbers in messages are lines of the file, empty ones included, so that an editor finds them. They are counted
only when there is something to report.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa

from dpsr.data.files.layouts import DOUBLE_COLON, Layout

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
