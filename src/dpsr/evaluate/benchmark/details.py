"""What a row of the table is made of: a method's predictions of the test ratings and some of its lists, on disk.

One `.npz` file per job, written beside and renamed, so that it is whole or absent; plain arrays, never pickles. Lists
are kept for at most `LISTED_USERS` users, the same for every method on the same split.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from dpsr.evaluate.ranking import Predictor, top_items
from dpsr.types import Mask

LISTED_USERS = 300


@dataclass(frozen=True, eq=False)
class Details:
    """`predicted` in the order of the test table; `lists[i]` are the ten best items of `listed_users(...)[i]`."""

    predicted: npt.NDArray[np.float32]
    lists: npt.NDArray[np.int32]

    def save(self, path: Path) -> None:
        """Whole or not at all."""
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = path.with_name(f".{path.stem}.{os.getpid()}.npz")
        np.savez_compressed(beside, predicted=self.predicted, lists=self.lists)
        os.replace(beside, path)

    @classmethod
    def load(cls, path: Path) -> Details:
        with np.load(path, allow_pickle=False) as file:
            return cls(file["predicted"], file["lists"])


def listed_users(train: Mask, seed: int) -> npt.NDArray[np.int64]:
    """Users with training ratings, a fixed sample of them."""
    users = np.flatnonzero(train.user_counts)
    if len(users) <= LISTED_USERS:
        return users
    return np.sort(np.random.default_rng(seed).choice(users, LISTED_USERS, replace=False))


def top_ten(ranker: Predictor, train: Mask, users: npt.NDArray[np.int64], k: int = 10) -> npt.NDArray[np.int32]:
    """The k best items of each user among those the user did not rate in training; -1 where there are fewer."""
    lists = np.full((len(users), k), -1, dtype=np.int32)
    for row, user in enumerate(users):
        scores = np.array(ranker.scores(int(user)), dtype=np.float64)
        scores[train.items[train.indptr[user] : train.indptr[user + 1]]] = -np.inf
        best = top_items(scores[None, :], k)[0]
        best = best[np.isfinite(scores[best])]
        lists[row, : len(best)] = best
    return lists


def overlap(lists: npt.NDArray[np.int32], others: npt.NDArray[np.int32]) -> float:
    """The share of the first lists' items that the second ones hold too, averaged over users."""
    shared = [
        len(np.intersect1d(a[a >= 0], b[b >= 0])) / max(int((a >= 0).sum()), 1)
        for a, b in zip(lists, others, strict=True)
    ]
    return float(np.mean(shared)) if shared else float("nan")
