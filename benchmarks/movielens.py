"""Synthetic ratings in the shapes of MovieLens, fast enough for tens of millions.

    n_u        ratings of user u, log-normal, at most half the items
    P[u rates j]  ~  popularity_j / (1 + exp(-p_u.q_j)),   popularity log-normal, without replacement
    stars      a_u + b_j + p_u.q_j / 2 + noise, cut at the quantiles of MovieLens

A user's ratings depend on the seed and the user alone (splitmix64), so users are drawn in parallel and the table does not
depend on the threads. Every figure from it is labelled synthetic.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from numba import njit, prange

from dpsr import Ratings, Scale
from dpsr.types import Mask

Floats = npt.NDArray[np.float64]

SHAPES = {"1M": (6_040, 3_706, 1_000_000), "10M": (69_878, 10_677, 10_000_000), "32M": (200_000, 84_000, 32_000_000)}
"""Users, items, ratings of MovieLens 1M, 10M and 32M."""

_CUTS = np.array([-1.55, -0.95, -0.15, 0.77])
_RANK = 6


@cache
def ratings(shape: str, seed: int = 0) -> Ratings:
    """Whole stars from 1 to 5 in one of `SHAPES`; the number of ratings is met to a few per mille."""
    return synthetic(*SHAPES[shape], seed=seed)


def synthetic(m: int, n: int, n_ratings: int, *, seed: int) -> Ratings:
    """The same for any shape."""
    rng = np.random.default_rng(seed)
    p, q = (rng.standard_normal((size, _RANK)) / _RANK**0.25 for size in (m, n))
    kindness, quality = 0.45 * rng.standard_normal(m), 0.5 * rng.standard_normal(n)
    popularity = np.exp(1.35 * rng.standard_normal(n) + 0.7 * quality)
    indptr = np.concatenate([[0], np.cumsum(_activity(rng, m, n, n_ratings))]).astype(np.int64)
    items, levels = np.empty(indptr[-1], np.int32), np.empty(indptr[-1], np.uint16)
    _draw(indptr, np.cumsum(popularity / popularity.sum()), p, q, kindness, quality, _CUTS, seed, items, levels)
    user_ids, item_ids = (pa.array(np.arange(1, size + 1)) for size in (m, n))
    return Ratings(Mask(user_ids, item_ids, indptr, items), levels, Scale(1, 5))


def _activity(rng: np.random.Generator, m: int, n: int, n_ratings: int) -> npt.NDArray[np.int64]:
    weights, most = np.exp(1.05 * rng.standard_normal(m)), max(n // 2, -(-2 * n_ratings // m))
    factor = n_ratings / weights.sum()
    for _ in range(30):  # what the cap takes away is shared out
        counts = np.clip(np.rint(factor * weights), 1, min(most, n))
        factor *= n_ratings / counts.sum()
    return counts.astype(np.int64)


@njit(cache=True)  # type: ignore[untyped-decorator]
def _next(state):  # type: ignore[no-untyped-def]
    """Splitmix64: the next state, and a number in [0, 1)."""
    state += np.uint64(0x9E3779B97F4A7C15)
    z = state
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    return state, (z >> np.uint64(11)) * 2.0**-53


@njit(cache=True)  # type: ignore[untyped-decorator]
def _one_user(state, chosen, cumulative, p, q, seen):  # type: ignore[no-untyped-def]
    """Fill `chosen` with distinct items, ascending; returns the state."""
    found = 0
    while found < len(chosen):
        state, x = _next(state)
        j = min(np.searchsorted(cumulative, x), len(cumulative) - 1)
        state, x = _next(state)
        if not seen[j] and x * (1 + np.exp(-(p * q[j]).sum())) < 1:
            seen[j] = True
            chosen[found] = j
            found += 1
    for j in chosen:
        seen[j] = False
    chosen.sort()
    return state


@njit(cache=True, parallel=True)  # type: ignore[untyped-decorator]
def _draw(indptr, cumulative, p, q, kindness, quality, cuts, seed, items, levels):  # type: ignore[no-untyped-def]
    parts = 64
    for part in prange(parts):
        seen = np.zeros(len(cumulative), np.bool_)
        for u in range(part, len(indptr) - 1, parts):
            state = np.uint64(seed) * np.uint64(0xD1342543DE82EF95) + np.uint64(u) * np.uint64(0x2545F4914F6CDD1D)
            chosen = items[indptr[u] : indptr[u + 1]]
            state = _one_user(state, chosen, cumulative, p[u], q, seen)
            for c in range(len(chosen)):
                state, a = _next(state)
                state, b = _next(state)
                noise = np.sqrt(-2 * np.log(1 - a)) * np.cos(2 * np.pi * b)
                score = kindness[u] + quality[chosen[c]] + 0.5 * (p[u] * q[chosen[c]]).sum() + 0.8 * noise
                levels[indptr[u] + c] = np.searchsorted(cuts, score / 1.15)
