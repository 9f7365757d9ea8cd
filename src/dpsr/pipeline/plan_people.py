"""Plans where people, or ratings' existence, are protected: what each epsilon would buy, and how many people it takes
for taste to show.

From declared totals nothing is read at all. From a file, on the curator's side, counts and variances are those of the
raw table: the forecast is nearer, and it is not private.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from dpsr.certify.certificate import check_unit
from dpsr.data.raw_statistics import raw_spread
from dpsr.engine.raw import RawRatings
from dpsr.errors import ParameterError
from dpsr.people.forecast import PeopleForecast, Population, forecast, people_for_factors
from dpsr.pipeline.estimator import check_enough
from dpsr.pipeline.plan import check_spread, parse_epsilons, typical_spread
from dpsr.types import Scale
from dpsr.types.item_side import ACTIVITY_BINS, activity_of

NO_TOTALS = (
    "a plan for people needs totals that may be known, --users, --items and --ratings, or a file of ratings on the "
    "curator's side, whose plan is not private."
)


PLANNED = ("rating", "user")
"""Units at which the mask is secret too, so that totals are planned with."""


@dataclass(frozen=True)
class PeoplePlan:
    """Forecasts, and people needed for factors by epsilon (None: more than there are on earth).

    `spread` is the deviation of all ratings and `around` that around a person's level, in rating points; `own_means`
    what people's own means alone would reach. `assumed` if nobody stated the spread, `raw` if a file was read.
    """

    forecasts: tuple[PeopleForecast, ...]
    needed: tuple[float | None, ...]
    people: float
    spread: float
    around: float
    own_means: float
    assumed: bool
    raw: bool

    def rmse(self, one: PeopleForecast) -> float:
        """In rating points."""
        return float(self.around * np.sqrt(one.total))

    def rows(self) -> list[list[str]]:
        """One row of text per epsilon."""
        return [
            [f"{f.epsilon:g}", f"{self.rmse(f):.2f}", f"{self.rmse(f) / self.own_means - 1:+.1%}", *self._taste(f, n)]
            for f, n in zip(self.forecasts, self.needed, strict=True)
        ]

    def _taste(self, one: PeopleForecast, needed: float | None) -> tuple[str, str]:
        return "yes" if one.factors else "no", "–" if needed is None else f"{float(f'{needed:.2g}'):,.0f}"

    def to_dict(self) -> dict[str, Any]:
        """For scripts; parts of the squared error are in squared spreads."""
        rows = zip(self.forecasts, self.needed, strict=True)
        return {
            "forecasts": [{**asdict(f), "rmse": self.rmse(f), "people_for_factors": n} for f, n in rows],
            "people": self.people,
            "spread": self.spread,
            "spread_around_own_level": self.around,
            "spread_assumed": self.assumed,
            "own_means": self.own_means,
            "private": not self.raw,
        }


def plan_people(
    scale: Scale,
    epsilons: str,
    delta: float | None,
    *,
    unit: str = "user",
    ratings: RawRatings | None = None,
    totals: tuple[int | None, int | None, int | None] = (None, None, None),
    spread: float | None = None,
    declared: bool = False,
) -> PeoplePlan:
    """Forecasts for a comma-separated list of budgets, from `totals` (users, items, ratings) or from raw `ratings`.

    `spread` is the standard deviation of all ratings, if its owner knows it; a typical one otherwise.
    """
    if unit not in PLANNED:
        raise ParameterError(f"a plan for people is made for the units {' and '.join(PLANNED)}, found {unit!r}.")
    budgets = parse_epsilons(epsilons)
    for epsilon in budgets:
        check_unit(unit, epsilon, delta, declared)
    assert delta is not None
    check_spread(scale, spread)
    population, around = _of_file(ratings) if ratings is not None else _of_totals(totals, scale, spread)
    found = tuple(forecast(population, epsilon, delta, unit=unit, declared=declared) for epsilon in budgets)
    needed = tuple(people_for_factors(population, epsilon, delta, unit=unit, declared=declared) for epsilon in budgets)
    own, deviation = (around * float(np.sqrt(1 + more)) for more in (found[0].own, population.level_variance))
    raw = ratings is not None
    return PeoplePlan(found, needed, population.people, deviation, around, own, spread is None and not raw, raw)


def _of_file(ratings: RawRatings) -> tuple[Population, float]:
    check_enough(ratings.mask.census)
    mask, raw = ratings.mask, raw_spread(ratings)
    counts = mask.user_counts[mask.user_counts > 0]
    activity = np.bincount(activity_of(counts), minlength=ACTIVITY_BINS).astype(np.float64)
    rated = np.sort(mask.item_counts)[::-1].astype(np.float64)
    return Population(activity, rated[rated > 0], raw.level_variance, raw.effect_variance), raw.spread


def _of_totals(
    totals: tuple[int | None, int | None, int | None], scale: Scale, spread: float | None
) -> tuple[Population, float]:
    users, items, ratings = totals
    if users is None or items is None or ratings is None:
        raise ParameterError(NO_TOTALS)
    if not users <= ratings <= users * items:
        raise ParameterError(
            f"everybody rates at least one item and none twice: {ratings:,} ratings of {users:,} people and {items:,} "
            "items cannot be. Check the totals."
        )
    population = Population.declared(users, items, ratings)
    return population, float((spread or typical_spread(scale)) / np.sqrt(1 + population.level_variance))
