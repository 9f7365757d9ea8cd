"""Ranked lists for many users, a block of users at a time; an m x n matrix never exists.

Candidates of user u, by protocol:

    "all"     every item the user did not rate in training (the full protocol)
    "rated"   only the items the user rated in the test set

Lists are ordered by descending score, equal scores by ascending item code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from dpsr.arrays import Floats, Ints
from dpsr.evaluate.metrics.accuracy import discounts
from dpsr.types import Mask, Model

Candidates = Literal["all", "rated"]
Predict = Callable[[Ints, Ints], Floats]

BLOCK_CELLS = 1 << 21
"""Scores held at once: 16 MB."""


@runtime_checkable
class Predictor(Protocol):
    """What can be scored: coded users and items in, ratings out. `dpsr.types.Model` and every baseline are one.

    `scores` ranks one user's items and is not clipped, because clipping makes ties.
    """

    def predict(self, users: Ints, items: Ints, /) -> Floats:
        """One rating inside the scale for each pair of codes."""

    def scores(self, user: int, /) -> Floats:
        """One unclipped score per item."""


@dataclass(frozen=True)
class RankedGains:
    """Gains along the lists of some users, with what chance alone would give. Read from raw values: not private.

    `chance_precision` and `chance_ndcg` are the exact expectations, user by user, under a uniformly random order.
    """

    ranked: Floats
    available: Floats
    chance_precision: Floats
    chance_ndcg: Floats


def rank_gains(
    predictor: Predictor | Predict, train: Mask, test: Mask, gains: Floats, *, k: int, candidates: Candidates
) -> RankedGains:
    """Rank the candidates of every user who has a test rating with positive gain, and look up the gains."""
    users = np.unique(test.users[gains > 0]).astype(np.int64)
    parts = [_rank_block(predictor, train, test, gains, block, k, candidates) for block in _blocks(users, test.n_items)]
    if not parts:
        empty = np.empty((0, k))
        return RankedGains(empty, empty, empty[:, 0], empty[:, 0])
    columns = zip(
        *((part.ranked, part.available, part.chance_precision, part.chance_ndcg) for part in parts), strict=True
    )
    return RankedGains(*(np.concatenate(column) for column in columns))


def _rank_block(
    predictor: Predictor | Predict,
    train: Mask,
    test: Mask,
    gains: Floats,
    users: Ints,
    k: int,
    candidates: Candidates,
) -> RankedGains:
    gain = _spread(test, gains, users)
    allowed = ~_seen(train, users) if candidates == "all" else _seen(test, users)
    gain = np.where(allowed, gain, 0)
    scores = np.where(allowed, _score_block(predictor, users, test.n_items), -np.inf)
    top = top_items(scores, k)
    listed = np.take_along_axis(allowed, top, axis=1)
    best = -np.sort(-gain, axis=1)[:, :k]
    return RankedGains(np.take_along_axis(gain, top, axis=1) * listed, best, *_chance(gain, allowed, best, k))


def top_items(scores: Floats, k: int) -> Ints:
    """The k best columns of every row, best first; equal scores keep the order of item codes.

    The k-th best score is found by partition; what lies above it is in, and of its equals the first ones.
    """
    k = min(k, scores.shape[1])
    limit = -np.partition(-scores, k - 1, axis=1)[:, k - 1 : k]
    above, equal = scores > limit, scores == limit
    chosen = above | (equal & (np.cumsum(equal, axis=1) <= k - above.sum(axis=1, keepdims=True)))
    columns = np.nonzero(chosen)[1].reshape(len(scores), k)
    order = np.argsort(-np.take_along_axis(scores, columns, axis=1), axis=1, kind="stable")
    return np.take_along_axis(columns, order, axis=1)


def top_lists(predictor: Predictor, train: Mask, users: Ints, k: int = 10) -> npt.NDArray[np.int32]:
    """The k best items of each user among those the user did not rate in training; -1 where there are fewer."""
    lists = np.full((len(users), k), -1, dtype=np.int32)
    for row, user in enumerate(users):
        scores = np.array(predictor.scores(int(user)), dtype=np.float64)
        scores[train.items[train.indptr[user] : train.indptr[user + 1]]] = -np.inf
        best = top_items(scores[None, :], k)[0]
        best = best[np.isfinite(scores[best])]
        lists[row, : len(best)] = best
    return lists


def list_overlap(lists: npt.NDArray[np.int32], others: npt.NDArray[np.int32]) -> float:
    """The share of the first lists' items that the second ones hold too, averaged over users."""
    shared = [
        len(np.intersect1d(a[a >= 0], b[b >= 0])) / max(int((a >= 0).sum()), 1)
        for a, b in zip(lists, others, strict=True)
    ]
    return float(np.mean(shared)) if shared else float("nan")


def _chance(gain: Floats, allowed: npt.NDArray[np.bool_], best: Floats, k: int) -> tuple[Floats, Floats]:
    """Expectations under a random order of C candidates: each of the first min(k, C) places gets the average gain.

    E[P@k] = min(k, C) R / (C k),    E[NDCG@k] = (mean gain) sum_{i <= min(k, C)} 1 / log2(i + 1) / IDCG.
    """
    n_candidates = allowed.sum(axis=1)
    places = np.minimum(k, n_candidates)
    precision = places * (gain > 0).sum(axis=1) / (n_candidates * k)
    reach = np.concatenate([[0.0], np.cumsum(discounts(k))])[places]
    return precision, gain.sum(axis=1) / n_candidates * reach / (best @ discounts(best.shape[1]))


def _blocks(users: Ints, n_items: int) -> Iterator[Ints]:
    size = max(1, BLOCK_CELLS // max(1, n_items))
    return (users[start : start + size] for start in range(0, len(users), size))


def _score_block(predictor: Predictor | Predict, users: Ints, n_items: int) -> Floats:
    if isinstance(predictor, Model):
        return predictor.scores_of(users)
    if isinstance(predictor, Predictor):
        return np.stack([predictor.scores(int(user)) for user in users])
    items = np.tile(np.arange(n_items), len(users))
    return predictor(np.repeat(users, n_items), items).reshape(len(users), n_items)


def _places(mask: Mask, users: Ints) -> tuple[Ints, Ints]:
    """Positions of these users' ratings in the mask, and the row of the block each belongs to."""
    counts = mask.user_counts[users]
    row = np.repeat(np.arange(len(users)), counts)
    within = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.repeat(mask.indptr[users], counts) + within, row


def _seen(mask: Mask, users: Ints) -> npt.NDArray[np.bool_]:
    seen = np.zeros((len(users), mask.n_items), dtype=np.bool_)
    place, row = _places(mask, users)
    seen[row, mask.items[place]] = True
    return seen


def _spread(mask: Mask, gains: Floats, users: Ints) -> Floats:
    spread = np.zeros((len(users), mask.n_items))
    place, row = _places(mask, users)
    spread[row, mask.items[place]] = gains[place]
    return spread
