"""Synthetic ratings shaped like MovieLens, fast: log-normal activity, Zipf popularity, low-rank tastes, half stars.

python -m benchmarks.movielens_like 32e6 ratings.parquet
"""

from __future__ import annotations

import sys
from pathlib import Path

import numba
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

SHAPES = {
    10_000: (200, 1_000),
    100_000: (610, 9_724),
    1_000_000: (6_040, 3_706),
    10_000_000: (69_878, 10_677),
    32_000_000: (200_000, 84_000),
}
"""Users and items of MovieLens latest-small, 1M, 10M and 32M, roundly; the smallest is made up."""

_FACTORS = 6
_ROWS = 1 << 21


def write_ratings(
    n_ratings: int, path: Path, *, shape: tuple[int, int] | None = None, taste: float = 0.35, seed: int = 0
) -> Path:
    """A Parquet file of user, item, rating, timestamp with close to `n_ratings` rows, user by user.

    `taste` is the deviation of every factor on either side, in stars; noise has 0.75.
    """
    shape = shape or SHAPES.get(n_ratings) or (n_ratings // 150, max(2, n_ratings // 600))
    rng = np.random.default_rng(seed)
    counts = activity(rng, n_ratings, *shape)
    popularity = np.cumsum(1 / (np.arange(shape[1]) + 20.0) ** 1.05)
    popularity /= popularity[-1]
    p, q = rng.normal(0, taste, (shape[0], _FACTORS)), rng.normal(0, taste, (shape[1], _FACTORS))
    p[:, 0], q[:, 0] = rng.normal(0, 0.4, shape[0]), 1.0
    q[:, 1], p[:, 1] = rng.normal(0, 0.45, shape[1]), 1.0
    names = rng.permutation(shape[1]).astype(np.int32)
    writer, edges = None, np.searchsorted(np.cumsum(counts), np.arange(0, counts.sum() + _ROWS, _ROWS))
    for first, last in zip(edges[:-1], np.append(edges[1:-1], shape[0]), strict=True):
        users, items, ratings = _block(int(first), counts[first:last], popularity, p[first:last], q, seed)
        times = 1_500_000_000 + (users.astype(np.int64) * 7_919 + np.arange(len(users)) * 60) % 100_000_000
        rows = pa.table({"user": users, "item": names[items] + 1, "rating": ratings, "timestamp": times})
        writer = writer or pq.ParquetWriter(path, rows.schema)
        writer.write_table(rows)
    if writer is not None:
        writer.close()
    return path


def activity(rng: np.random.Generator, n_ratings: int, n_users: int, n_items: int) -> npt.NDArray[np.int64]:
    """Ratings of each user: at least 20, log-normal, adding up to about `n_ratings`."""
    weights = rng.lognormal(0, 1.1, n_users)
    low, high = 0.0, float(n_ratings)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if np.clip(middle * weights, 20, n_items // 3).sum() < n_ratings else (low, middle)
    return np.clip(high * weights, 20, n_items // 3).astype(np.int64)


@numba.njit(cache=True)
def _block(first, counts, popularity, p, q, seed):  # type: ignore[no-untyped-def]
    np.random.seed(seed * 1_000_003 + first)
    total = counts.sum()
    users, items = np.empty(total, np.int32), np.empty(total, np.int32)
    ratings = np.empty(total, np.float32)
    seen = np.full(len(popularity), -1, np.int32)
    at = 0
    for u in range(len(counts)):
        made = 0
        while made < counts[u]:
            j = np.searchsorted(popularity, np.random.random())
            if j >= len(popularity) or seen[j] == u:
                continue
            seen[j] = u
            score = 3.5 + 0.75 * np.random.normal()
            for f in range(p.shape[1]):
                score += p[u, f] * q[j, f]
            users[at], items[at] = first + u + 1, j
            ratings[at] = min(max(np.round(2 * score) / 2, 0.5), 5.0)
            at += 1
            made += 1
    return users, items, ratings


if __name__ == "__main__":
    write_ratings(int(float(sys.argv[1])), Path(sys.argv[2]))
