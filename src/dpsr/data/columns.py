"""The columns of a table: where they are in a text file, and which of them holds what.

**Which holds what**: user, item, rating or weight, and perhaps a time. Conventional names of columns are found, any
other name is given. Names are compared without case and punctuation, so `userId`, `user_id` and `User-ID` are one name.
If no column or more than one has a conventional name for its part, nothing is guessed: the error lists the columns and
the option to use.

**Where they are** is decided by a file's extension and its first row.

    delimiter   the one given; else the first of comma, tab, `::`, semicolon and bar that occurs twice in the first row,
                in the order usual for the extension (`.csv`: comma first; `.tsv`, `.data`: tab first; `.dat`: `::`)
    header      none if the first row is itself a rating: three or four fields, the third a number. The columns are
                then user, item, rating and timestamp, as in MovieLens' `u.data` and `ratings.dat`. Where no rating is
                asked for, two numbers alone are a user and an item

Any other delimiter is never assumed: the error names the one that seems to be used and how to give it. Files are
decompressed by extension. Row numbers in messages are lines of the file, empty ones included, so that an editor finds
them. They are counted only when there is something to report.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa

from dpsr.errors import DataError, ParameterError
from dpsr.quoting import quoted, quoted_list

CONVENTIONAL = {
    "user": "user userid uid reviewer reviewerid rater raterid customer customerid member memberid",
    "item": "item itemid iid movie movieid film filmid book bookid isbn asin product productid artist artistid "
    "song songid track trackid joke jokeid anime animeid game gameid business businessid restaurant restaurantid "
    "sku article articleid",
    "rating": "rating userrating bookrating ratingvalue starrating score reviewscore stars star value overall",
    "weight": "weight count playcount plays listencount listens quantity qty clicks views visits purchases strength",
    "timestamp": "timestamp time ts unixtime unixtimestamp unixreviewtime ratingtimestamp datetime createdat ratedat",
}
"""Recognised names. `date` is not among them: it is spelt in too many ways, and a time is rarely needed."""


@dataclass(frozen=True)
class RowKind:
    """What a row of a table is besides a user, an item and perhaps a time: the part `value`, and whether it is needed.

    `fields` is the least number of columns such a table has.
    """

    value: str
    needed: bool
    fields: int


RATING_ROWS = RowKind("rating", needed=True, fields=3)
INTERACTION_ROWS = RowKind("weight", needed=False, fields=2)


@dataclass(frozen=True)
class Roles:
    """The position of each column in the table; `timestamp`, and the `value` where it is a weight, may be absent."""

    user: int
    item: int
    value: int | None
    timestamp: int | None

    @property
    def used(self) -> list[int]:
        """The positions in the order user, item, value and timestamp, of those that are there."""
        return [place for place in (self.user, self.item, self.value, self.timestamp) if place is not None]

    def taken(self, shown: Sequence[str], kind: RowKind) -> dict[str, str]:
        """The column of each part as a person is told: `shown` is what each column is called."""
        places = {"user": self.user, "item": self.item, kind.value: self.value, "time": self.timestamp}
        return {part: shown[place] for part, place in places.items() if place is not None}


def find_columns(
    names: Sequence[str],
    *,
    source: str,
    kind: RowKind = RATING_ROWS,
    user: str | None = None,
    item: str | None = None,
    timestamp: str | None = None,
    **value: str | None,
) -> Roles:
    """The column of each part; the value's name is given as `rating=` or `weight=`, as the kind of row has it.

    `""` leaves a part out although a column looks like one, where it may be left out: `timestamp=""`, `weight=""`.
    """
    given = {"user": user, "item": item, **({kind.value: value.get(kind.value)} if kind.needed else {})}
    for role, name in given.items():
        if name is not None:  # a name that is wrong is said before one that is missing
            _place(role, name, names, source)
    absent = [role for role, name in given.items() if name is None and not _matches(role, None, names)]
    if absent and absent != ["user"] and absent != ["item"]:
        raise DataError(_absent(absent, names, source))
    places = {role: _place(role, name, names, source) for role, name in given.items()}
    optional = {"timestamp": timestamp, **({} if kind.needed else {kind.value: value.get(kind.value)})}
    for role, name in optional.items():
        if name != "" and (name is not None or _matches(role, None, names)):
            places[role] = _place(role, name, names, source)
    _refuse_shared(places, names, source)
    return Roles(places["user"], places["item"], places.get(kind.value), places.get("timestamp"))


def unread_rating(names: Sequence[str], roles: Roles) -> str | None:
    """The column that looks like a rating and was not asked for, if there is one."""
    found = [place for place in _matches("rating", None, names) if place not in roles.used]
    return names[found[0]] if found else None


def find_pair(names: Sequence[str], *, source: str, user: str | None, item: str | None) -> tuple[int, int]:
    """The columns of user and item alone, where no rating is needed."""
    places = {role: _place(role, name, names, source) for role, name in (("user", user), ("item", item))}
    _refuse_shared(places, names, source)
    return places["user"], places["item"]


def name_key(name: str) -> str:
    """A name without case and punctuation."""
    return "".join(character for character in name.casefold() if character.isalnum())


def _place(role: str, given: str | None, names: Sequence[str], source: str) -> int:
    matches = _matches(role, given, names)
    if len(matches) == 1:
        return matches[0]
    raise DataError(_complaint(role, given, [names[match] for match in matches], names, source))


def _matches(role: str, given: str | None, names: Sequence[str]) -> list[int]:
    if given is not None:
        return [place for place, name in enumerate(names) if name == given]
    return [place for place, name in enumerate(names) if name_key(name) in CONVENTIONAL[role].split()]


def _complaint(role: str, given: str | None, matches: list[str], names: Sequence[str], source: str) -> str:
    if given is not None:
        problem = f"{'two columns are' if matches else 'no column is'} named {quoted(given)}"
    elif matches:
        problem = f"more than one column could be the {role}: {quoted_list(matches)}"
    else:
        problem = f"no column looks like the {role}"
    left_out = {"timestamp": "times", "weight": "weights"}
    advice = f', or {role}="" (or --{role} "") to leave {left_out[role]} out' if role in left_out else ""
    return f'{source}: {problem}; {_listed(names)}. Name the one to use with {role}="..." (or --{role} COLUMN){advice}.'


def _listed(names: Sequence[str]) -> str:
    """The columns by name; but "4" or "4 stars" may be the first rating of a file without a header: not shown."""
    if any(is_number(name) or name.lstrip(" +-.")[:1].isdigit() for name in names):
        return f"its {len(names)} columns have numbers for names. If the file has no header, add one"
    return f"the columns are {quoted_list(names)}"


def _absent(roles: list[str], names: Sequence[str], source: str) -> str:
    """All that was not found, at once; a table without ratings is told that it may be none."""
    either = " or ".join([", the ".join(roles[:-1]), f"the {roles[-1]}"]) if len(roles) > 1 else f"{roles[0]}"
    python = ", ".join(f'{role}="..."' for role in roles)
    options = " ".join(f"--{role} COLUMN" for role in roles)
    hint = (
        " Clicks, plays and purchases have no rating and need none: Interactions.read (or dpsr release FILE --likes "
        "--unit user --delta 1e-6)."
    )
    return (
        f"{source}: no column looks like the {either}; {_listed(names)}. "
        f"Name what to use with {python} (or {options}).{hint if roles == ['rating'] else ''}"
    )


def _refuse_shared(places: dict[str, int], names: Sequence[str], source: str) -> None:
    taken: dict[int, str] = {}
    for role, place in places.items():
        if place in taken:
            raise DataError(
                f"{source}: the column {quoted(names[place])} is named as {taken[place]} and as {role}. "
                f'Give each its own column with {role}="..." (or --{role} COLUMN); '
                f"{_listed(names)}."
            )
        taken[place] = role


def is_number(field: str) -> bool:
    """Whether a field or a name is spelt like a number, with a decimal point or comma."""
    try:
        float(field.replace(",", "."))
    except ValueError:
        return False
    return True


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
