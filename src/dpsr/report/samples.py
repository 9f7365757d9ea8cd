"""Recommendations for a few users, chosen by a rule that reads public counts only."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpsr.release import Release
from dpsr.report.names import Name, shown

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


def samples(release: Release) -> list[Sample]:
    """The users at the quartiles of activity, the least active first; equal activity keeps the order of ids."""
    counts = release.mask.user_counts
    active = np.flatnonzero(counts > 0)
    ranked = active[np.argsort(counts[active], kind="stable")]
    chosen = {int(ranked[int(share * (len(ranked) - 1))]): rule for share, rule in _QUARTILES if len(ranked)}
    return [_sample(release, user, rule) for user, rule in sorted(chosen.items(), key=lambda pair: counts[pair[0]])]


def _sample(release: Release, user: int, rule: str) -> Sample:
    mask, scale = release.mask, release.scale
    identifier = mask.user_ids[user].as_py()
    best = release.recommend(identifier, N_ITEMS)
    counts = mask.item_counts[mask.item_codes(best.items)]
    suggestions = [
        Suggestion(shown(item), f"{score:.2f}", float((score - scale.low) / scale.width), int(n))
        for item, score, n in zip(best.items, best.scores, counts, strict=True)
    ]
    return Sample(shown(identifier), rule, int(mask.user_counts[user]), suggestions)
