"""The synthetic tables that several sections share, made once a process."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from benchmarks.movielens_like import write_ratings
from dpsr import Ratings, Scale
from dpsr.privacy.channels import calibrated_laplace
from dpsr.privacy.noise import NoiseSource
from dpsr.privacy.vault import privatise
from dpsr.types import PrivateRatings

SIZES = {"10k": 10_000, "100k": 100_000, "1M": 1_000_000, "10M": 10_000_000}


def sizes(quick: bool) -> list[str]:
    """The large tables of a run, by name."""
    return ["1M"] if quick else ["1M", "10M"]


@cache
def ratings(size: str) -> Ratings:
    """Half stars in the shape of MovieLens."""
    return shaped(SIZES[size])


def shaped(n_ratings: int, shape: tuple[int, int] | None = None) -> Ratings:
    """The same with so many users and items."""
    with tempfile.TemporaryDirectory() as folder:
        path = write_ratings(n_ratings, Path(folder) / "ratings.parquet", shape=shape)
        return Ratings.read(path, scale=Scale(0.5, 5, step=0.5))


@cache
def private(size: str) -> PrivateRatings:
    """The same after the paper's repaired Stage 1 at epsilon = 1; from a seed, so that runs compare."""
    raw = ratings(size)
    return privatise(raw, calibrated_laplace(raw.scale, 1.0), noise=NoiseSource.seeded(0))


def by_user(size: str) -> sp.csr_matrix:
    """The raw ratings, users by items, as implicit wants them."""
    table = ratings(size)
    rows = table.mask.items.copy(), table.mask.indptr.copy()
    return sp.csr_matrix((table.values.astype(np.float32), *rows), shape=table.mask.shape)
