"""A column as codes into its distinct values: what is costly per value is then done once per distinct value.

Rating tables repeat themselves: 25 million rows hold some 160,000 users and ten ratings. Parsing, checking and sorting
happen on those; only the codes are as long as the table.
"""

from __future__ import annotations

from typing import NoReturn

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dpsr.data.quoting import Source, printable, shown
from dpsr.errors import DataError

Codes = npt.NDArray[np.integer]

ARROW_ERRORS = (pa.ArrowException, OSError, ValueError, TypeError, KeyError, OverflowError, MemoryError)
"""What pyarrow is known to raise for data it cannot take. Caught around its calls only, never around our own code."""


def distinct(column: pa.ChunkedArray, role: str, source: Source) -> tuple[Codes, pa.Array]:
    """The code of every row and the values (in no particular order, perhaps with unused or repeated ones).

    Text comes out as string or large_string. A missing value is an error.
    """
    try:
        encoded = _encode(column)
        encoded.validate(full=True)  # files may hold text that is not UTF-8, and codes that point nowhere
        values = _plain_text(encoded.dictionary)
    except ARROW_ERRORS as error:
        raise DataError(
            f"{source.name}: the {role} column of type {shown(column.type)} cannot be used "
            f"({printable(str(error), 60)}). Write it as numbers or as UTF-8 text."
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
