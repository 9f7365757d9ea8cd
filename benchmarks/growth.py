"""How the time of a fit grows with ratings, users, items, rank and neighbours, one at a time.

The exponent is the slope between the first and the last point, of time in logs against the varied number in logs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from math import log

from benchmarks import tables
from benchmarks.registry import Ratio, section
from benchmarks.timing import timed
from dpsr import DPSR

N, USERS, ITEMS = 1_000_000, 6_040, 3_706
Fit = Callable[[], object]


@section("growth", f"Time of a fit against its dimensions, around {N:,} ratings of {USERS:,} users and {ITEMS:,} items")
def growth(quick: bool) -> Iterator[Ratio]:
    """A line for each dimension of each pipeline."""
    steps = (1, 2) if quick else (1, 2, 4)
    for name, fit in {"default": default, "paper": paper}.items():
        yield grown(f"{name}, ratings", {N * s // 2: fit(tables.shaped(N * s // 2, (USERS, ITEMS))) for s in steps})
        yield grown(f"{name}, users", {USERS * s: fit(tables.shaped(N, (USERS * s, ITEMS))) for s in steps})
        yield grown(f"{name}, items", {ITEMS * s: fit(tables.shaped(N, (USERS, ITEMS * s))) for s in steps})
    table = tables.ratings("1M")
    yield grown("paper, rank", {d: paper(table, rank=d) for d in (4 * s for s in steps)})
    yield grown("paper, neighbours", {k: paper(table, n_neighbors=k) for k in (10 * s for s in steps)})


def default(table: tables.Ratings) -> Fit:
    """The default fit at an epsilon that always buys symbols, the expensive part."""
    return lambda: DPSR(3.0, random_state=0).fit(table)


def paper(table: tables.Ratings, **settings: int) -> Fit:
    """The paper's fit."""
    return lambda: DPSR.paper(1.0, random_state=0, **settings).fit(table)


def grown(name: str, fits: Mapping[int, Fit]) -> Ratio:
    """The shorter of two runs at each point, and the slope over all of them."""
    seconds = {at: min(timed(fit).wall for _ in range(2)) for at, fit in fits.items()}
    (first, *_, last) = seconds
    slope = log(seconds[last] / seconds[first]) / log(last / first)
    points = ", ".join(f"{at:,}: {wall:.2f} s" for at, wall in seconds.items())
    return Ratio(f"growth, {name}", None, f"{points}; exponent {slope:.2f}")
