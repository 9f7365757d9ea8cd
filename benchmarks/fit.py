"""The default fit against implicit's ALS on one million synthetic ratings; its memory."""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Iterator

from benchmarks import tables
from benchmarks.paper import als
from benchmarks.registry import Ratio, section
from benchmarks.timing import in_turns
from dpsr import DPSR

EPSILONS = (1.0, 3.0)


@section("fit", "The default pipeline against implicit's ALS, 16 factors, 15 iterations (not private)")
def fit(quick: bool) -> Iterator[Ratio]:
    """One ratio for each epsilon, and the peak memory of a process of its own."""
    megabytes = peak_memory()
    table = tables.ratings("1M")
    sides = {f"{e:g}": lambda e=e: DPSR(e, random_state=0).fit(table) for e in EPSILONS} | {"implicit": als("1M")}
    seconds = in_turns(sides, rounds=1 if quick else 2)
    for e in EPSILONS:
        detail = f"dpsr {seconds[f'{e:g}']}, implicit {seconds['implicit']}"
        ratio = seconds["implicit"].wall / seconds[f"{e:g}"].wall
        yield Ratio(f"default fit 1M, epsilon {e:g}", ratio, detail, target=1)
    yield Ratio("default fit 1M, peak memory", None, f"{megabytes:.0f} MB, the data and its making included")


def peak_memory() -> float:
    """Peak resident memory of a fresh process that makes the data and fits once, in megabytes."""
    code = "from benchmarks.fit import *; DPSR(3.0, random_state=0).fit(tables.ratings('1M')); report()"
    return float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)


def report() -> None:
    """Print this process's peak memory in megabytes."""
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
