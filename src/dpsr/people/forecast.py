r"""What accuracy to expect where people are protected, before anything is asked: from totals alone.

In squared spreads (deviations of a rating around its person's own level), with v the variance of items' effects and V
that of people's levels, somebody with n ratings is predicted with squared error

    (1 - v)  +  what noise and too few ratings leave of v  +  V / (1 + n V / (1 - v))  -  what taste explains,

averaged over ratings. The second term is what the pipeline itself expects when it chooses how to ask (`budget`), the
last one too, where it would ask for taste at all. Noise follows from epsilon, delta and the unit: what is asked of
people and what is asked of ratings differ in how a rating weighs and in how far the secret moves an answer.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from math import sqrt

import numpy as np

from dpsr.arrays import Floats
from dpsr.certify.normal_price import affordable_squared_mu
from dpsr.certify.one_rating import CLIP, SHRINK, WIDTH, moment_settings, second_moments
from dpsr.certify.people import MOMENT, NAMES_DELTA
from dpsr.people import budget
from dpsr.people.budget import (
    Taste,
    best_round,
    best_shrink,
    expected_taste,
    factors_pay,
    moments_larger,
    rating_weights,
)
from dpsr.people.cells import MOST_CELLS, TASTE, Cells, choose_cells
from dpsr.people.levels import LEVEL_VARIANCE, PeopleLevels, Weights
from dpsr.synthesis import chances_met
from dpsr.types.item_side import ACTIVITY_BINS, SIZES, activity_of

TYPICAL_EFFECTS = 0.18
"""Variance of items' effects in squared spreads, where nobody says."""

_TOO_FEW = 60.0
"""People times mu below which nothing is asked about items."""

_ACTIVITY_DEVIATION, _POPULARITY, _HEAD = 1.1, 0.95, 5.0
"""Of log activity; exponent of Zipf's law, and how many items share its head."""

_HIDDEN, _POPULARITY_SLOPE = 0.45, 0.005
"""Of an item's log popularity, its deviation while it is being learned; mean square of people's slopes on it."""

_LOST, _EMPTY = 0.18, 4_096
"""Of all ratings, the share that seems to lie in empty cells where no list was declared, and in how many."""


@dataclass(frozen=True, eq=False)
class Population:
    """People by octave of activity and ratings of every item, descending; V and v."""

    activity: Floats
    ratings: Floats
    level_variance: float = LEVEL_VARIANCE
    effect_variance: float = TYPICAL_EFFECTS

    @classmethod
    def declared(cls, users: int, items: int, ratings: int) -> Population:
        """Log-normal activity and Zipf's law of popularity, with these totals."""
        z = (np.arange(2_000) + 0.5) / 2_000
        counts = np.exp(_ACTIVITY_DEVIATION * _normal_quantiles(z))
        low, high = 0.0, float(ratings)
        for _ in range(60):
            middle = (low + high) / 2
            enough = np.clip(middle * counts, 1, 0.9 * items).mean() * users >= ratings
            low, high = (low, middle) if enough else (middle, high)
        counts = np.clip(high * counts, 1, max(0.9 * items, 1))
        activity = np.bincount(activity_of(np.round(counts).astype(np.int64)), minlength=ACTIVITY_BINS) * users / 2_000
        p = (_HEAD + np.arange(1, items + 1)) ** -_POPULARITY
        return cls(activity, met_by(activity, p / p.sum(), ratings))

    @property
    def people(self) -> float:
        return float(self.activity.sum())

    def times(self, factor: float) -> Population:
        """As many times the people, of the same habits."""
        return replace(self, activity=factor * self.activity, ratings=factor * self.ratings)

    def as_levels(self) -> PeopleLevels:
        return PeopleLevels(self.people, self.activity, np.zeros(ACTIVITY_BINS), 0.4, self.level_variance)


@dataclass(frozen=True)
class PeopleForecast:
    """Expected squared error in squared spreads and what it is made of; `factors` whether taste would be asked for."""

    epsilon: float
    unknowable: float
    own: float
    items: float
    factors: bool

    @property
    def total(self) -> float:
        return self.unknowable + self.own + self.items


def met_by(activity: Floats, p: Floats, ratings: float) -> Floats:
    """Ratings of items of these propensities, descending, adding up to `ratings`."""
    met = np.zeros(len(p))
    for octave in np.flatnonzero(activity > 0):
        met += activity[octave] * chances_met(int(SIZES[octave]), p)
    return np.sort(met)[::-1] * ratings / met.sum()


def forecast(
    population: Population, epsilon: float, delta: float, *, unit: str = "user", declared: bool = False
) -> PeopleForecast:
    """What the pipeline at the unit `user` or `rating` would reach; `declared` if the list of items is public."""
    levels, v = population.as_levels(), population.effect_variance
    asking, mu = _ASKING[unit](levels), _mu(epsilon, delta, declared)
    spent = budget.LEVELS + budget.ACTIVITY + budget.COEFFICIENTS + (0.0 if declared else budget.NAMES)
    cells = _cells(population, asking.weights, np.full(len(population.ratings), v))
    items = asking.effects_left(cells, mu, 1 - spent)
    gain = _taste(population, mu, asking, declared) if population.people * mu > _TOO_FEW else 0.0
    n = SIZES * population.level_variance / (1 - v)
    own = float((levels.ratings * population.level_variance / (1 + n)).sum() / levels.ratings.sum())
    return PeopleForecast(epsilon, 1 - v - gain, own, min(items, v), gain > 0)


