"""Made-up people where nobody rates: who did what, drawn from a released likes side.

    n_u              by the noisy numbers of people by activity                                            (`meeting`)
    f_u ~ N(0, I)    own taste, on the axes that were learned
    items            without repetition, in proportion to  propensity_j max(1 + v_j . f_u, 0)              (`meeting`)

v are the loadings of frequent cells, zero elsewhere: which frequent items go together is kept as far as taste was
learned, rare items are met by popularity alone. Every interaction weighs one: how often somebody did the same was told
by no question. The seed is public, as in `people`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpsr.arrays import Floats, Ints
from dpsr.errors import ParameterError
from dpsr.synthesis.meeting import Meetings, items_met, numbers_met, propensities
from dpsr.synthesis.people import Synthesis
from dpsr.types.likes_side import LikesSide

_MOST_WELCOME = 4.0
"""Nobody is more than so many times as fond of an item as everybody is on average."""

_AT_ONCE = 1 << 16
"""Draws whose taste is looked at together: two dozen megabytes."""


@dataclass(frozen=True, eq=False)
class MadeUpLikes(Meetings):
    """Interactions of nobody."""


def make_up_likes(side: LikesSide, asked: Synthesis) -> MadeUpLikes:
    """As many people as asked for; the same side, number and seed give the same people."""
    if side.crowd is None:
        raise ParameterError("people are made up from a likes side that knows how many people do how much.")
    rng, crowd, loadings = np.random.default_rng(asked.seed), side.crowd, side.loadings
    counts = numbers_met(asked.people, crowd.activity, rng)
    tastes = rng.standard_normal((asked.people, loadings.shape[1]))
    place = np.full(side.n_cells, -1, dtype=np.int64)
    place[side.frequent] = np.arange(len(side.frequent))

    def welcome(people: Ints, cells: Ints) -> Floats:
        chance = np.ones(len(cells))
        for start in range(0, len(cells), _AT_ONCE):
            part = slice(start, start + _AT_ONCE)
            known = np.flatnonzero(place[cells[part]] >= 0)
            v = loadings[place[cells[part][known]]]
            chance[start + known] += np.einsum("ia,ia->i", v, tastes[people[part][known]])
        return np.asarray(np.clip(chance / _MOST_WELCOME, 0.0, 1.0))

    p = propensities(crowd.met, crowd.activity, crowd.weights)
    return MadeUpLikes(*items_met(counts, p, rng, welcome if loadings.shape[1] else None))
