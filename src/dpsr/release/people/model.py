"""A model of some people from their own ratings and an item side, as `release.lists` ranks any model.

    rating(u, j) = midpoint + half-width x spread x (level_u + w_u0 + effect_j + w_u . F_j)

is a product of a person's vector and an item's. How likely somebody is to meet an item is its popularity.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from dpsr.arrays import AnyInts, Floats, Ints
from dpsr.linalg.own_regression import PeopleRows
from dpsr.types import Affinity, Mask, PersonalModel, Scale
from dpsr.types.item_side import ItemIndex, ItemSide, OwnSide


def own_rows(indptr: Ints, cells: Ints, scale: Scale, values: Floats) -> PeopleRows:
    """Each person's rows by cell; ratings of items that share a cell become their mean, those without a cell go."""
    y = (values - scale.midpoint) / (scale.width / 2)
    return PeopleRows.by_cell(indptr.astype(np.int64), cells, y)


def model_of(
    side: ItemSide,
    index: ItemIndex,
    user_ids: pa.Array,
    own: OwnSide,
    rated: tuple[Ints, AnyInts] | None = None,
) -> PersonalModel:
    """The people `user_ids`, known by their own side, and the items that may be named.

    `rated` (pointers, codes of named items) is left out of lists.
    """
    half = side.scale.width / 2
    gain, m, n = half * side.spread, len(user_ids), len(index.named)
    W, cells = own.coefficients, index.named_cells
    level = side.scale.midpoint + gain * (own.level + W[:, 0])
    users = np.column_stack([level, np.full(m, gain), gain * W[:, 1:]])
    items = np.column_stack([np.ones(n), side.effects[cells], side.features[cells]])
    indptr, seen = (np.zeros(m + 1, dtype=np.int64), np.zeros(0, dtype=np.int32)) if rated is None else rated
    popularity = np.exp(side.log_popularity[cells] - side.log_popularity.max())
    stranger = side.stranger
    overall = float(side.scale.midpoint + gain * (stranger.level[0] + side.mean[0]))
    k = users.shape[1]
    return PersonalModel(
        mask=Mask(user_ids, index.named, np.asarray(indptr, dtype=np.int64), seen.astype(np.int32)),
        scale=side.scale,
        user_factors=users,
        item_factors=items,
        user_means=side.scale.clip(level),
        item_means=side.scale.clip(overall + gain * side.effects[cells]),
        overall=overall,
        residual_variance=gain**2 * side.residual,
        user_mean=np.zeros(k),
        user_covariance=np.zeros((k, k)),
        affinity=Affinity(np.ones((m, 1)), popularity[:, None]),
    )
