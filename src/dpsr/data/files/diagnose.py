"""Why Arrow refused a text file, in one sentence with the row: looked for afterwards, at leisure.

Arrow's own messages differ between versions and may quote the file at any length, so the cause is found again here.
"""

from __future__ import annotations

import codecs
from itertools import chain
from pathlib import Path

from dpsr.data.coding import ARROW_ERRORS
from dpsr.data.columns import BLOCK, Layout, blocks, lines, records
from dpsr.errors import DataError
from dpsr.quoting import file_name, printable, quoted, without_values


def refusal_of_text(path: Path, layout: Layout, reason: str) -> DataError:
    """The error to raise: wrong number of fields, not UTF-8, an endless row, or Arrow's own reason cut short."""
    try:
        cause = _ragged(path, layout) or not_text(path) or _endless(path)
    except ARROW_ERRORS as error:  # the file ends in the middle of a compressed block, or vanished
        cause, reason = None, str(error)
    return DataError(cause or unreadable_message(path, reason))


def unreadable_message(path: Path, reason: str) -> str:
    """The one sentence for a file that gives no rows, for a reason only Arrow knows."""
    return (
        f"{file_name(path)} cannot be read ({printable(without_values(reason), 60)}). Check that it is complete and "
        "what its name says, and copy or export it again."
    )


def _ragged(path: Path, layout: Layout) -> str | None:
    expected = len(layout.names)
    for row, n_fields in records(path, layout):
        if n_fields != expected:
            return (
                f"{file_name(path)}, row {row}: found {n_fields} fields, expected {expected} as in the first row. "
                f"Correct or remove the row, or check the delimiter, which was taken to be {quoted(layout.delimiter)}."
            )
    return None


def not_text(path: Path) -> str | None:
    """Bytes that are not UTF-8, decoded block by block as Python's decoder allows."""
    decoder, offset, row = codecs.getincrementaldecoder("utf-8")(), 0, 1
    for block in chain(blocks(path), [b""]):
        pending = decoder.getstate()[0]
        try:
            decoder.decode(block, final=not block)
        except UnicodeDecodeError as error:
            place = offset - len(pending) + error.start
            row += (pending + block).count(b"\n", 0, error.start)
            return (
                f"{file_name(path)}, row {row}: the bytes at offset {place:,} are not UTF-8. Save the file as UTF-8 "
                "(for example: iconv -f LATIN1 -t UTF-8)."
            )
        row += block.count(b"\n")
        offset += len(block)
    return None


def _endless(path: Path) -> str | None:
    for number, line in enumerate(lines(path), start=1):
        if len(line) >= BLOCK // 2:
            return (
                f"{file_name(path)}, row {number}: the row has {len(line):,} characters and cannot be a rating. "
                'Check for a missing line break or an unclosed quote (").'
            )
    return None
