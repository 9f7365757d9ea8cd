"""The default fit against implicit's ALS on ten thousand to ten million synthetic ratings; its memory."""

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

EPSILONS = (1.0, 3.0, 10.0)
ALLOWED = {"10k": 0.5, "100k": 0.5, "1M": 0.5, "10M": 1.0}
"""Twice implicit's time up to a million ratings, no more than it at ten."""

ROUNDS = {"10k": 8, "100k": 4, "1M": 2, "10M": 1}
"""How often each side is timed: the shorter it takes, the more often."""


@section("fit", "The default pipeline against implicit's ALS, 16 factors, 15 iterations (not private)")
def fit(quick: bool) -> Iterator[Ratio]:
    """One ratio for each epsilon, and the peak memory of a process of its own."""
    megabytes = peak_memory()
    for size in ("10k", "100k", *tables.sizes(quick)):
        table = tables.ratings(size)
        sides = {f"{e:g}": lambda e=e, t=table: DPSR(e, random_state=0).fit(t) for e in EPSILONS}
        seconds = in_turns(sides | {"implicit": als(size)}, rounds=1 if quick else ROUNDS[size])
        for e in EPSILONS:
            detail = f"dpsr {seconds[f'{e:g}']}, implicit {seconds['implicit']}"
            ratio = seconds["implicit"].wall / seconds[f"{e:g}"].wall
            yield Ratio(f"default fit {size}, epsilon {e:g}", ratio, detail, target=ALLOWED[size])
    yield Ratio("default fit 1M, peak memory", None, f"{megabytes:.0f} MB, the data and its making included")


def peak_memory() -> float:
    """Peak resident memory of a fresh process that makes the data and fits once, in megabytes."""
    code = "from benchmarks.fit import *; DPSR(3.0, random_state=0).fit(tables.ratings('1M'))"
    with subprocess.Popen([sys.executable, "-c", code]) as process:
        return watched(process) / 1e6
