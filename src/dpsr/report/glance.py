"""What a card shows of the private table, seen in one pass over its blocks: the table may be larger than memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np
import numpy.typing as npt

from dpsr.release.contents import Contents
from dpsr.report.shape import Bin, rating_bins

ROWS = 5


@dataclass(frozen=True)
class Glance:
    """Released ratings by value, their mean and deviation, the first rows (codes of user and item, rating), and the
    items that some users rated."""

    bins: list[Bin]
    mean: float
    deviation: float
    rows: list[tuple[int, int, float]]
    rated: dict[int, npt.NDArray[np.int32]]


def glance(contents: Contents, users: Sequence[int] = ()) -> Glance:
    """One pass; `users` are those whose items are wanted."""
    scale, table = contents.model.scale, contents.table
    bins = rating_bins(np.empty(0), scale)
    total, squares = 0.0, 0.0
    rows: list[tuple[int, int, float]] = []
    rated = {}
    for block in table.scan([contents.ratings]):
        ratings = block.columns[contents.ratings]
        bins = [Bin(a.low, a.high, a.count + b.count) for a, b in zip(bins, rating_bins(ratings, scale), strict=True)]
        away = np.subtract(ratings, scale.midpoint, dtype=np.float64)
        total, squares = total + float(away.sum()), squares + float(away @ away)
        missing = ROWS - len(rows)
        firsts = zip(block.rows[:missing] + block.first, block.items[:missing], ratings[:missing], strict=True)
        rows += [(int(user), int(item), float(rating)) for user, item, rating in firsts]
        for user in users:
            if block.users.start <= user < block.users.stop:
                start, stop = block.indptr[user - block.first : user - block.first + 2]
                rated[user] = block.items[start:stop].copy()
    mean, square = (part / table.census.n_ratings for part in (total, squares))
    return Glance(bins, scale.midpoint + mean, sqrt(max(square - mean**2, 0.0)), rows, rated)
