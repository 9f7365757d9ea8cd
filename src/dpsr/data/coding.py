"""Columns as they were found, and as codes and numbers: ids as places in a vocabulary, pairs as cells of a matrix in
one order, ratings as levels, weights, times as Unix seconds.

Rating tables repeat themselves: 25 million rows hold some 160,000 users and ten ratings. So a column becomes codes into
its distinct values, and what is costly per value (parsing, checking, sorting) is done once per distinct value.

**Ids** are taken as they are: nothing is trimmed or folded. The vocabulary holds every distinct id once, as int64
(ascending numbers) or string (ascending bytes). Whole floats, a common accident of joins, become integers as long as a
float can tell them apart (below 2**53). Integers that do not fit in 64 signed bits are kept as strings, the whole
column with them.

**Cells.** With users and items coded by the sorted order of their ids, the rating of user u for item j belongs to cell

    c = u * n + j,

and tables are sorted by c: compressed rows, items ascending within a user. The order depends on the set of ratings
only, so nothing about the order of the input rows survives. Cells and row numbers are packed into one int64 and sorted
as numbers, which is several times faster than sorting row numbers by cell and stable for free.

**Numbers** are written with digits, a decimal point or comma and perhaps an exponent; spaces around them do not count.
`1,000` is refused: it is one to some and a thousand to others. A rating that is missing, not finite or off the scale is
an error with its row; the error never quotes it, because errors are pasted into tickets and a rating is what is
protected; the same holds for weights. Timestamps are numbers, an Arrow time type, or ISO dates with or without a time
of day (in UTC unless they say otherwise), rounded down to whole seconds; other dates are refused, because their reading
would be a guess.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dpsr.arrays import AnyInts, Ints
from dpsr.data.columns import Roles
from dpsr.errors import DataError, ScaleError
from dpsr.quoting import Source, printable, quoted, quoted_id, without_values
from dpsr.types.coordinates import Scale, off_scale

ARROW_ERRORS = (pa.ArrowException, OSError, ValueError, TypeError, KeyError, OverflowError, MemoryError)
"""What pyarrow is known to raise for data it cannot take. Caught around its calls only, never around our own code."""


@dataclass(frozen=True, eq=False)
class RatingColumns:
    """Columns of equal length as they were found, and where they were found.

    `ratings` are the values, the weights where the rows are interactions. `unread` names a column that looks like a
    rating and was not asked for.
    """

    users: pa.ChunkedArray
    items: pa.ChunkedArray
    ratings: pa.ChunkedArray
    timestamps: pa.ChunkedArray | None
    source: Source
    unread: str | None = None

    @classmethod
    def of(cls, columns: Sequence[pa.ChunkedArray], roles: Roles, source: Source, unread: str | None = None) -> Self:
        """The columns in the order of `roles.used`; every row weighs one where no weight is given."""
        found = dict(zip(roles.used, columns, strict=True))
        values = _ones(len(columns[0])) if roles.value is None else found[roles.value]
        times = None if roles.timestamp is None else found[roles.timestamp]
        return cls(found[roles.user], found[roles.item], values, times, source, unread)


def _ones(n: int) -> pa.ChunkedArray:
    """n times one, in a byte each."""
    return pa.chunked_array([pa.DictionaryArray.from_arrays(np.zeros(n, dtype=np.int8), pa.array([1.0]))])


def distinct(column: pa.ChunkedArray, role: str, source: Source) -> tuple[AnyInts, pa.Array]:
    """The code of every row and the values (in no particular order, perhaps with unused or repeated ones).

    Text comes out as string or large_string. A missing value is an error.
    """
    try:
        encoded = _encode(column)
        encoded.validate(full=True)  # files may hold text that is not UTF-8, and codes that point nowhere
        values = _plain_text(encoded.dictionary)
    except ARROW_ERRORS as error:
        raise DataError(
            f"{source.name}: the {role} column of type {quoted(column.type)} cannot be used "
            f"({printable(without_values(error), 60)}). Write it as numbers or as UTF-8 text."
        ) from error
    _refuse_missing(encoded, values, role, source)
    return encoded.indices.to_numpy(zero_copy_only=False), values


def _encode(column: pa.ChunkedArray) -> pa.DictionaryArray:
    encoded = column.unify_dictionaries() if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    combined = encoded.combine_chunks()
    return combined.chunk(0) if isinstance(combined, pa.ChunkedArray) else combined


def _plain_text(values: pa.Array) -> pa.Array:
    """Binary and view types as text: few of Arrow's functions know them."""
    kind = values.type
    is_bytes = pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind)
    is_view = pa.types.is_string_view(kind) or pa.types.is_binary_view(kind)
    return values.cast(pa.large_string()) if is_bytes or is_view else values


