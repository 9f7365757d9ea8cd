"""The default fit against implicit's ALS on one million synthetic ratings, same threads and process; its memory."""

from __future__ import annotations

import resource
import subprocess
import sys
from time import perf_counter

import numpy as np
import scipy.sparse as sp
from implicit.als import AlternatingLeastSquares
from numba import get_num_threads
from threadpoolctl import threadpool_limits

from dpsr import DPSR, Ratings
from dpsr.data import realistic

EPSILONS = (1.0, 3.0)


def million() -> Ratings:
    """One million synthetic ratings in MovieLens-1M's shape."""
    return realistic(0, n_users=6040, n_items=3706, n_ratings=1_000_000)


def best_of(runs: int, work: object) -> float:
    """The shortest of a few runs."""
    times = []
    for _ in range(runs):
        start = perf_counter()
        work()  # type: ignore[operator]
        times.append(perf_counter() - start)
    return min(times)


def peak_memory() -> float:
    """Peak resident memory of a fresh process that makes the data and fits once, in megabytes."""
    code = "from benchmarks.fit import *; r = million(); DPSR(3.0, random_state=0).fit(r); report()"
    return float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)


def report() -> None:
    """Print this process's peak memory in megabytes."""
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def main() -> None:
    """Print the table."""
    ratings = million()
    mask = ratings.mask
    matrix = sp.csr_matrix((ratings.values.astype(np.float32), mask.items.copy(), mask.indptr.copy()), shape=mask.shape)
    DPSR(3.0, random_state=0).fit(realistic(1))  # compiled and warm

    def peer() -> None:
        with threadpool_limits(1, "blas"):
            model = AlternatingLeastSquares(factors=16, iterations=15, random_state=0, num_threads=get_num_threads())
            model.fit(matrix, show_progress=False)

    peer()
    theirs = best_of(3, peer)
    print(f"\nDefault fit, {len(ratings):,} synthetic ratings, {mask.shape}, {get_num_threads()} threads")
    print(f"{'implicit ALS, 16 factors, 15 iterations (not private)':62}{theirs:7.2f} s")
    for epsilon in EPSILONS:
        ours = best_of(2, lambda e=epsilon: DPSR(e, random_state=0).fit(ratings))  # type: ignore[misc]
        print(f"{f'dpsr, epsilon = {epsilon:g}':62}{ours:7.2f} s{ours / theirs:8.2f} x implicit")
    print(f"{'peak memory of a process that makes the data and fits':62}{peak_memory():7.0f} MB")


if __name__ == "__main__":
    main()
