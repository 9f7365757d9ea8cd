r"""What accuracy to expect where people are protected, before anything is asked: from totals alone.

In squared spreads (deviations of a rating around its person's own level), with v the variance of items' effects and V
that of people's levels, somebody with n ratings is predicted with squared error

    (1 - v)  +  what noise and too few ratings leave of v  +  V / (1 + n V / (1 - v))  -  what taste explains,

averaged over ratings. The second term is what the pipeline itself expects when it chooses how to ask (`budget`), the
last one too, where it would ask for taste at all. Noise follows from epsilon and delta.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import sqrt

import numpy as np

from dpsr.arrays import Floats
from dpsr.certify.normal import affordable_squared_mu
from dpsr.people import budget
from dpsr.people.budget import Taste, best_round, expected_taste, factors_pay
from dpsr.people.cells import Cells
from dpsr.people.factors import MOST_CELLS, TASTE, choose_cells
from dpsr.people.levels import LEVEL_VARIANCE, PeopleLevels, Weights
from dpsr.synthesis.meeting import chances_met
from dpsr.types.item_side import ACTIVITY_BINS, SIZES, activity_of

TYPICAL_EFFECTS = 0.18
"""Variance of items' effects in squared spreads, where nobody says."""

NAMES_DELTA = 0.1
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


def forecast(population: Population, epsilon: float, delta: float, *, declared: bool = False) -> PeopleForecast:
    """What the pipeline at the unit `user` would reach; `declared` if the list of items is public."""
    levels, v = population.as_levels(), population.effect_variance
    mu, unit = _mu(epsilon, delta, declared), _unit(levels)
    cells = _cells(population, unit, np.full(len(population.ratings), v))
    spent = budget.LEVELS + budget.ACTIVITY + 2 * budget.COEFFICIENTS + (0.0 if declared else budget.NAMES)
    items = best_round(1 / (mu * sqrt(1 - spent)), levels, cells, unit, 0.0, Taste.none(len(cells.lam))).error
    gain = _taste(population, mu, levels, unit, declared) if population.people * mu > _TOO_FEW else 0.0
    n = SIZES * population.level_variance / (1 - v)
    own = float((levels.ratings * population.level_variance / (1 + n)).sum() / levels.ratings.sum())
    return PeopleForecast(epsilon, 1 - v - gain, own, min(items, v), gain > 0)


def _cells(population: Population, unit: Weights, uncertainty: Floats) -> Cells:
    lam = population.ratings * unit.mean
    zero, doubt = np.zeros(len(lam)), np.full(len(lam), _HIDDEN**2)
    return Cells(zero, uncertainty, zero, doubt, lam, lam)


def _taste(population: Population, mu: float, levels: PeopleLevels, unit: Weights, declared: bool) -> float:
    """What directions of taste are expected to explain; nothing where they would not be asked for."""
    ratings = population.ratings[:MOST_CELLS]
    revealed = choose_cells(ratings, population.people, sqrt(0.5) / (mu * sqrt(budget.MOMENTS)))
    if len(revealed) == 0:
        return 0.0
    believed = population if declared else _with_empty_cells(population)
    cells = _cells(believed, unit, np.full(len(believed.ratings), population.effect_variance))
    told = cells.uncertainty * (cells.reach * mu) ** 2 * budget.FIRST
    cells = replace(cells, uncertainty=cells.uncertainty / (1 + told))
    left = 1 - budget.LEVELS - budget.ACTIVITY - budget.COEFFICIENTS - budget.FIRST
    if not factors_pay(mu, left, levels, cells, unit, _POPULARITY_SLOPE, np.arange(len(cells.lam)), revealed):
        return 0.0
    seen = float((ratings[: len(revealed)] * revealed).sum() / population.ratings.sum())
    return budget.EXPECTED_FACTORS * TASTE * expected_taste(levels, seen, TASTE)[0] * seen


def _with_empty_cells(population: Population) -> Population:
    """Where no list is declared, noise makes cells that nobody rated look as if somebody had."""
    lost = np.full(_EMPTY, _LOST * population.ratings.sum() / _EMPTY)
    return replace(population, ratings=np.concatenate([population.ratings, lost]))


def people_for_factors(
    population: Population, epsilon: float, delta: float, *, declared: bool = False, most: float = 1e9
) -> float | None:
    """How many people of these habits it takes for directions of taste to be asked for, to 2 %; None above `most`."""
    mu = _mu(epsilon, delta, declared)

    def shows(factor: float) -> bool:
        larger = population.times(factor)
        levels = larger.as_levels()
        return larger.people * mu > _TOO_FEW and _taste(larger, mu, levels, _unit(levels), declared) > 0

    low, high = 10 / population.people, most / population.people
    if not shows(high):
        return None
    while high > 1.02 * low:
        middle = sqrt(low * high)
        low, high = (low, middle) if shows(middle) else (middle, high)
    return high * population.people


def _mu(epsilon: float, delta: float, declared: bool) -> float:
    return sqrt(affordable_squared_mu(epsilon, delta if declared else (1 - NAMES_DELTA) * delta))


def _unit(levels: PeopleLevels) -> Weights:
    return Weights.of(levels, 1 + budget.ALPHA**2, 0.0)


def _normal_quantiles(p: Floats) -> Floats:
    """Of the standard normal law, to three digits."""
    grid = np.linspace(-4, 4, 8_001)
    density = np.exp(-0.5 * grid**2)
    return np.interp(p, np.cumsum(density) / density.sum(), grid)
