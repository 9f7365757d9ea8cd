r"""Where an item stands in the order of ids, and which stretches of that order its place is in.

Ids are rarely random: films are numbered as they come into a database, books by publisher, articles by year
(`id_order`). The place of an item is the share of some weight, as of popularity, that stands before it, with half of
its own:

    q_j  =  (sum of w_i over i before j  +  w_j / 2)  /  sum of w.

The line from 0 to 1 has overlapping stretches, tents around (b + 1/2) / B that add up to one everywhere: an item is in
two of them at most, and half a stretch from either end in one alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from dpsr.arrays import Floats, Ints
from dpsr.types.id_order import IdOrder


def places_of(ids: pa.Array, weights: Floats) -> Floats:
    """q of every id; one without weight stands between those with some.

    >>> places_of(pa.array([3, 1, 2]), np.array([1.0, 2.0, 1.0])).tolist()
    [0.875, 0.25, 0.625]
    """
    order = np.argsort(IdOrder(ids).places(), kind="stable")
    behind = np.cumsum(weights[order])
    places = np.empty(len(ids))
    places[order] = (behind - weights[order] / 2) / max(float(behind[-1]) if len(ids) else 0.0, 1e-300)
    return np.clip(places, 0.0, 1.0)


@dataclass(frozen=True, eq=False)
class Tents:
    """Of every place, the lower of its two stretches and its share in the upper one."""

    lower: Ints
    upper_share: Floats

    @classmethod
    def at(cls, places: Floats, stretches: int) -> Tents:
        """So many stretches, two at least."""
        x = places * stretches - 0.5
        lower = np.clip(np.floor(x), 0, stretches - 2).astype(np.int64)
        return cls(lower, np.clip(x - lower, 0.0, 1.0))

    def shares(self, stretches: int) -> Floats:
        """One row a place: its share in each stretch."""
        rows, found = np.arange(len(self.lower)), np.zeros((len(self.lower), stretches))
        found[rows, self.lower] = 1 - self.upper_share
        found[rows, self.lower + 1] = self.upper_share
        return found
