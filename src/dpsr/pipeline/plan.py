"""Plans: what each epsilon would buy, read off the mask. No value is read and nothing is spent.

    expected RMSE = spread * share,    share^2 = cannot be known + too few ratings + privacy

`share` is the error as a part of what the best constant makes. The spread of ratings is private; unless its owner knows
it, a quarter of the scale's width stands for it, which is what rating forms typically show; where there are two levels,
half of it: thumbs that go up p of the time spread by sqrt(p (1 - p)), 0.4 to 0.5 for every p from 0.2 to 0.8.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from dpsr.engine.raw import RawRatings
from dpsr.errors import ParameterError
from dpsr.pipeline.estimator import check_enough
from dpsr.types import Scale
from dpsr.value.allocation import Components, Forecast, forecast
from dpsr.value.design import shown_components


def typical_spread(scale: Scale) -> float:
    """The standard deviation of ratings where nobody says it.

    >>> typical_spread(Scale(1, 5)), typical_spread(Scale(0, 1))
    (1.0, 0.5)
    """
    return scale.width / (2 if scale.n_levels == 2 else 4)


@dataclass(frozen=True)
class Plan:
    """Forecasts, and the spread that turns them into rating points; `assumed` if nobody stated it."""

    forecasts: tuple[Forecast, ...]
    components: Components
    spread: float
    assumed: bool

    def rows(self) -> list[list[str]]:
        """One row of text per epsilon: the error in rating points, as a part of a constant's, and its parts."""
        return [self._row(forecast) for forecast in self.forecasts]

    def _row(self, f: Forecast) -> list[str]:
        total = f.unknowable + f.learning + f.noise
        parts = (f"{part / total:.0%}" for part in (f.unknowable, f.learning, f.noise))
        return [f"{f.epsilon:g}", f"{self.spread * f.share:.2f}", f"{f.share:.0%}", *parts]

    def to_dict(self) -> dict[str, Any]:
        """For scripts; parts of the squared error are in units of a constant's."""
        return {
            "forecasts": [{**f._asdict(), "share": f.share, "rmse": self.spread * f.share} for f in self.forecasts],
            "components": asdict(self.components),
            "spread": self.spread,
            "spread_assumed": self.assumed,
        }


def parse_epsilons(text: str) -> tuple[float, ...]:
    """Budgets from a comma-separated list.

    >>> parse_epsilons("0.5, 1,3")
    (0.5, 1.0, 3.0)
    """
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError as error:
        raise ParameterError(f"epsilons are numbers separated by commas, found {text!r}. Write 0.5,1,3.") from error


def check_spread(scale: Scale, spread: float | None) -> None:
    """A standard deviation that ratings on this scale can have."""
    most = scale.width / 2
    if spread is not None and not 0 < spread <= most:
        raise ParameterError(
            f"the spread is a standard deviation, above 0 and at most {most:g} on this scale, found {spread}."
        )


def plan_table(ratings: RawRatings, epsilons: str, *, spread: float | None = None) -> Plan:
    """Forecasts for a comma-separated list of budgets."""
    budgets = parse_epsilons(epsilons)
    check_enough(ratings.mask.census)
    check_spread(ratings.scale, spread)
    components = shown_components(ratings.mask)
    forecasts = tuple(forecast(ratings.mask, ratings.scale, epsilon, components) for epsilon in budgets)
    return Plan(forecasts, components, spread or typical_spread(ratings.scale), spread is None)
