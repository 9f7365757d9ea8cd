"""How a text file is laid out, decided by its extension and its first row.

    delimiter   the one given; else the first of comma, tab and `::` that occurs twice in the first row, in the order
                usual for the extension (`.csv`: comma first; `.tsv`, `.data`: tab first; `.dat`: `::` first)
    header      none if the first row is itself a rating: three or four fields, the third a number. The columns are
                then user, item, rating and timestamp, as in MovieLens' `u.data` and `ratings.dat`

Any other delimiter is never assumed: the error names the one that seems to be used and how to give it.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass

from dpsr.data.quoting import listed, shown
from dpsr.errors import DataError, ParameterError

HEADERLESS = ("user", "item", "rating", "timestamp")
DOUBLE_COLON = "::"

_ORDER = {
    ".csv": (",", "\t", DOUBLE_COLON),
    ".tsv": ("\t", ",", DOUBLE_COLON),
    ".tab": ("\t", ",", DOUBLE_COLON),
    ".data": ("\t", ",", DOUBLE_COLON),
}
_ANY_ORDER = (DOUBLE_COLON, "\t", ",")
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


def recognise(head: str, suffix: str, *, source: str, delimiter: str | None = None) -> Layout:
    """The layout of a file that begins with `head` (which holds its first row whole)."""
    lines = head.replace("\r\n", "\n").replace("\r", "\n").split("\n")  # splitlines() knows ends that files do not
    leading = next((place for place, line in enumerate(lines) if line), None)
    if leading is None:
        raise DataError(f"{source} is empty. Give a file with a user, an item and a rating in each row.")
    first = lines[leading]
    chosen = _usable(delimiter) if delimiter is not None else _usual(first, suffix)
    fields = _fields(first, chosen)
    if len(fields) < 3:
        raise DataError(_too_few(first, fields, chosen, source))
    header = not _is_rating_row(fields)
    return Layout(chosen, tuple(fields) if header else HEADERLESS[: len(fields)], header, leading)


def named(delimiter: str) -> str:
    """A delimiter in words a person can type: `delimiter=";"` (or `--delimiter ';'`)."""
    spelt = "\\t" if delimiter == "\t" else delimiter
    return f"delimiter=\"{spelt}\" (or --delimiter '{spelt}')"


def _spelt(delimiter: str) -> str:
    return {"\t": "tabs", " ": "spaces"}.get(delimiter, f"'{delimiter}'")


def _usual(first: str, suffix: str) -> str:
    order = _ORDER.get(suffix, _ANY_ORDER)
    return next((candidate for candidate in order if first.count(candidate) >= 2), order[0])


def _usable(delimiter: str) -> str:
    delimiter = "\t" if delimiter == "\\t" else delimiter  # a shell passes the two characters on
    single = len(delimiter) == 1 and delimiter.isascii() and not delimiter.isalnum() and delimiter not in "\r\n\"'.-+\0"
    if not single and delimiter != DOUBLE_COLON:
        raise ParameterError(f"a delimiter is one punctuation mark, a tab, a space or '::', found {shown(delimiter)}.")
    return delimiter


def _fields(line: str, delimiter: str) -> list[str]:
    if delimiter == DOUBLE_COLON:
        return line.split(delimiter)
    try:
        return next(csv.reader([line], delimiter=delimiter), [])
    except csv.Error:  # a field beyond Python's limit: not a table of ratings, but that is for later to say
        return line.split(delimiter)


def _is_rating_row(fields: list[str]) -> bool:
    if len(fields) > len(HEADERLESS):
        return False
    try:
        float(fields[2])
    except ValueError:
        return False
    return True


def _too_few(first: str, fields: list[str], delimiter: str, source: str) -> str:
    likely = next((mark for mark in _SUSPECTS if mark != delimiter and len(_fields(first, mark)) >= 3), None)
    if likely is not None:
        return (
            f"{source}, row 1: the fields seem to be separated by {_spelt(likely)} and not by {_spelt(delimiter)}. "
            f"Read it with {named(likely)}."
        )
    return (
        f"{source}: a rating needs a user, an item and a value, the first row has only {listed(fields)}. "
        "Give a table with these three columns, and its delimiter with delimiter=\"...\" (or --delimiter ';')."
    )