@dataclass(frozen=True, eq=False)
class _AskingPeople:
    """How the pipeline asks where whole people are protected: everybody's vector has length one."""

    people: PeopleLevels

    @property
    def weights(self) -> Weights:
        return Weights.of(self.people, 1 + budget.ALPHA**2, 0.0)

    def effects_left(self, cells: Cells, mu: float, share: float) -> float:
        """The error that scores with so much of mu^2 leave in the effects, per rating."""
        none = Taste.none(len(cells.lam))
        return best_round(1 / (mu * sqrt(share)), self.people, cells, self.weights, 0.0, none).error

    def moments_noise(self, mu: float) -> float:
        """Of second moments, measured as `choose_cells` thinks of them."""
        return sqrt(0.5) / (mu * sqrt(budget.MOMENTS))

    def factors_pay(self, cells: Cells, mu: float, left: float, revealed: Floats, gain: float) -> bool:
        """Whether second moments that reveal so much are worth their share of what is left."""
        order = np.arange(len(cells.lam))
        return factors_pay(mu, left, self.people, cells, self.weights, _POPULARITY_SLOPE, order, revealed)


@dataclass(frozen=True, eq=False)
class _AskingRatings:
    """How it asks where a rating's existence is: every rating is scaled by itself."""

    people: PeopleLevels

    @property
    def weights(self) -> Weights:
        return rating_weights(self.people, 0.0, WIDTH)

    def effects_left(self, cells: Cells, mu: float, share: float) -> float:
        noise = 1 / (mu * sqrt(share))
        return best_shrink(noise, self.people, cells, self.weights, CLIP, WIDTH, SHRINK)[1]

    def moments_noise(self, mu: float) -> float:
        return _moments_sensitivity() / (mu * sqrt(budget.MOMENTS)) / moments_larger(self.people, self.weights)

    def factors_pay(self, cells: Cells, mu: float, left: float, revealed: Floats, gain: float) -> bool:
        later = self.effects_left(cells, mu, left - budget.MOMENTS) - self.effects_left(cells, mu, left)
        return gain >= later


_ASKING: dict[str, type[_AskingPeople] | type[_AskingRatings]] = {"user": _AskingPeople, "rating": _AskingRatings}


@cache
def _moments_sensitivity() -> float:
    """How far one rating moves second moments over as many cells as there may be, |x| <= 1."""
    return sqrt(second_moments({"bound": MOMENT**2, **moment_settings(MOST_CELLS)})) / MOMENT**2


def _cells(population: Population, unit: Weights, uncertainty: Floats) -> Cells:
    lam = population.ratings * unit.mean
    zero, hidden = np.zeros(len(lam)), np.full(len(lam), _HIDDEN**2)
    return Cells(zero, uncertainty, zero, hidden, lam, lam, zero)


def _taste(population: Population, mu: float, asking: _AskingPeople | _AskingRatings, declared: bool) -> float:
    """What directions of taste are expected to explain; nothing where they would not be asked for."""
    levels, ratings = asking.people, population.ratings[:MOST_CELLS]
    revealed = choose_cells(ratings, population.people, asking.moments_noise(mu))
    if len(revealed) == 0:
        return 0.0
    believed = population if declared else _with_empty_cells(population)
    cells = _cells(believed, asking.weights, np.full(len(believed.ratings), population.effect_variance))
    told = cells.uncertainty * (cells.reach * mu) ** 2 * budget.FIRST
    cells = replace(cells, uncertainty=cells.uncertainty / (1 + told))
    left = 1 - budget.LEVELS - budget.ACTIVITY - budget.COEFFICIENTS - budget.FIRST
    seen = float((ratings[: len(revealed)] * revealed).sum() / population.ratings.sum())
    gain = budget.EXPECTED_FACTORS * TASTE * expected_taste(levels, seen, TASTE)[0] * seen
    return gain if asking.factors_pay(cells, mu, left, revealed, gain) else 0.0


def _with_empty_cells(population: Population) -> Population:
    """Where no list is declared, noise makes cells that nobody rated look as if somebody had."""
    lost = np.full(_EMPTY, _LOST * population.ratings.sum() / _EMPTY)
    return replace(population, ratings=np.concatenate([population.ratings, lost]))


def people_for_factors(
    population: Population,
    epsilon: float,
    delta: float,
    *,
    unit: str = "user",
    declared: bool = False,
    most: float = 1e9,
) -> float | None:
    """How many people of these habits it takes for directions of taste to be asked for, to 2 %; None above `most`."""
    mu = _mu(epsilon, delta, declared)

    def shows(factor: float) -> bool:
        larger = population.times(factor)
        asking = _ASKING[unit](larger.as_levels())
        return larger.people * mu > _TOO_FEW and _taste(larger, mu, asking, declared) > 0

    low, high = 10 / population.people, most / population.people
    if not shows(high):
        return None
    while high > 1.02 * low:
        middle = sqrt(low * high)
        low, high = (low, middle) if shows(middle) else (middle, high)
    return high * population.people


def _mu(epsilon: float, delta: float, declared: bool) -> float:
    return sqrt(affordable_squared_mu(epsilon, delta if declared else (1 - NAMES_DELTA) * delta))


def _normal_quantiles(p: Floats) -> Floats:
    """Of the standard normal law, to three digits."""
    grid = np.linspace(-4, 4, 8_001)
    density = np.exp(-0.5 * grid**2)
    return np.interp(p, np.cumsum(density) / density.sum(), grid)
