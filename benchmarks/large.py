"""From a Parquet file to a finished release folder, the command as a curator types it: time, peak memory, growth.

The growth exponent is the slope between the smallest and the largest table, of time in logs against ratings in logs.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from math import log
from pathlib import Path
from time import perf_counter

from benchmarks.memory import watched
from benchmarks.movielens_like import write_ratings
from benchmarks.registry import Ratio, section

SIZES = {"1M": 1_000_000, "10M": 10_000_000, "32M": 32_000_000}
ALLOWED = {"memory": 3.0, "disk": 1.0}
"""Gigabytes a release of 32 million ratings may take, by engine."""

STEEPEST = 1.1


@dataclass(frozen=True)
class Run:
    """One release in a process of its own."""

    seconds: float
    gigabytes: float


@section("large", "dpsr release from Parquet to folder, epsilon = 1: memory, disk (--memory 1GB); targets at 32M")
def large(quick: bool) -> Iterator[Ratio]:
    """Peak memory against what is allowed, and how time grows."""
    with tempfile.TemporaryDirectory() as name:
        folder, sizes = Path(name), ["1M"] if quick else list(SIZES)
        files = {size: write_ratings(SIZES[size], folder / f"{size}.parquet") for size in sizes}
        for engine, allowed in ALLOWED.items():
            release(files["1M"], engine, folder)  # compiles
            runs = {}
            for size in sizes:
                runs[size] = release(files[size], engine, folder)
                detail = f"{runs[size].seconds:.1f} s, peak {runs[size].gigabytes:.2f} GB"
                value = allowed / runs[size].gigabytes if size == "32M" else None
                yield Ratio(f"release {size}, {engine}", value, detail, target=None if value is None else 1)
            if not quick:
                steep = log(runs["32M"].seconds / runs["1M"].seconds) / log(32)
                yield Ratio(f"release, {engine}, growth", STEEPEST / steep, f"exponent {steep:.2f}", target=1)


def release(ratings: Path, engine: str, folder: Path) -> Run:
    """Run `dpsr release` and look at what the system says it took."""
    out = folder / f"{ratings.stem}-{engine}"
    command = [sys.executable, "-m", "dpsr", "release", str(ratings), "--scale", "0.5:5:0.5", "--epsilon", "1"]
    command += ["--out", str(out), "--yes", "--force", "--engine", engine]
    command += ["--memory", "1GB"] if engine == "disk" else []
    began = perf_counter()
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        highest = watched(process)
    if process.returncode:
        raise RuntimeError(f"dpsr release failed with exit code {process.returncode}")
    return Run(perf_counter() - began, highest / 1e9)
