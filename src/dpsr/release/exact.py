"""The score a list is ordered by, to the last bit the same however it is computed.

    predicted_uj = A_u . B_j                                    summed in the order of the factors
    score_uj     = predicted_uj                                 without an affinity
                 = max(R_u . S_j, 1e-6) Phi((predicted_uj - overall) / sigma)     with one: see `Model.liked`

A matrix product gives sums whose last bits depend on the library, its threads and where a row stands in the matrix,
and a last bit decides between two equal items. Here every pair is one fixed sequence of multiplications and additions,
element by element, so that one user alone and everybody at once get the same list, and items with equal factors tie.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dpsr.types import Model

Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]


class PairScores(NamedTuple):
    """What pairs are ordered by, and the unclipped ratings predicted for them."""

    scores: Floats
    predicted: Floats


def score_pairs(model: Model, users: Places, items: Places) -> PairScores:
    """Scores of known users and items, one per pair; the two arrays broadcast."""
    predicted = ordered_dots(model.user_factors, users, model.item_factors, items)
    if model.affinity is None:
        return PairScores(predicted, predicted)
    meets = ordered_dots(model.affinity.users, users, model.affinity.items, items)
    return PairScores(model.weigh(predicted, meets), predicted)


def ordered_dots(left: Floats, rows: Places, right: Floats, columns: Places) -> Floats:
    """left[rows] . right[columns], one factor after the other."""
    total = np.zeros(np.broadcast_shapes(rows.shape, columns.shape))
    for factor in range(left.shape[1]):
        total += left[rows, factor] * right[columns, factor]
    return total
