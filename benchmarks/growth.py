"""How time and memory of a fit grow with ratings, users, items, rank and neighbours, one at a time.

The exponent is the slope between the first and the last point, of time in logs against the varied number in logs.
Memory is what a fit adds at its peak to what its process held before, the ratings among it.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from math import log

from benchmarks import tables
from benchmarks.memory import added
from benchmarks.registry import Ratio, section
from benchmarks.timing import timed
from dpsr import DPSR
from dpsr.pipeline.out_of_core import give_back_freed_memory

N, USERS, ITEMS = 1_000_000, 6_040, 3_706


@dataclass(frozen=True)
class Point:
    """One fit: which pipeline, of how large a table, with which settings. It is written down to be run elsewhere."""

    pipeline: str
    ratings: int = N
    users: int = USERS
    items: int = ITEMS
    settings: dict[str, int] = field(default_factory=dict)

    @property
    def table(self) -> tables.Ratings:
        return tables.shaped(self.ratings, (self.users, self.items))

    def fit(self, table: tables.Ratings) -> object:
        """The default pipeline at an epsilon that always buys symbols, the expensive part; or the paper's."""
        if self.pipeline == "default":
            return DPSR(3.0, random_state=0).fit(table)
        return DPSR.paper(1.0, random_state=0, **self.settings).fit(table)


@section("growth", f"Cost of a fit by dimension, around {N:,} ratings of {USERS:,} users and {ITEMS:,} items")
def growth(quick: bool) -> Iterator[Ratio]:
    """A line for each dimension of each pipeline."""
    steps = (1, 2) if quick else (1, 2, 4)
    for name in ("default", "paper"):
        yield grown(f"{name}, ratings", {N * s // 2: Point(name, ratings=N * s // 2) for s in steps})
        yield grown(f"{name}, users", {USERS * s: Point(name, users=USERS * s) for s in steps})
        yield grown(f"{name}, items", {ITEMS * s: Point(name, items=ITEMS * s) for s in steps})
    yield grown("paper, rank", {d: Point("paper", settings={"rank": d}) for d in (4 * s for s in steps)})
    yield grown("paper, neighbours", {k: Point("paper", settings={"n_neighbors": k}) for k in (10 * s for s in steps)})


def grown(name: str, points: Mapping[int, Point]) -> Ratio:
    """The shorter of two runs at each point and its memory, and the slope of time over all of them."""
    seconds = {at: min(walls(point)) for at, point in points.items()}
    (first, *_, last) = seconds
    slope = log(seconds[last] / seconds[first]) / log(last / first)
    costs = (f"{at:,}: {wall:.2f} s, {memory_of(points[at]):.0f} MB" for at, wall in seconds.items())
    return Ratio(f"growth, {name}", None, f"{'; '.join(costs)}; exponent {slope:.2f}")


def walls(point: Point) -> list[float]:
    """Two runs."""
    work = partial(point.fit, point.table)
    return [timed(work).wall for _ in range(2)]


def memory_of(point: Point) -> float:
    """Megabytes that a fit adds, in a process of its own."""
    code = f"from benchmarks.growth import Point, print_memory; print_memory({point!r})"
    return float(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout)


def print_memory(point: Point) -> None:
    """For `memory_of`; a first fit of few ratings loads compiled code, and memory that is free does not count."""
    give_back_freed_memory()
    Point(point.pipeline, 2_000, 100, 80).fit(tables.shaped(2_000, (100, 80)))
    print(added(partial(point.fit, point.table)) / 1e6)
