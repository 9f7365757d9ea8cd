"""Fits that protect people, or that a rating exists, against implicit's ALS, one and ten million synthetic ratings."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks import tables
from benchmarks.paper import als
from benchmarks.registry import Ratio, section
from benchmarks.timing import in_turns
from dpsr import DPSR

EPSILONS = (1.0, 10.0)
ALLOWED = {"1M": 0.5, "10M": 1.0}
"""Twice implicit's time at a million ratings, no more than it at ten."""


@section("people", "Fits at the units user and rating against implicit's ALS, 16 factors, 15 iterations (not private)")
def people(quick: bool) -> Iterator[Ratio]:
    """One ratio for each unit and epsilon."""
    for size in tables.sizes(quick):
        table = tables.ratings(size)
        sides = {
            f"{unit} fit {size}, epsilon {e:g}": lambda u=unit, e=e, t=table: fitted(u, e, t)
            for unit in ("user", "rating")
            for e in EPSILONS
        }
        seconds = in_turns(sides | {"implicit": als(size)}, rounds=2 if size == "1M" and not quick else 1)
        for name in sides:
            detail = f"dpsr {seconds[name]}, implicit {seconds['implicit']}"
            yield Ratio(name, seconds["implicit"].wall / seconds[name].wall, detail, target=ALLOWED[size])


def fitted(unit: str, epsilon: float, table: object) -> DPSR:
    """A fit whose noise repeats: for timing only."""
    return DPSR(epsilon, unit=unit, delta=1e-6, random_state=0).fit(table)
