r"""What is released where nobody rates: popularity of all cells, and how taste moves that of the frequent ones.

Somebody with strengths x over the frequent cells, n = sum x, has

    phi_k    =  entry_k . (x - n centre) / (ridge_k + n gram_k)                  on every axis k
    score_j  =  popularity_j (1 + offset_j + exit_j . phi)      on frequent cells,      popularity_j on others,

and popularity where they did nothing there. x_j = sqrt(weight / own mean weight) inside [1/2, 2], so 1 where all of
somebody's interactions weigh the same. Factors (ridge 1; entry = exit = loadings, turned so that their
second moment under popularity is diagonal, the gram) and the item-item linear model of a low rank plus diagonal matrix
(ridge 0, gram 1) are both of this form, and so is their mean: lists for millions come from two thin factors.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpsr.arrays import Floats, Ints
from dpsr.linalg.compiled import kernel
from dpsr.linalg.own_regression import PeopleRows
from dpsr.types.item_side import Crowd

METHODS = ("popularity", "factors", "item-item", "factors and item-item")


LEAST_STRENGTH, MOST_STRENGTH = 0.5, 2.0
"""Of an interaction, next to its person's own mean: nobody's one favourite drowns the rest of what they did."""


@dataclass(frozen=True, eq=False)
class LikesSide:
    """Everything needed to make a list for anybody from what they did themselves: see the module."""

    popularity: Floats
    frequent: Ints
    centre: Floats
    entry: Floats
    exit: Floats
    offset: Floats
    ridge: Floats
    gram: Floats
    method: str
    crowd: Crowd | None = None
    """How many people there are, how active, and what they meet; None before it was asked."""

    @classmethod
    def of_popularity(cls, popularity: Floats) -> LikesSide:
        """Popularity alone: everybody has the same list."""
        none = np.zeros((0, 1))
        return cls(
            popularity,
            np.zeros(0, dtype=np.int64),
            np.zeros(0),
            none,
            none,
            np.zeros(0),
            np.ones(1),
            np.ones(1),
            METHODS[0],
        )

    @property
    def n_cells(self) -> int:
        return len(self.popularity)

    @property
    def n_axes(self) -> int:
        return self.entry.shape[1] if len(self.frequent) else 0

    @property
    def loadings(self) -> Floats:
        """v of every frequent cell, on axes of taste f ~ N(0, I): entries of the axes that have a ridge."""
        return self.entry[:, self.ridge > 0] if len(self.frequent) else np.zeros((0, 0))

    @cached_property
    def _places(self) -> Ints:
        place = np.full(self.n_cells, -1, dtype=np.int64)
        place[self.frequent] = np.arange(len(self.frequent))
        return place

    def people(self, rows: PeopleRows) -> Floats:
        """(1, 1, phi) of people whose strengths these are, or (1, 0, 0) of somebody who did nothing frequent."""
        sums, entered = _enter(rows.indptr, rows.cells, rows.y, self._places, self.entry)
        met, n = sums > 0, np.maximum(sums, 1e-9)[:, None]
        phi = (entered - n * (self.centre @ self.entry)) / (self.ridge + n * self.gram)
        return np.column_stack([np.ones(len(sums)), met, np.where(met[:, None], phi, 0.0)])

    def items(self, cells: Ints) -> Floats:
        """popularity (1, offset, exit) of cells: a person's score is the product with their row of `people`."""
        place, popularity = self._places[cells], self.popularity[cells]
        taste = np.zeros((len(cells), 1 + self.entry.shape[1]))
        known = place >= 0
        taste[known] = np.column_stack([self.offset, self.exit])[place[known]]
        return popularity[:, None] * np.column_stack([np.ones(len(cells)), taste])


@kernel
def _enter(indptr: Ints, cells: Ints, x: Floats, place: Ints, entry: Floats) -> tuple[Floats, Floats]:
    """Sums of strengths over frequent cells, and of strength times entry."""
    m, k = len(indptr) - 1, entry.shape[1]
    sums, entered = np.zeros(m), np.zeros((m, k))
    for u in range(m):
        for t in range(indptr[u], indptr[u + 1]):
            j = place[cells[t]]
            if j >= 0:
                sums[u] += x[t]
                for a in range(k):
                    entered[u, a] += x[t] * entry[j, a]
    return sums, entered


@kernel
def strengths(indptr: Ints, weights: Floats) -> Floats:
    """sqrt(weight / own mean weight), inside [1/2, 2]; what is no positive number counts as the least.

    Weights are added from the least on: rounding depends on the order, and that of items on what others have.
    """
    x = np.empty(len(weights))
    for u in range(len(indptr) - 1):
        first, last = indptr[u], indptr[u + 1]
        total = 0.0
        for weight in np.sort(weights[first:last]):
            total += weight
        for t in range(first, last):
            ratio = weights[t] * (last - first) / total if total > 0 else 1.0
            if ratio >= MOST_STRENGTH**2:
                x[t] = MOST_STRENGTH
            elif ratio > LEAST_STRENGTH**2:
                x[t] = np.sqrt(ratio)
            else:
                x[t] = LEAST_STRENGTH
    return x
