"""Bytes each kernel must move, over its time, against what memory gives: how far each is from the roof.

    python -m benchmarks.roofline [--quick]

The roof is a triad a = b + s c in numba over arrays far larger than the caches, all threads, counting three words an
element. The bytes of a kernel are what it must read and write once if caches kept nothing it has not just used, by the
formula printed with it. A kernel above its share of the roof reuses the caches; one far below computes, or waits for
single words.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numba
import numpy as np
import numpy.typing as npt

from benchmarks import tables
from benchmarks.timing import in_turns
from dpsr.complete.projections import factors_at_ratings
from dpsr.denoise import blend_with_neighbours
from dpsr.denoise.columns import Lists, centred
from dpsr.denoise.neighbours import SPARE, Neighbours
from dpsr.denoise.proposals import TILE, propose
from dpsr.denoise.verdict import settle
from dpsr.linalg import LowRankPlusSparse
from dpsr.privacy import NoiseSource, calibrated_laplace

Floats = npt.NDArray[np.float64]

K, D = 15, 8
WORDS = 1 << 25


@dataclass(frozen=True)
class Kernel:
    """What runs, how many bytes it must move, and why so many."""

    name: str
    run: Callable[[], object]
    moved: float
    formula: str


@numba.njit(parallel=True, fastmath=True)
def triad(a: Floats, b: Floats, c: Floats) -> None:
    """STREAM's triad."""
    for i in numba.prange(len(a)):
        a[i] = b[i] + 3.0 * c[i]


def bandwidth() -> float:
    """Bytes a second of the triad."""
    a, b, c = np.zeros(WORDS), np.ones(WORDS), np.ones(WORDS)
    return 24 * WORDS / in_turns({"triad": lambda: triad(a, b, c)}, rounds=8)["triad"].wall


def kernels(size: str) -> Iterator[Kernel]:
    """Every kernel of the paper's pipeline, in its order."""
    raw, private = tables.ratings(size), tables.private(size)
    mask, n, threads = private.mask, private.mask.n_ratings, numba.get_num_threads()
    channel, noise = calibrated_laplace(raw.scale, 1.0), NoiseSource.seeded(0)
    yield Kernel("sampler", lambda: channel.sample(raw.levels, noise), 8 * n, "2 level + 2 + 2 bits + 2 symbol")
    columns, lists = centred(private, threads)
    yield Kernel("centred columns", lambda: centred(private, threads), 100 * n, "100 a rating: three sorts, two sums")
    live = len(columns.order)
    proposals = propose(lists, live, K + SPARE, threads)
    visits = tile_visits(lists)
    formula = f"8 a visit of a rating by a tile, {visits / 1e6:.0f} million of them"
    yield Kernel("proposals", lambda: propose(lists, live, K + SPARE, threads), 8 * visits, formula)
    answer = settle(columns, lists, proposals, mask.n_items, K, threads)
    scored = int(mask.item_counts[np.maximum(answer[0], 0)].sum())
    settled = Kernel(
        "verdict",
        lambda: settle(columns, lists, proposals, mask.n_items, K, threads),
        12 * scored,
        "12 a rater of a candidate",
    )
    yield settled
    near = Neighbours(*answer)
    formula = "20 a rating, and 12 for each of K neighbours"
    yield Kernel("blend", lambda: blend_with_neighbours(private, near, beta=0.65), (20 + 12 * K) * n, formula)
    yield from products(size)


def products(size: str) -> Iterator[Kernel]:
    """The kernels of Stage 3."""
    mask, values = tables.private(size).mask, tables.private(size).values
    n, rng = mask.n_ratings, np.random.default_rng(0)
    P, Q = rng.normal(size=(mask.n_users, D)), rng.normal(size=(mask.n_items, D))
    A, lines = LowRankPlusSparse(P, Q, mask.indptr, mask.items, values), 64 * (mask.n_users + mask.n_items)
    yield Kernel("A'A X", lambda: A.gram(Q), 12 * n + 6 * lines, "12 a rating, 6 lines a row and column")
    yield Kernel("A X", lambda: A.times(Q), 12 * n + 4 * lines, "12 a rating, 4 lines a row and column")
    formula = "12 a rating, 2 lines a row and column"
    yield Kernel("low rank at ratings", lambda: factors_at_ratings(mask, P, Q), 12 * n + 2 * lines, formula)


def tile_visits(lists: Lists) -> int:
    """For every user and tile the user rated something of: the ratings up to the end of that tile."""
    within = np.concatenate([np.arange(1, c + 1) for c in lists.last - lists.indptr[:-1]])
    kept = np.concatenate([np.arange(a, b) for a, b in zip(lists.indptr[:-1], lists.last, strict=True)])
    tile = lists.names[kept] // TILE
    final = np.append((tile[1:] != tile[:-1]) | (within[1:] == 1), True)
    return int(within[final].sum())


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.roofline")
    parser.add_argument("--quick", action="store_true", help="one million ratings instead of ten")
    size = "1M" if parser.parse_args().quick else "10M"
    roof = bandwidth()
    print(f"triad {roof / 1e9:.1f} GB/s, {numba.get_num_threads()} threads; {size} synthetic ratings")
    print(f"{'':22}{'ms':>8}{'MB':>9}{'GB/s':>8}{'of triad':>10}   bytes")
    for one in kernels(size):
        seconds = in_turns({one.name: one.run}, rounds=5)[one.name].wall
        rate = one.moved / seconds
        row = f"{one.name:22}{1e3 * seconds:8.1f}{one.moved / 1e6:9.0f}{rate / 1e9:8.1f}{rate / roof:10.0%}"
        print(f"{row}   {one.formula}", flush=True)


if __name__ == "__main__":
    main()
