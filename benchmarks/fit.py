"""The default fit against implicit's ALS on one and ten million synthetic ratings; its memory."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

from benchmarks import tables
from benchmarks.memory import watched
from benchmarks.paper import als
from benchmarks.registry import Ratio, section
from benchmarks.timing import in_turns
from dpsr import DPSR

EPSILONS = (1.0, 3.0)
ALLOWED = {"1M": 0.5, "10M": 1.0}
"""Twice implicit's time at a million ratings, no more than it at ten."""


@section("fit", "The default pipeline against implicit's ALS, 16 factors, 15 iterations (not private)")
def fit(quick: bool) -> Iterator[Ratio]:
    """One ratio for each epsilon, and the peak memory of a process of its own."""
    megabytes = peak_memory()
    for size in tables.sizes(quick):
        table, epsilons = tables.ratings(size), EPSILONS if size == "1M" else EPSILONS[:1]
        sides = {f"{e:g}": lambda e=e, t=table: DPSR(e, random_state=0).fit(t) for e in epsilons}
        seconds = in_turns(sides | {"implicit": als(size)}, rounds=2 if size == "1M" and not quick else 1)
        for e in epsilons:
            detail = f"dpsr {seconds[f'{e:g}']}, implicit {seconds['implicit']}"
            ratio = seconds["implicit"].wall / seconds[f"{e:g}"].wall
            yield Ratio(f"default fit {size}, epsilon {e:g}", ratio, detail, target=ALLOWED[size])
    yield Ratio("default fit 1M, peak memory", None, f"{megabytes:.0f} MB, the data and its making included")


def peak_memory() -> float:
    """Peak resident memory of a fresh process that makes the data and fits once, in megabytes."""
    code = "from benchmarks.fit import *; DPSR(3.0, random_state=0).fit(tables.ratings('1M'))"
    with subprocess.Popen([sys.executable, "-c", code]) as process:
        return watched(process) / 1e6
