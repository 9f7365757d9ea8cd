r"""A likes side whose cells stand in the order of ids: people's own items lie in stretches of it.

That is known on a person's own side alone, so nothing is asked for it and it lies in no folder: places follow from the
ids that may be named and from the released popularity. Of somebody with counts h_b in the stretches b (`places`), n in
all, popularity and taste expect the shares m_b. If their items are drawn from shares P ~ Dirichlet(a m), which differ
from m the more the smaller the mass a is, then

    P[h | a]  =  Gamma(a) / Gamma(a + n)  prod_b  Gamma(a m_b + h_b) / Gamma(a m_b),
    E[P - m | h, a]  =  (h - n m) / (n + a),

and an infinite mass, P = m, is believed with NO_STRETCHES, the five MASSES with the rest. So the mean over masses,
weighed by how likely each makes what this person did, decides how far to follow; whose items are scattered like
everybody's stays with popularity and taste, and so does who has done nothing. For that an item counts whole, in the
stretch that has most of it, for shared-out counts are smoother than draws are. To a score is added

    popularity_j  sum_b tent_b(q_j) d_b,      d_b = Z (h_b - n m_b) E[1 / (n + a) | h] / s_b,

s_b the share of popularity in a stretch and Z m_b that with taste. This is thin, as taste is, and taste comes first: a
stretch that taste explains adds nothing once more.

**Items that many know.** Whoever goes deep into a stretch has rare items of it before more of the popular ones, which
others have anyway; lists are made of popular ones. So what counts are own items among the most popular cells, those
with half of all that people did (`Crowd.met`), and places are shares of that.

**Known gap.** Nobody has an item twice, so that busy people's counts are flatter than draws; taking that into m changed
no list by more than its noise.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import exp, lgamma, log

import numpy as np

from dpsr.arrays import Bools, Floats, Ints
from dpsr.linalg.compiled import kernel
from dpsr.linalg.own_regression import PeopleRows
from dpsr.types.item_side import ItemIndex
from dpsr.types.likes_side import LikesSide
from dpsr.types.places import Tents, places_of

STRETCHES = 10
MASSES = (5.0, 10.0, 20.0, 40.0, 80.0)
NO_STRETCHES = 0.9
"""What is believed before looking at a person: odds of nine to one that ids mean nothing to them."""

KNOWN = 0.5
"""Of all that people did, the part in the cells that count."""

WHOLE = 0.5
"""Of an item, the share in its upper stretch from which on it counts there."""

_LEAST = 0.2
"""Of the share of a stretch, taste leaves at least this."""


@dataclass(frozen=True, eq=False)
class PlacedLikes:
    """Vectors of people and items whose product is a score: popularity, taste and places.

    >>> placed = PlacedLikes(side, index)                                                   # doctest: +SKIP
    >>> placed.people(rows) @ placed.items(index.named_cells).T                             # doctest: +SKIP
    """

    side: LikesSide
    index: ItemIndex

    def people(self, rows: PeopleRows) -> Floats:
        """(1, 1, phi, d) of people whose strengths these are; d = 0 where no own item counts."""
        own = self.side.people(rows)
        counted = self._counted, self._tents.upper_share
        return np.hstack([own, follow_stretches(rows.indptr, rows.cells, *counted, own, *self._expected)])

    def items(self, cells: Ints) -> Floats:
        """popularity (1, offset, exit, tents) of cells; without tents where nothing may be named."""
        tents = Tents(self._tents.lower[cells], self._tents.upper_share[cells]).shares(STRETCHES)
        placed = np.where(self._named[cells, None], tents, 0.0)
        return np.hstack([self.side.items(cells), self.side.popularity[cells, None] * placed])

    @cached_property
    def _named(self) -> Bools:
        named = np.zeros(self.side.n_cells, dtype=bool)
        named[self.index.named_cells] = True
        return named

    @cached_property
    def _weights(self) -> Floats:
        """What people did in the cells that count, zero in others."""
        met = self.side.popularity if self.side.crowd is None else self.side.crowd.met
        order = np.argsort(-met, kind="stable")
        before = np.cumsum(met[order]) - met[order]
        known = order[before < KNOWN * met.sum()]
        weights = np.zeros(len(met))
        weights[known] = met[known]
        return np.where(self._named, weights, 0.0)

    @cached_property
    def _tents(self) -> Tents:
        """Of every cell, by the first of its items that may be named."""
        cells, first = np.unique(self.index.named_cells, return_index=True)
        places = np.zeros(self.side.n_cells)
        places[cells] = places_of(self.index.named.take(first), self._weights[cells])
        return Tents.at(places, STRETCHES)

    @cached_property
    def _counted(self) -> Ints:
        """The lower stretch of cells that count, -1 for others."""
        return np.where(self._weights > 0, self._tents.lower, -1)

    @cached_property
    def _expected(self) -> tuple[Floats, Floats]:
        """What popularity (first row) and each entry of a person's vector add to the shares of stretches.

        Of tents, and of whole items.
        """
        known = np.flatnonzero(self._weights > 0)
        weights = self._weights[known] / max(float(self._weights.sum()), 1e-300)
        rows = self.side.items(known) / self.side.popularity[known, None]
        tents = Tents(self._tents.lower[known], self._tents.upper_share[known])
        whole = Tents(tents.lower, np.where(tents.upper_share >= WHOLE, 1.0, 0.0))
        shared, in_one = (one.shares(STRETCHES) * weights[:, None] for one in (tents, whole))
        return np.ascontiguousarray(rows.T @ shared), np.ascontiguousarray(rows.T @ in_one)


@kernel
def follow_stretches(
    indptr: Ints, cells: Ints, counted: Ints, upper_share: Floats, own: Floats, expected: Floats, expected_whole: Floats
) -> Floats:
    """d of everybody: what the stretches of their own items add to each, from their own rows alone."""
    m, stretches = len(indptr) - 1, expected.shape[1]
    tilts = np.zeros((m, stretches))
    counts, whole = np.empty(stretches), np.empty(stretches)
    for u in range(m):
        counts[:] = 0.0
        whole[:] = 0.0
        for t in range(indptr[u], indptr[u + 1]):
            c = cells[t]
            b = counted[c]
            if b >= 0:
                counts[b] += 1 - upper_share[c]
                counts[b + 1] += upper_share[c]
                whole[b + 1 if upper_share[c] >= WHOLE else b] += 1
        n = whole.sum()
        if n > 0:
            usual = usual_masses(own[u], expected)
            total = usual.sum()
            masses = usual_masses(own[u], expected_whole)
            followed = mean_inverse_mass(whole, masses / masses.sum())
            for b in range(stretches):
                if expected[0, b] > 0:
                    tilts[u, b] = followed * (total * counts[b] - n * usual[b]) / expected[0, b]
    return tilts


@kernel
def usual_masses(own: Floats, expected: Floats) -> Floats:
    """Z m: what popularity and a person's taste expect in every stretch."""
    usual = np.zeros(expected.shape[1])
    for b in range(expected.shape[1]):
        for k in range(len(own)):
            usual[b] += own[k] * expected[k, b]
        usual[b] = max(usual[b], _LEAST * expected[0, b])
    return usual


@kernel
def mean_inverse_mass(counts: Floats, usual: Floats) -> float:
    """E[1 / (n + a) | counts] of the Dirichlet's mass a around the shares `usual`, infinity among them."""
    n = counts.sum()
    weights, found = NO_STRETCHES, 0.0
    for a in MASSES:
        evidence = lgamma(a) - lgamma(a + n)
        for b in range(len(counts)):
            if counts[b] > 0 and usual[b] > 0:
                evidence += lgamma(a * usual[b] + counts[b]) - lgamma(a * usual[b]) - counts[b] * log(usual[b])
        weight = (1 - NO_STRETCHES) / len(MASSES) * exp(min(evidence, 600.0))
        weights += weight
        found += weight / (n + a)
    return found / weights
