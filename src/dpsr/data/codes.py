"""A column as codes into its distinct values: what is costly per value is then done once per distinct value.

Rating tables repeat themselves: 25 million rows hold some 160,000 users and ten ratings. Parsing, checking and sorting
happen on those; only the codes are as long as the table.

The vocabulary of ids holds every distinct id once, ascending. Ids are taken as they are: nothing is trimmed or folded.
A vocabulary is int64 (ascending numbers) or string (ascending bytes). Whole floats, a common accident of joins, become
integers as long as a float can tell them apart (2**53). Integers that do not fit in 64 signed bits are kept as strings,
the whole column with them.
"""

from __future__ import annotations

from typing import NoReturn

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dpsr.arrays import AnyInts
from dpsr.errors import DataError
from dpsr.quoting import Source, printable, quoted, without_values

ARROW_ERRORS = (pa.ArrowException, OSError, ValueError, TypeError, KeyError, OverflowError, MemoryError)
"""What pyarrow is known to raise for data it cannot take. Caught around its calls only, never around our own code."""


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
    raise DataError(
        f"{source.at(row)}: the {role} is missing (empty, null or NaN). Fill it in or remove the row, or name another "
        f'column with {role}="..." (or --{role} COLUMN).'
    )


MAX_LENGTH = 1_000
"""Longer ids are an accident (a review text in the id column), and would be carried through every file of a release."""

_CANONICAL_INTEGER = r"^(0|-?[1-9][0-9]{0,18})$"
_LARGEST_EXACT_FLOAT = 2.0**53


def code_ids(column: pa.ChunkedArray, role: str, source: Source) -> tuple[npt.NDArray[np.int64], pa.Array]:
    """The code of every row and the vocabulary it points into; `role` is "user" or "item"."""
    codes, values = distinct(column, role, source)
    used = np.bincount(codes, minlength=len(values)) > 0  # categories may list values that no row has
    _refuse_bad(codes, values, used, role, source)
    places, vocabulary = _ascending(_as_vocabulary(codes, values, used, role, source))
    lookup = np.zeros(len(values), dtype=np.int64)
    lookup[used] = places
    return lookup[codes], vocabulary


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
            f"{source.at(row)}: the {role} id {quoted(text)} has {len(text):,} characters, at most {MAX_LENGTH:,} are "
            f'taken. Check that {role}="..." (or --{role} COLUMN) names the column of ids.'
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
    bad = used & ~((np.abs(numbers) <= _LARGEST_EXACT_FLOAT) & (numbers == np.rint(numbers)))
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