def _refuse_missing(encoded: pa.DictionaryArray, values: pa.Array, role: str, source: Source) -> None:
    if not encoded.indices.null_count and not values.null_count:
        return
    absent = encoded.indices.is_null().to_numpy(zero_copy_only=False)
    codes = encoded.indices.fill_null(0).to_numpy(zero_copy_only=False)
    if values.null_count:
        absent = absent | values.is_null().to_numpy(zero_copy_only=False)[codes]
    if absent.any():
        missing(role, int(np.argmax(absent)), source)


def missing(role: str, row: int, source: Source) -> NoReturn:
    """The one sentence for a value that is not there."""
    without = ', or leave times out with timestamp="" (or --timestamp "")' if role == "timestamp" else ""
    raise DataError(
        f"{source.at(row)}: the {role} is missing (empty, null or NaN). Fill it in or remove the row, or name another "
        f'column with {role}="..." (or --{role} COLUMN){without}.'
    )


MAX_LENGTH = 1_000
"""Longer ids are an accident (a review text in the id column), and would be carried through every file of a release."""

_CANONICAL_INTEGER = r"^(0|-?[1-9][0-9]{0,18})$"
_FIRST_SHARED_FLOAT = 2.0**53
"""Of whole numbers: the next one becomes this float as well."""


def code_ids(column: pa.ChunkedArray, role: str, source: Source) -> tuple[npt.NDArray[np.int64], pa.Array]:
    """The code of every row and the vocabulary it points into; `role` is "user" or "item"."""
    codes, values = distinct(column, role, source)
    used = np.bincount(codes, minlength=len(values)) > 0  # categories may list values that no row has
    _refuse_bad(codes, values, used, role, source)
    places, vocabulary = _ascending(_as_vocabulary(codes, values, used, role, source))
    lookup = np.zeros(len(values), dtype=np.int64)
    lookup[used] = places
    return lookup[codes], vocabulary


def code_cells(columns: RatingColumns) -> tuple[Ints, pa.Array, pa.Array]:
    """The cell u * n + j of every row, and the ids of users and items."""
    cells, user_ids = code_ids(columns.users, "user", columns.source)
    items, item_ids = code_ids(columns.items, "item", columns.source)
    cells *= len(item_ids)
    cells += items  # columns of tens of millions of rows: each is let go as soon as it is used
    return cells, user_ids, item_ids


def canonical_order(cells: Ints, n_cells: int) -> tuple[Ints, Ints]:
    """Rows sorted by cell, earlier rows first within a cell, and their cells; `cells` itself may be sorted."""
    if bool((cells[1:] > cells[:-1]).all()):
        return np.arange(len(cells)), cells
    bits = len(cells).bit_length()
    if n_cells.bit_length() + bits > 63:
        order = np.argsort(cells, kind="stable")
        return order, cells[order]
    cells <<= bits
    cells |= np.arange(len(cells))
    cells.sort()
    order = cells & ((1 << bits) - 1)
    cells >>= bits
    return order, cells


def integers_if_canonical(texts: pa.Array) -> pa.Array:
    """int64 if every text is the usual spelling of one, else the texts: "007" and "7" stay two ids."""
    if not pc.all(pc.match_substring_regex(texts, _CANONICAL_INTEGER)).as_py():
        return texts
    try:
        return texts.cast(pa.int64())
    except pa.ArrowInvalid:  # nineteen digits that do not fit
        return texts


def _refuse_bad(codes: AnyInts, values: pa.Array, used: npt.NDArray[np.bool_], role: str, source: Source) -> None:
    """Missing, empty and overlong ids, the earliest row first."""
    if not _is_text(values.type):
        return
    lengths = pc.binary_length(values).to_numpy(zero_copy_only=False)  # bytes bound characters, and cost nothing
    suspects = np.flatnonzero(used & ((lengths == 0) | (lengths > MAX_LENGTH)))
    bad = np.zeros(len(values), dtype=bool)
    for suspect in suspects:  # characters are counted for the few that might be too long
        bad[suspect] = lengths[suspect] == 0 or len(values[int(suspect)].as_py()) > MAX_LENGTH
    if bad.any():
        row = int(np.argmax(bad[codes]))
        text = values[int(codes[row])].as_py()
        if not text:
            missing(role, row, source)
        raise DataError(
            f"{source.at(row)}: the {role} id {quoted_id(text)} has {len(text):,} characters, at most {MAX_LENGTH:,} "
            f'are taken. Check that {role}="..." (or --{role} COLUMN) names the column of ids.'
        )


