"""How far predictions are from raw ratings: the curator's own figure, **not private**."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from dpsr.arrays import Floats
from dpsr.types.mask import Ids
from dpsr.types.raw import RawRatings


def root_mean_square_error(ratings: RawRatings, predict: Callable[[Ids, Ids], Floats]) -> float:
    """RMSE of `predict(users, items)` on ratings that it has not seen."""
    mask = ratings.mask
    users, items = mask.user_ids.take(pa.array(mask.users)), mask.item_ids.take(pa.array(mask.items))
    return float(np.sqrt(np.mean((predict(users, items) - ratings.values) ** 2)))
