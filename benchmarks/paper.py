"""The paper's whole pipeline against implicit's ALS on the raw ratings: what privacy costs in time."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from implicit.als import AlternatingLeastSquares
from numba import get_num_threads
from scipy.sparse import csr_matrix
from threadpoolctl import threadpool_limits

from benchmarks import tables
from benchmarks.registry import Ratio, section
from benchmarks.timing import in_turns
from dpsr import DPSR


@section("paper", "The paper's pipeline against implicit's ALS, 16 factors, 15 iterations (not private)")
def paper(quick: bool) -> Iterator[Ratio]:
    """One ratio a size."""
    for size in tables.sizes(quick):
        sides = {"dpsr": lambda s=size: DPSR.paper(1.0).fit(tables.ratings(s)), "implicit": als(size)}
        seconds = in_turns(sides, rounds=3 if size == "1M" else 1)
        detail = f"dpsr {seconds['dpsr']}, implicit {seconds['implicit']}"
        yield Ratio(f"paper fit {size}", seconds["implicit"].wall / seconds["dpsr"].wall, detail, target=1)


def als(size: str) -> Callable[[], object]:
    """implicit's ALS on a table, with our number of threads."""
    return als_of(tables.by_user(size))


def als_of(matrix: csr_matrix) -> Callable[[], object]:
    """The same on ratings by user."""

    def fit() -> None:
        with threadpool_limits(1, "blas"):  # as its own manual asks
            model = AlternatingLeastSquares(factors=16, iterations=15, random_state=0, num_threads=get_num_threads())
            model.fit(matrix, show_progress=False)

    return fit
