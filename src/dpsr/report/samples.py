"""Recommendations for a few users, chosen by a rule that reads public counts only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from dpsr.release.contents import Contents
from dpsr.release.exact import score_pairs
from dpsr.release.ranking import best_items
from dpsr.report.names import Name, shown
from dpsr.types import Census

Items: TypeAlias = npt.NDArray[np.int32]

N_ITEMS = 5
_QUARTILES = ((0.5, "median activity"), (0.25, "lower quartile"), (0.75, "upper quartile"))


@dataclass(frozen=True)
class Suggestion:
    """One recommended item: its prediction on the scale, the same as a share of the scale, and its public count."""

    item: Name
    predicted: str
    share: float
    n_ratings: int


@dataclass(frozen=True)
class Sample:
    """A user and what the release recommends to them."""

    user: Name
    rule: str
    n_ratings: int
    suggestions: list[Suggestion]


def sample_users(census: Census) -> dict[int, str]:
    """The users at the quartiles of activity and why they were chosen; equal activity keeps the order of ids."""
    counts = census.user_counts
    active = np.flatnonzero(counts > 0)
    ranked = active[np.argsort(counts[active], kind="stable")]
    return {int(ranked[int(share * (len(ranked) - 1))]): rule for share, rule in _QUARTILES if len(ranked)}


def samples(contents: Contents, chosen: Mapping[int, str], rated: Mapping[int, Items]) -> list[Sample]:
    """What the release recommends to each of them, who `rated` those items; the least active first."""
    counts = contents.table.census.user_counts
    return [
        _sample(contents, user, rule, rated[user])
        for user, rule in sorted(chosen.items(), key=lambda pair: counts[pair[0]])
    ]


def _sample(contents: Contents, user: int, rule: str, rated: Items) -> Sample:
    model, census, scale = contents.model, contents.table.census, contents.model.scale
    best = best_items(model, *score_pairs(model, np.array([user]), np.arange(census.n_items)), rated, N_ITEMS)
    counts = census.item_counts[census.item_codes(best.items)]
    suggestions = [
        Suggestion(shown(item), f"{score:.2f}", float((score - scale.low) / scale.width), int(n))
        for item, score, n in zip(best.items, best.scores, counts, strict=True)
    ]
    return Sample(shown(census.user_ids[user].as_py()), rule, int(census.user_counts[user]), suggestions)
