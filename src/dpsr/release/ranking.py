"""From scores to a list somebody can read."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dpsr.errors import ParameterError
from dpsr.types import Model

Floats = npt.NDArray[np.float64]


class Recommendations(NamedTuple):
    """Items for one person, best first, with their predicted ratings.

    The order may weigh how likely the person is to meet an item at all; the scores are ratings on the scale.
    """

    items: list[Any]
    scores: Floats


def best_items(model: Model, scores: Floats, predicted: Floats, rated: npt.ArrayLike, n: int) -> Recommendations:
    """The `n` unrated items of highest score; equal scores keep the order of the items."""
    if n < 1:
        raise ParameterError(f"n must be at least 1, found {n}. Ask for the number of items you want to show.")
    allowed = np.ones(len(scores), dtype=bool)
    allowed[np.asarray(rated, dtype=np.int64)] = False
    open_items = np.flatnonzero(allowed)
    order = open_items[np.argsort(-scores[open_items], kind="stable")[:n]]
    return Recommendations(model.mask.item_ids.take(pa.array(order)).to_pylist(), model.scale.clip(predicted[order]))
