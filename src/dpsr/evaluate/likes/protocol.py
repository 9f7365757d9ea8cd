"""How lists are tested, in two ways; `docs/protocol.md` has the definitions. NOT PRIVATE.

held-out people         a fifth of the people is not there in training; of each of them a fifth of the items, at
                        least one, is hidden, and the rest is shown when the list is made
held-out interactions   everybody is there; a fifth of each one's items, at least one, is hidden
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from dpsr.arrays import Floats, Ints
from dpsr.data import Interactions
from dpsr.evaluate.likes.contract import PEOPLE_AT_ONCE, ListModel, baskets_of
from dpsr.evaluate.metrics.lists import (
    coverage_at,
    hits_of,
    list_ndcg_at,
    mean_of_known,
    popularity_bias_at,
    recall_at,
)
from dpsr.evaluate.metrics.ranking import top_items
from dpsr.types import Mask

LONGEST = 100
"""Places of a list that any measure looks at."""

METRICS = ("recall_at_20", "ndcg_at_20", "ndcg_at_100", "coverage_at_20", "popularity_bias_at_20")
"""The columns that `score_lists` fills."""


class LikesSplit(NamedTuple):
    """What is learned from; what people show, and what is hidden of them, under the same user codes."""

    train: Interactions
    shown: Interactions
    hidden: Interactions


class ListProtocol(Protocol):
    """How parts are made."""

    def split(self, likes: Interactions, seed: int) -> LikesSplit:
        """The same for every method, whichever process asks."""


@dataclass(frozen=True)
class HeldOutPeople:
    """Some people are kept apart and folded in."""

    people: float = 0.2
    items: float = 0.2
    ranked: ClassVar[int] = 5000

    def split(self, likes: Interactions, seed: int) -> LikesSplit:
        """Lists are scored for at most `ranked` people, the first in a random order."""
        parts = likes.hold_out_people(self.people, self.items, seed=seed)
        return LikesSplit(parts.train, *_sample(parts.shown, parts.hidden, seed, self.ranked))


@dataclass(frozen=True)
class HeldOutInteractions:
    """Some items of everybody are kept apart; people show what they were trained with."""

    items: float = 0.2
    ranked: ClassVar[int] = 5000

    def split(self, likes: Interactions, seed: int) -> LikesSplit:
        """Lists are scored for at most `ranked` people, the first in a random order."""
        train, hidden = likes.hide_items(self.items, seed=seed)
        return LikesSplit(train, *_sample(train, hidden, seed, self.ranked))


LIST_PROTOCOLS: dict[str, ListProtocol] = {
    "held-out people": HeldOutPeople(),
    "held-out interactions": HeldOutInteractions(),
}
"""By the name under which a job knows them."""

FOLDED_IN, KNOWN_PEOPLE = LIST_PROTOCOLS


@dataclass(frozen=True, eq=False)
class ListScores:
    """What a row of numbers is made of: Recall@20, NDCG@20 and NDCG@100 of every person, and the means of all."""

    people: dict[str, Floats]
    means: dict[str, float]


def score_lists(model: ListModel, split: LikesSplit) -> ListScores:
    """Every metric of one fitted model."""
    lists, hidden = top_lists_of(model, split.shown.mask), split.hidden.mask
    hits, n = hits_of(lists, hidden), hidden.user_counts
    people = {
        "recall_at_20": recall_at(hits, n, 20),
        "ndcg_at_20": list_ndcg_at(hits, n, 20),
        "ndcg_at_100": list_ndcg_at(hits, n, 100),
    }
    together = {
        "coverage_at_20": coverage_at(lists, hidden.n_items, 20),
        "popularity_bias_at_20": popularity_bias_at(lists, hidden, split.train.mask.item_counts, 20),
    }
    return ListScores(people, {name: mean_of_known(values) for name, values in people.items()} | together)


def top_lists_of(model: ListModel, shown: Mask, k: int = LONGEST) -> npt.NDArray[np.int32]:
    """The k best items of everybody among those they do not show; -1 where there are fewer."""
    lists = np.full((shown.n_users, k), -1, dtype=np.int32)
    baskets = baskets_of(shown)
    for people in _blocks(shown.n_users):
        block = baskets[people]
        scores = np.array(model.scores_of(block), dtype=np.float64)
        scores[block.nonzero()] = -np.inf
        best = top_items(scores, k)
        known = np.isfinite(np.take_along_axis(scores, best, axis=1))
        lists[people, : best.shape[1]] = np.where(known, best, -1)
    return lists


def _blocks(n: int) -> Iterator[slice]:
    return (slice(start, min(start + PEOPLE_AT_ONCE, n)) for start in range(0, n, PEOPLE_AT_ONCE))


def _sample(shown: Interactions, hidden: Interactions, seed: int, most: int) -> tuple[Interactions, Interactions]:
    """Those of whom something is hidden, and no more than `most` of them."""
    able: Ints = np.flatnonzero(hidden.mask.user_counts)
    if len(able) > most:
        able = np.sort(np.random.default_rng(seed).permutation(able)[:most])
    return shown.of_people(able), hidden.of_people(able)
