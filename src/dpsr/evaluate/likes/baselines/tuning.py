"""Settings of list models without privacy: those with the best Recall@20 for people held back from training."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from dpsr.data import Interactions
from dpsr.errors import DataError
from dpsr.evaluate.likes.contract import ListModel
from dpsr.evaluate.likes.protocol import LikesSplit, score_lists

Setting = TypeVar("Setting")

VALIDATION = 0.1
"""Share of the training people on whom settings are chosen."""


def best_setting(
    likes: Interactions, seed: int, settings: Sequence[Setting], fit: Callable[[Interactions, Setting], ListModel]
) -> Setting:
    """The first of the best settings; the first of all where too few people are there to choose on."""
    try:
        split = LikesSplit(*likes.hold_out_people(VALIDATION, seed=seed))
    except DataError:
        return settings[0]
    return max(settings, key=lambda one: score_lists(fit(split.train, one), split).means["recall_at_20"])
