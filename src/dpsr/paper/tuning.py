"""Settings for the paper's Stages 2 and 3, chosen on private ratings alone.

A tenth of the noisy ratings is held out, the stages run on the rest, and the settings that predict the held-out noisy
ratings best win. The noise of a held-out rating is independent of everything the stages saw, so it adds the same to
every candidate's squared error in expectation and does not favour any. The search goes from the paper's values one
setting at a time until nothing improves. All of it is post-processing: it costs no budget.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dpsr.types import Model, PrivateRatings

CANDIDATES: dict[str, tuple[float, ...]] = {
    "rank": (1, 2, 4, 8, 16),
    "beta": (0.0, 0.2, 0.4, 0.65, 0.85, 1.0),
    "lam": (0.0, 0.4, 0.7, 0.9, 1.0),
    "n_neighbors": (5, 15, 40, 100),
}

HELD_OUT = 0.1
MAX_ROUNDS = 3

Settings = dict[str, Any]
Complete = Callable[[PrivateRatings, Settings], Model]


def tune(private: PrivateRatings, start: Settings, complete: Complete) -> Settings:
    """The best of `CANDIDATES` for these private ratings, by coordinate search from `start`."""
    held = np.random.default_rng(0).random(len(private)) < HELD_OUT
    if not held.any() or held.all():
        return start
    train, test = private.select(~held), private.select(held)
    tried: dict[tuple[float, ...], float] = {}

    def loss(settings: Settings) -> float:
        key = tuple(settings[name] for name in CANDIDATES)
        if key not in tried:
            predicted = complete(train, settings).predict(test.mask.users, test.mask.items)
            tried[key] = float(np.mean((test.values - predicted) ** 2))
        return tried[key]

    best = start
    for _ in range(MAX_ROUNDS):
        before = best
        for name, values in CANDIDATES.items():
            best = min([best, *({**best, name: value} for value in values)], key=loss)
        if best == before:
            break
    return best