def _as_vocabulary(
    codes: AnyInts, values: pa.Array, used: npt.NDArray[np.bool_], role: str, source: Source
) -> pa.Array:
    kept = values.filter(pa.array(used))
    if _is_text(kept.type):
        return kept.cast(pa.string())
    if pa.types.is_integer(kept.type):
        try:
            return kept.cast(pa.int64())
        except pa.ArrowInvalid:  # unsigned and beyond 2**63
            return kept.cast(pa.string())
    if pa.types.is_floating(kept.type):
        return _whole(codes, values, used, role, source)
    raise DataError(
        f"{source.name}: {role} ids are integers or strings, found a column of type {quoted(kept.type)}. "
        f'Convert it to strings, or name another column with {role}="..." (or --{role} COLUMN).'
    )


def _whole(codes: AnyInts, values: pa.Array, used: npt.NDArray[np.bool_], role: str, source: Source) -> pa.Array:
    numbers = values.cast(pa.float64()).to_numpy(zero_copy_only=False)
    bad = used & ~((np.abs(numbers) < _FIRST_SHARED_FLOAT) & (numbers == np.rint(numbers)))
    if bad.any():
        row = int(np.argmax(bad[codes]))
        if np.isnan(numbers[codes[row]]):
            missing(role, row, source)
        raise DataError(
            f"{source.at(row)}: the {role} id {numbers[codes[row]]:.17g} is not a whole number that a float "
            "holds exactly. Give ids as integers or strings."
        )
    return pa.array(numbers[used].astype(np.int64))


def _ascending(values: pa.Array) -> tuple[npt.NDArray[np.int64], pa.Array]:
    """The sorted distinct values, and the place of each given value among them."""
    order = pc.sort_indices(values)
    ordered = values.take(order)
    new = np.ones(len(values), dtype=bool)
    if len(values) > 1:
        new[1:] = pc.not_equal(ordered[1:], ordered[:-1]).to_numpy(zero_copy_only=False)
    places = np.empty(len(values), dtype=np.int64)
    places[order.to_numpy(zero_copy_only=False)] = np.cumsum(new) - 1
    return places, ordered.filter(pa.array(new))


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


_DECIMAL_COMMA = r"^([+-]?[0-9]+),([0-9]{1,2}|[0-9]{4,})$"
_ISO_DATE = (
    r"^[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,9})?)?)?(Z|[+-][0-9]{2}(:?[0-9]{2})?)?$"
)
_NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_NOT_FINITE = r"^(?i)[+-]?(nan|inf|infinity)$"
_LATEST = 2.0**62

_ADVICE = {
    "rating": 'Correct it, or name the column of ratings with rating="..." (or --rating COLUMN).',
    "weight": 'Correct it or remove the row, name the column of weights with weight="..." (or --weight COLUMN), or let '
    'every row weigh one with weight="" (or --weight "").',
    "timestamp": "Give times as Unix seconds or as ISO dates (2020-01-31 18:00), name another column with "
    'timestamp="..." (or --timestamp COLUMN), or leave times out with timestamp="" (or --timestamp "").',
}


def code_ratings(column: pa.ChunkedArray, scale: Scale, source: Source) -> npt.NDArray[np.uint16]:
    """The level of every rating."""
    codes, texts = distinct(column, "rating", source)
    values = _numbers(codes, texts, "rating", source)
    levels, on_scale = scale.locate(values)
    bad = ~on_scale[codes]
    if bad.any():
        row = int(np.argmax(bad))
        if not np.isfinite(values[codes[row]]):
            _refuse("a finite number", "rating", row, source)
        raise ScaleError(off_scale(scale, where=source.at(row)))
    return levels[codes]


def read_weights(column: pa.ChunkedArray, source: Source) -> npt.NDArray[np.float64]:
    """The weight of every interaction, above zero and finite."""
    codes, texts = distinct(column, "weight", source)
    values = _numbers(codes, texts, "weight", source)
    bad = ~(np.isfinite(values) & (values > 0))[codes]
    if bad.any():
        _refuse("a finite number above zero", "weight", int(np.argmax(bad)), source)
    return values[codes]


