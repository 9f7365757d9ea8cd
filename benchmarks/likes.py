"""Fits of interactions against implicit's ALS, the closed form of 2,000 items, and memory under a flag."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from implicit.als import AlternatingLeastSquares
from numba import get_num_threads
from threadpoolctl import threadpool_limits

from benchmarks import tables
from benchmarks.memory import watched
from benchmarks.movielens_like import write_ratings
from benchmarks.registry import Ratio, section
from benchmarks.timing import in_turns, timed
from dpsr import DPSR, Interactions
from dpsr.likes.forecast import MOST_CELLS, favour_of
from dpsr.likes.scores import by_items
from dpsr.likes.taste import Moments, learn_taste

EPSILONS = (1.0, 10.0)
FACTORS, ITERATIONS = 64, 15
_SECONDS = 10.0
"""That reading 2,000 cells may take: "seconds"."""

ALLOWED = 1.0
"""Gigabytes for a release on disk, with --memory 1GB."""


@section("likes", "Fits of interactions against implicit's ALS, 64 factors, 15 iterations; closed form; --memory 1GB")
def likes(quick: bool) -> Iterator[Ratio]:
    """One ratio for each size and epsilon, one for the closed form, one for peak memory."""
    for size in tables.sizes(quick):
        rows = Interactions.of_mask(tables.ratings(size).mask, size)
        sides = {f"likes fit {size}, epsilon {e:g}": lambda e=e, r=rows: fitted(e, r) for e in EPSILONS}
        seconds = in_turns(sides | {"implicit": als(rows)}, rounds=1)
        for name in sides:
            detail = f"dpsr {seconds[name]}, implicit {seconds['implicit']}"
            yield Ratio(name, seconds["implicit"].wall / seconds[name].wall, detail, target=1)
    moments = drowned_moments(MOST_CELLS)
    found = timed(lambda: by_items(np.ones(MOST_CELLS), np.arange(MOST_CELLS), moments, learn_taste(moments, 1.0)))
    yield Ratio(f"closed form, {MOST_CELLS:,} cells", _SECONDS / found.wall, str(found), target=1)
    size, n = ("1M", 1_000_000) if quick else ("10M", 10_000_000)
    peak = released(n)
    yield Ratio(f"likes release {size}, disk", ALLOWED / peak, f"peak {peak:.2f} GB of --memory 1GB", target=1)


def fitted(epsilon: float, rows: Interactions) -> DPSR:
    """A fit whose noise repeats: for timing only."""
    return DPSR(epsilon, unit="user", delta=1e-6, random_state=0).fit(rows)


def als(rows: Interactions) -> Callable[[], object]:
    """implicit's ALS on the same interactions, with our number of threads."""
    mask = rows.mask
    parts = np.ones(mask.n_ratings, dtype=np.float32), mask.items.copy(), mask.indptr.copy()
    matrix = sp.csr_matrix(parts, shape=mask.shape)

    def fit() -> None:
        with threadpool_limits(1, "blas"):  # as its own manual asks
            model = AlternatingLeastSquares(
                factors=FACTORS, iterations=ITERATIONS, random_state=0, num_threads=get_num_threads()
            )
            model.fit(matrix, show_progress=False)

    return fit


def drowned_moments(n_cells: int) -> Moments:
    """Second moments of so many cells with eight axes of taste and noise of the size of theirs."""
    rng, p = np.random.default_rng(0), 1 / (20.0 + np.arange(n_cells))
    p /= p.sum()
    favour, people = favour_of(p), 50_000.0
    a = np.sqrt(30 * people) * (p * favour)[:, None] * rng.normal(0, 0.5, (n_cells, 8))
    noise = np.triu(rng.normal(0, 5.0, (n_cells, n_cells)), 1)
    values = a @ a.T + noise + noise.T
    np.fill_diagonal(values, 0.0)
    return Moments(values, 5.0, people, 30 * people, p, favour)


def released(n_rows: int) -> float:
    """Gigabytes that `dpsr release --likes` on disk holds at most."""
    with tempfile.TemporaryDirectory() as name:
        path = write_ratings(n_rows, Path(name) / "likes.parquet")
        command = [sys.executable, "-m", "dpsr", "release", str(path), "--likes", "--epsilon", "10", "--delta", "1e-6"]
        command += ["--out", str(Path(name) / "r"), "--yes", "--engine", "disk", "--memory", "1GB"]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            highest = watched(process)
        if process.returncode:
            raise RuntimeError(f"dpsr release failed with exit code {process.returncode}")
    return highest / 1e9
