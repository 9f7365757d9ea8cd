"""Predictions for a list of pairs, and what each of them rests on.

basis          prediction
model          both are in the release: the model's prediction
item mean      the user is not: what the average user is predicted to give the item
user mean      the item is not: what the user is predicted to give the average item
overall mean   neither is
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dpsr.release.atomic import atomic_table
from dpsr.release.release import Release

BASES = ("model", "item mean", "user mean", "overall mean")


def predict_pairs(release: Release, pairs: pa.RecordBatch) -> pa.Table:
    """user, item, prediction and basis, one row per pair, in the order given."""
    users = _codes(pairs["user"], release.mask.user_codes)
    items = _codes(pairs["item"], release.mask.item_codes)
    basis = pa.DictionaryArray.from_arrays(pa.array(((users < 0) + 2 * (items < 0)).astype(np.int8)), pa.array(BASES))
    predictions = pa.array(release.model.predict(users, items))
    columns = {
        "user": pairs["user"],
        "item": pairs["item"],
        "prediction": predictions,
        "basis": basis.cast(pa.string()),
    }
    return pa.table(columns)


def predict_all(release: Release, batches: Iterable[pa.RecordBatch]) -> pa.Table:
    """Predictions for batches of pairs as one table."""
    return pa.concat_tables(_pieces(release, batches))


def write_predictions(
    release: Release, batches: Iterable[pa.RecordBatch], path: Path, *, overwrite: bool = False
) -> int:
    """Predictions for batches of pairs as one file, whole or not at all; how many pairs that were."""
    pieces = _pieces(release, batches)
    first, total = next(pieces), 0
    with atomic_table(path, first.schema, overwrite=overwrite) as rows:
        for piece in chain([first], pieces):
            rows.write_table(piece)
            total += len(piece)
    return total


def _pieces(release: Release, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """One table per batch; an empty one if there are none, so that the columns are there."""
    empty = pa.record_batch({name: pa.array([], pa.string()) for name in ("user", "item")})
    pieces = iter(batches)
    for batch in chain([next(pieces, empty)], pieces):
        yield predict_pairs(release, batch)


def _codes(column: pa.Array, lookup: Callable[[pa.Array], npt.NDArray[np.int64]]) -> npt.NDArray[np.int64]:
    """The code of every row, -1 for an unknown or missing id: each distinct id is looked up once."""
    encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    places = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    codes = np.append(lookup(encoded.dictionary), -1)
    return codes[places]