def read_times(column: pa.ChunkedArray, source: Source) -> npt.NDArray[np.int64]:
    """Unix seconds of every rating."""
    if not column.null_count:
        try:  # nearly always: one pass, no detour over distinct values, of which there are as many as rows
            return np.asarray(_seconds(column).to_numpy(), dtype=np.int64)
        except ARROW_ERRORS:
            pass
    spelt = _iso_seconds(column)
    if spelt is not None:
        return spelt
    codes, texts = distinct(column, "timestamp", source)
    values = np.floor(_numbers(codes, texts, "timestamp", source))
    bad = ~(np.abs(values) < _LATEST)[codes]
    if bad.any():
        row = int(np.argmax(bad))
        _refuse("a time in Unix seconds", "timestamp", row, source, found=str(values[codes[row]]))
    return values.astype(np.int64)[codes]


def _seconds(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Integers as they are, time types in seconds; anything else is left to the careful way."""
    if pa.types.is_timestamp(column.type) or pa.types.is_date(column.type):
        return column.cast(pa.timestamp("s", getattr(column.type, "tz", None)), safe=False).cast(pa.int64())
    if pa.types.is_floating(column.type):
        raise TypeError("fractions are rounded down, and NaN is refused with its row")
    if pa.types.is_temporal(column.type):
        raise TypeError("a time of day or a duration has whole numbers behind it that are no Unix seconds")
    return column.cast(pa.int64())


def _iso_seconds(column: pa.ChunkedArray) -> npt.NDArray[np.int64] | None:
    """Unix seconds if every one is an ISO date that a calendar has, all with a zone or all without."""
    try:
        texts = pc.utf8_trim_whitespace(column.cast(pa.string()))
        if texts.null_count or not pc.all(pc.match_substring_regex(texts, _ISO_DATE)).as_py():
            return None
    except ARROW_ERRORS:
        return None
    for unit, per_second in (("us", 10**6), ("ns", 10**9)):
        for zone in (None, "UTC"):
            try:
                moments = texts.cast(pa.timestamp(unit, zone)).cast(pa.int64()).to_numpy()
            except ARROW_ERRORS:
                continue
            return np.asarray(moments // per_second, dtype=np.int64)
    return None


def _numbers(codes: AnyInts, values: pa.Array, role: str, source: Source) -> npt.NDArray[np.float64]:
    """Distinct values as floats; text that is no number is refused with the first row that holds it."""
    if not _is_text(values.type):
        return _as_floats(values, role, source)
    texts = pc.replace_substring_regex(pc.utf8_trim_whitespace(values), _DECIMAL_COMMA, r"\1.\2")
    good = pc.match_substring_regex(texts, _NUMBER).fill_null(True).to_numpy(zero_copy_only=False)
    bad = ~good[codes]
    if bad.any():
        row = int(np.argmax(bad))
        _refuse_text(texts[int(codes[row])].as_py(), role, row, source)
    parsable = pc.if_else(pa.array(good), texts, pa.scalar(None, texts.type))  # unused categories may be anything
    return np.asarray(parsable.cast(pa.float64()).to_numpy(zero_copy_only=False), dtype=np.float64)


def _as_floats(values: pa.Array, role: str, source: Source) -> npt.NDArray[np.float64]:
    try:
        if pa.types.is_temporal(values.type):
            raise TypeError("a time is not a number")
        return np.asarray(values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False), dtype=np.float64)
    except ARROW_ERRORS as error:
        raise DataError(
            f"{source.name}: the {role} column has type {quoted(values.type)}, numbers are needed. {_ADVICE[role]}"
        ) from error


def _refuse_text(text: str, role: str, row: int, source: Source) -> NoReturn:
    if not text:
        missing(role, row, source)
    finite = not pc.match_substring_regex(pa.scalar(text), _NOT_FINITE).as_py()
    comma = finite and text.replace(",", "", 1).isdecimal()
    _refuse("a number" if finite else "a finite number", role, row, source, found=text, comma=comma)


def _refuse(
    needed: str, role: str, row: int, source: Source, *, found: str | None = None, comma: bool = False
) -> NoReturn:
    """Say which row it is. What stands there is quoted if it is a time, and not if it is a rating or a weight."""
    hint = "Write it without a comma: it is one to some and a thousand to others. " if comma else ""
    what = f"timestamp {quoted(found)}" if role == "timestamp" else f"the {role}"
    raise DataError(f"{source.at(row)}: {what} is not {needed}. {hint}{_ADVICE[role]}")
