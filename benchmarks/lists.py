"""Lists for every user: ours against the obvious double-precision way and implicit's, on the same made-up factors.

    .venv/bin/python -m benchmarks.lists [--full]

One process, every side warmed up, the same threads. The model is synthetic: 84,000 items with Zipf popularity, factors
as wide as the default pipeline's. A few thousand users are timed and the time for 200,000 is projected; `--full`
computes all of them and writes the file.
"""

from __future__ import annotations

import resource
import sys
import tempfile
from pathlib import Path
from time import perf_counter, process_time

import numpy as np
import pyarrow as pa
from implicit.cpu.topk import topk
from scipy.sparse import csr_matrix

from dpsr.linalg.compiled import n_threads
from dpsr.release.lists.batch import all_lists, write_lists
from dpsr.types import Affinity, Mask, Model, Scale

USERS, ITEMS, RATED, RANK, REACH, TOP = 200_000, 84_000, 160, 25, 9, 10


def made_up(n_users: int, seed: int = 0) -> Model:
    """Factors and affinities of people who rated 160 items each."""
    rng = np.random.default_rng(seed)
    items = np.sort(rng.integers(0, ITEMS // RATED, (n_users, RATED)) + np.arange(RATED) * (ITEMS // RATED), axis=1)
    ids = pa.array(np.arange(n_users)), pa.array(np.arange(ITEMS))
    mask = Mask(*ids, np.arange(n_users + 1) * RATED, items.ravel().astype(np.int32))
    users, sides = rng.standard_normal((n_users, RANK)) / 5, rng.standard_normal((ITEMS, RANK)) / 5
    users[:, -1], sides[:, -1] = 1, 3.5
    popularity = (5.0 + np.arange(ITEMS)) ** -0.9
    affinity = Affinity(0.2 + rng.random((n_users, REACH)), rng.random((ITEMS, REACH)) * popularity[:, None])
    nothing = np.zeros(n_users), np.zeros(ITEMS)
    return Model(mask, Scale(1, 5), users, sides, *nothing, 3.5, 0.8, np.zeros(RANK), np.eye(RANK), affinity=affinity)


def obvious(model: Model, block: int = 128) -> None:
    """Score every item in double precision, hide what was rated, partition."""
    mask = model.mask
    for start in range(0, mask.n_users, block):
        users = np.arange(start, min(start + block, mask.n_users))
        scores = model.scores_of(users)
        rated = slice(mask.indptr[users[0]], mask.indptr[users[-1] + 1])
        scores[mask.users[rated] - start, mask.items[rated]] = -np.inf
        np.argpartition(-scores, TOP, axis=1)


def by_implicit(model: Model) -> None:
    """The library's own top-N by plain factors, without weighing how likely a user is to meet an item."""
    mask = model.mask
    rated = csr_matrix((np.ones(mask.n_ratings, np.float32), mask.items, mask.indptr), shape=mask.shape)
    factors = model.item_factors.astype(np.float32), model.user_factors.astype(np.float32)
    topk(*factors, TOP, filter_query_items=rated, num_threads=n_threads())


def main(arguments: list[str] | None = None) -> None:
    """Print seconds and ratios."""
    model = made_up(2_048)
    sides = {
        "dpsr, weighed": lambda: list(all_lists(model, TOP)),
        "obvious, weighed": lambda: obvious(model),
        "implicit, not weighed": lambda: by_implicit(model),
    }
    list(all_lists(made_up(2), TOP))
    print(f"top {TOP} of {ITEMS:,} items, {model.mask.n_users:,} users, {n_threads()} threads (synthetic)")
    for name, action in sides.items():
        wall, cpu = perf_counter(), process_time()
        action()
        wall, cpu = perf_counter() - wall, process_time() - cpu
        print(f"  {name:24} {wall:7.2f} s, {cpu:7.2f} s of processor; {USERS:,} users: {wall * USERS / 2_048:7.0f} s")
    if "--full" in (arguments or []):
        everyone = made_up(USERS)
        with tempfile.TemporaryDirectory() as place:
            wall, cpu = perf_counter(), process_time()
            path = write_lists(everyone, Path(place) / "recs.parquet", TOP)
            wall, cpu = perf_counter() - wall, process_time() - cpu
            size, peak = path.stat().st_size / 2**20, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(
            f"  all {USERS:,} users, written: {wall:.0f} s, {cpu:.0f} s of processor, "
            f"{size:.0f} MiB; peak {peak:.2f} GiB"
        )


if __name__ == "__main__":
    main(sys.argv[1:])
