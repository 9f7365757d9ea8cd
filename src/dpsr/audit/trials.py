"""A trial: a few small data sets that are neighbours, released over and over by the real mechanism.

What comes out of one release is turned into a label. `run` releases every data set many times, counts labels, and
bounds epsilon from below (`events`). Data sets are rows of rating levels; two are neighbours when one level differs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import permutations
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dpsr.arrays import Levels
from dpsr.audit.events import Counts, Evidence, best_bound
from dpsr.engine.raw import RawRatings, RawTable
from dpsr.privacy.noise import NoiseSource
from dpsr.types import Mask, Scale

Labels = npt.NDArray[np.int64]
Observe: TypeAlias = Callable[[Levels, NoiseSource], Labels]

_CHUNK = 1 << 20
_PILOT = 0.25


@dataclass(frozen=True)
class Trial:
    """`observe` releases each row of a table of levels as a data set of its own and returns a label for each.

    `claim` is the epsilon that is put to the test; `runs` is how often each data set is released.
    """

    name: str
    claim: float
    datasets: tuple[tuple[int, ...], ...]
    observe: Observe
    n_labels: int
    runs: int
    delta: float = 0.0


def run(trial: Trial, noise: NoiseSource, *, alpha: float) -> Evidence:
    """A lower bound on the epsilon of what `trial` observes, at confidence 1 - alpha."""
    pilot_runs = int(_PILOT * trial.runs)
    pilot = np.array([_count(trial, row, pilot_runs, noise) for row in trial.datasets])
    fresh = np.array([_count(trial, row, trial.runs - pilot_runs, noise) for row in trial.datasets])
    return best_bound(pilot, fresh, neighbours(trial.datasets), alpha=alpha, delta=trial.delta)


def neighbours(datasets: Sequence[tuple[int, ...]]) -> list[tuple[int, int]]:
    """Every ordered pair of data sets that differ in one rating."""
    return [
        (a, b)
        for a, b in permutations(range(len(datasets)), 2)
        if sum(x != z for x, z in zip(datasets[a], datasets[b], strict=True)) == 1
    ]


def one_rating(n_levels: int, most: int = 40) -> tuple[tuple[int, ...], ...]:
    """One rating at every level; of a very fine scale `most` levels evenly spread, the ends among them."""
    levels = np.unique(np.linspace(0, n_levels - 1, min(n_levels, most)).round().astype(int))
    return tuple((int(level),) for level in levels)


def two_ratings(n_levels: int) -> tuple[tuple[int, ...], ...]:
    """Two ratings, each at an end of the scale: noise that two ratings share shows in pairs only."""
    return tuple((x, z) for x in (0, n_levels - 1) for z in (0, n_levels - 1))


def crowds(n_levels: int, size: int) -> tuple[tuple[int, ...], ...]:
    """One rating at either end, before a crowd at the low end, the second level, or the high end: the mean moves."""
    places = sorted({0, 1, n_levels - 1})
    return tuple((own, *(place,) * (size - 1)) for place in places for own in (0, n_levels - 1))


def as_table(levels: Levels, scale: Scale) -> RawRatings:
    """Rows of levels as one rating table: a user a row, an item a column, every cell rated."""
    return RawRatings(_full_mask(*levels.shape), np.ascontiguousarray(levels).ravel(), scale)


def one_by_one(levels: Levels, scale: Scale) -> Iterator[RawTable]:
    """A table for every row, of one user each; rows that are equal share theirs, since nobody writes into it."""
    known: dict[bytes, RawTable] = {}
    for row in levels:
        table = known.get(row.tobytes())
        if table is None:
            table = known[row.tobytes()] = RawTable.of(as_table(row[None], scale))
        yield table


def alone(levels: Levels, scale: Scale) -> RawRatings:
    """One rating a row, each of a user and of an item that have no other."""
    n = len(levels)
    ids = pa.array(np.arange(n, dtype=np.int64))
    mask = Mask(ids, ids, np.arange(n + 1, dtype=np.int64), np.arange(n, dtype=np.int32))
    return RawRatings(mask, np.ascontiguousarray(levels[:, 0]), scale)


def among(edges: npt.NDArray[np.float64], values: npt.NDArray[np.float64]) -> Labels:
    """How many of a few edges are at or below each value: millions are compared with each edge faster than searched."""
    passed = np.zeros(values.shape, dtype=np.uint8)
    for edge in edges:
        passed += values >= edge
    return passed.astype(np.int64)


@lru_cache(maxsize=4)
def _full_mask(n_users: int, n_items: int) -> Mask:
    users, items = (pa.array(np.arange(size, dtype=np.int64)) for size in (n_users, n_items))
    indptr = n_items * np.arange(n_users + 1, dtype=np.int64)
    return Mask(users, items, indptr, np.tile(np.arange(n_items, dtype=np.int32), n_users))


def _count(trial: Trial, row: tuple[int, ...], runs: int, noise: NoiseSource) -> Counts:
    counts = np.zeros(trial.n_labels, dtype=np.int64)
    height = max(1, _CHUNK // len(row))
    for start in range(0, runs, height):
        levels = np.tile(np.array(row, dtype=np.uint16), (min(height, runs - start), 1))
        counts += np.bincount(trial.observe(levels, noise), minlength=trial.n_labels)
    return counts
