"""Ratings as levels of the declared scale, weights of interactions as numbers above zero, timestamps as Unix seconds.

A number is written with digits, a decimal point or comma and perhaps an exponent; spaces around it do not count.
`1,000` is refused: it is one to some and a thousand to others. A rating that is missing, not finite or off the scale is
an error with its row; the error never quotes it, because errors are pasted into tickets and a rating is what is
protected; the same holds for weights. Timestamps are numbers, an Arrow time type, or ISO dates with or without a time
of day (in UTC unless they say otherwise), rounded down to whole seconds; other dates are refused, because their reading
would be a guess.
"""

from __future__ import annotations

from typing import NoReturn

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dpsr.arrays import AnyInts
from dpsr.data.codes import ARROW_ERRORS, distinct, missing
from dpsr.errors import DataError, ScaleError
from dpsr.quoting import Source, quoted
from dpsr.types.scale import Scale, off_scale

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
    'every row weigh one with weight="".',
    "timestamp": "Give times as Unix seconds or as ISO dates (2020-01-31 18:00), name another column with "
    'timestamp="..." (or --timestamp COLUMN), or leave times out with timestamp="".',
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
    if not (pa.types.is_string(values.type) or pa.types.is_large_string(values.type)):
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
