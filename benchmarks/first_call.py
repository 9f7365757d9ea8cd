"""What the first call costs: importing, compiling the paper's stages, and reading them from the cache afterwards."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.registry import Ratio, section

ROOT = Path(__file__).parent.parent
FITS = {"the paper's": "DPSR.paper(1.0)", "the default": "DPSR(1.0)"}
CODE = (
    "from time import perf_counter as now; a = now(); from dpsr import DPSR; b = now();"
    "from dpsr.data import realistic; r = realistic(0); c = now(); {fit}.fit(r); print(b - a, now() - c)"
)


@section("first", "First fit of 20,000 ratings in a fresh process")
def first_call(quick: bool) -> Iterator[Ratio]:
    """Seconds to import, to fit with nothing compiled, and to fit with the kernels cached."""
    for name, fit in FITS.items():
        with tempfile.TemporaryDirectory() as cache:
            (_, cold), (imported, cached) = (run(fit, cache) for _ in range(2))
        detail = f"import {imported:.2f} s, first fit {cold:.1f} s to compile, {cached:.2f} s from the cache"
        yield Ratio(f"first call, {name} pipeline", None, detail)


def run(fit: str, cache: str) -> list[float]:
    """Seconds to import and to fit in a fresh process with that cache of compiled kernels."""
    surroundings = os.environ | {"NUMBA_CACHE_DIR": cache}
    command = [sys.executable, "-c", CODE.format(fit=fit)]
    done = subprocess.run(command, cwd=ROOT, env=surroundings, capture_output=True, text=True, check=True)
    return [float(word) for word in done.stdout.split()]
