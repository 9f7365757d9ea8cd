"""Made-up people: tables of nobody, drawn from a released item side, or from a likes side where nobody rates.

    n_u               by the noisy numbers of people by activity                                    (`meeting`)
    items             without repetition, so that each is met as often as its noisy count says      (`meeting`)
    w_u ~ N(m, P)     own level, slopes and tastes
    y_uj              mean level(n_u) + effect_j + w_u . (1, F_j), variance residual + uncertainty_j

A rating is a normal number, rounded to the nearest level and cut at the ends of the scale, which bends its mean. A
table of means is inverted, so that the mean of a rating is what was asked for wherever levels can have it at all; its
variance is, away from the ends.

Which items somebody rates depends on their popularity alone: no question asks which are met together, so the tables
know nothing about it. The seed is public. It makes a table reproducible, which is how anyone can see that nothing but
the item side is in it, and it hides nothing: privacy comes from the noise in the item side.

**Where nobody rates** there is no rating to draw, and which items go together is known:

    f_u ~ N(0, I)     own taste, on the axes that were learned
    items             without repetition, in proportion to  propensity_j max(1 + v_j . f_u, 0)      (`meeting`)

v are the loadings of frequent cells, zero elsewhere: which frequent items go together is kept as far as taste was
learned, rare items are met by popularity alone. Every interaction weighs one: how often somebody did the same was told
by no question.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpsr.arrays import Floats, Ints
from dpsr.errors import ParameterError
from dpsr.synthesis.meeting import MEAN_MET, Meetings, items_met, numbers_met, propensities
from dpsr.types.item_side import Crowd, ItemSide
from dpsr.types.likes_side import LikesSide

MOST_PEOPLE = 100_000_000
USUAL_RATINGS = 2_000_000
"""As many people as there are, noisily, are made up unless told; fewer where they would have more ratings than this."""


_NARROWEST = 0.35
"""Deviation before rounding, in steps between levels: below it means would go up in stairs."""

_WIDTHS, _CENTRES, _POINTS = 8, 241, 801


@dataclass(frozen=True)
class Synthesis:
    """What a table of made-up people follows from, beside the item side."""

    people: int
    seed: int = 0

    def __post_init__(self) -> None:
        if not 1 <= self.people <= MOST_PEOPLE or self.seed < 0:
            raise ParameterError(
                f"people are made up by a number from 1 to {MOST_PEOPLE:,} and a seed that is not negative, found "
                f"{self.people:,} and {self.seed}."
            )


@dataclass(frozen=True, eq=False)
class MadeUpPeople(Meetings):
    """Ratings of nobody; `places` of ratings on the scale."""

    places: Ints


def usual_people(crowd: Crowd) -> int:
    """The noisy number of people, or as many as have USUAL_RATINGS."""
    activity = np.maximum(crowd.activity, 0.0)
    ratings = float(activity @ MEAN_MET) / max(float(activity.sum()), 1e-9)
    return int(np.clip(round(min(crowd.people, USUAL_RATINGS / max(ratings, 1.0))), 1, MOST_PEOPLE))


def planned_ratings(crowd: Crowd, asked: Synthesis) -> int:
    """About how many ratings they will have: at most this, and hardly less."""
    counts = numbers_met(asked.people, crowd.activity, np.random.default_rng(asked.seed))
    return int(np.minimum(counts, int((crowd.met > 0).sum()) or len(crowd.counts)).sum())


def make_up(side: ItemSide, asked: Synthesis) -> MadeUpPeople:
    """As many people as asked for; the same item side, number and seed give the same people."""
    if side.crowd is None:
        raise ParameterError("people are made up from an item side that knows how many people meet what.")
    rng = np.random.default_rng(asked.seed)
    counts = numbers_met(asked.people, side.crowd.activity, rng)
    crowd = side.crowd
    indptr, cells = items_met(counts, propensities(crowd.met, crowd.activity, crowd.weights), rng)
    owners = np.repeat(np.arange(asked.people), np.diff(indptr))
    mean, variance = _ratings(side, np.diff(indptr), owners, cells, rng)
    return MadeUpPeople(indptr, cells, draw_levels(mean, variance, side.scale.n_levels, rng))


def _ratings(
    side: ItemSide, counts: Ints, owners: Ints, cells: Ints, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Mean and variance of every rating, in half-widths around the midpoint."""
    k = len(side.mean)
    root = np.linalg.cholesky(side.covariance + 1e-12 * np.eye(k))
    own = side.mean + rng.standard_normal((len(counts), k)) @ root.T
    y = (side.level_of(counts) + own[:, 0])[owners] + side.effects[cells]
    for a in range(k - 1):
        y += own[owners, a + 1] * side.features[cells, a]
    return side.spread * y, side.spread**2 * (side.residual + side.uncertainty[cells])


def draw_levels(mean: Floats, variance: Floats, n_levels: int, rng: np.random.Generator) -> Ints:
    """One level, 0 to `n_levels` - 1, for each mean and variance; both in half-widths around the midpoint."""
    step = 2 / (n_levels - 1)
    m, v = (mean + 1) / step, variance / step**2  # in levels
    deviation = np.sqrt(np.maximum(v - 1 / 12, _NARROWEST**2))
    widths = np.geomspace(deviation.min(initial=1.0), deviation.max(initial=1.0), _WIDTHS)
    nearest = np.argmin(np.abs(np.log(deviation)[:, None] - np.log(widths)), axis=1)
    centre = np.empty(len(m))
    for w, width in enumerate(widths):
        here = nearest == w
        centres, means = _means(float(width), n_levels)
        centre[here] = np.interp(m[here], means, centres)
    drawn = np.rint(centre + widths[nearest] * rng.standard_normal(len(m)))
    return np.clip(drawn, 0, n_levels - 1).astype(np.int64)


def _means(width: float, n_levels: int) -> tuple[Floats, Floats]:
    """Centres of the normal, and what the mean of the rounded and cut number is at each; both ascending."""
    z = np.linspace(-6, 6, _POINTS)
    p = np.exp(-0.5 * z**2)
    p /= p.sum()
    centres = np.linspace(-3 * width - 1, n_levels + 3 * width, _CENTRES)
    means = np.clip(np.rint(centres[:, None] + width * z), 0, n_levels - 1) @ p
    return centres, np.maximum.accumulate(means)


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
