"""A model of some people from what they did and a likes side, as `release.lists` ranks any model.

A score is a product of a person's vector and an item's (`types.likes_side`): how popular the item is with somebody like
them, next to the most popular item of all with a stranger. It is no rating and has no scale.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from dpsr.arrays import AnyInts, Floats, Ints
from dpsr.linalg.own_regression import PeopleRows
from dpsr.types import Mask, PersonalModel, Scale
from dpsr.types.item_side import ItemIndex
from dpsr.types.likes_side import LikesSide, strengths

UNCLIPPED = Scale(-1e9, 1e9, step=1e9)
"""Wider than any score."""


def own_rows(indptr: Ints, cells: Ints, weights: Floats) -> PeopleRows:
    """Each person's strengths by cell; of items that share a cell, their mean; those without a cell go."""
    pointers = np.asarray(indptr, dtype=np.int64)
    return PeopleRows.by_cell(pointers, cells, strengths(pointers, np.asarray(weights, dtype=np.float64)))


def model_of(
    side: LikesSide, index: ItemIndex, user_ids: pa.Array, rows: PeopleRows, done: tuple[Ints, AnyInts] | None = None
) -> PersonalModel:
    """The people `user_ids` and the items that may be named; `done` (pointers, codes of named items) is left out."""
    users, items = side.people(rows), side.items(index.named_cells)
    m, k = users.shape
    indptr, codes = (np.zeros(m + 1, dtype=np.int64), np.zeros(0, dtype=np.int32)) if done is None else done
    return PersonalModel(
        mask=Mask(user_ids, index.named, np.asarray(indptr, dtype=np.int64), codes.astype(np.int32)),
        scale=UNCLIPPED,
        user_factors=users,
        item_factors=items,
        user_means=np.zeros(m),
        item_means=items[:, 0],
        overall=0.0,
        residual_variance=1.0,
        user_mean=np.zeros(k),
        user_covariance=np.zeros((k, k)),
    )
