"""Plans where nobody rates: what lists would be worth at each epsilon, before anything is spent.

    lists = (1 - loss) gain      next to lists of twenty by popularity without noise

`loss` is what noise in counts costs lists and `gain` what second moments would add, both as the rule that spends the
budget expects them (`likes.plan`). It asks its first questions with noise from a public seed: of a file on the
curator's side, so that a plan of a file is not private, or of made-up people, as many as were declared.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from dpsr.certify.certificate import check_unit
from dpsr.data import Interactions, realistic
from dpsr.engine.raw import InteractionTable, RawInteractions
from dpsr.errors import ParameterError
from dpsr.likes.plan import Loss
from dpsr.linalg.compiled import one_blas_thread
from dpsr.pipeline.estimator import check_enough
from dpsr.pipeline.likes import ask_activity, ask_popularity, check_likes, next_cells
from dpsr.pipeline.plan import parse_epsilons
from dpsr.privacy.noise import NoiseSource
from dpsr.privacy.vault.people.likes_vault import LikesVault, PeopleLikesVault, SingleLikesVault

MOST_MADE_UP = 5_000_000
"""Interactions that are made up for a plan, at most: some seconds."""

_DRAWS = 3
"""How often the first questions are asked where items are declared; without, cells are many and noise averages out."""

NO_TOTALS = (
    "a plan of interactions needs totals that may be known, --users, --items and --ratings (how many interactions), or "
    "a file on the curator's side, whose plan is not private."
)


@dataclass(frozen=True)
class LikesForecast:
    """At one epsilon: what lists keep of popularity, what taste adds to them, and over how many frequent items it is
    looked for; `unlisted` is what lists are worth where no list of items is declared."""

    epsilon: float
    popularity: float
    taste: float
    frequent: int
    unlisted: float

    @property
    def lists(self) -> float:
        """Next to lists by popularity without noise."""
        return self.popularity * self.taste


@dataclass(frozen=True)
class LikesPlan:
    """Forecasts; `raw` if a file was read."""

    forecasts: tuple[LikesForecast, ...]
    raw: bool

    def rows(self) -> list[list[str]]:
        """One row of text per epsilon."""
        return [
            [f"{f.epsilon:g}", f"{f.lists:.2f}", f"{f.popularity:.0%}", f"{f.taste - 1:+.0%}", f"{f.frequent:,}",
             f"{f.unlisted:.2f}"]
            for f in self.forecasts
        ]  # fmt: skip

    def to_dict(self) -> dict[str, Any]:
        """For scripts."""
        return {"forecasts": [{**asdict(f), "lists": f.lists} for f in self.forecasts], "private": not self.raw}


def plan_likes(
    epsilons: str,
    delta: float | None,
    *,
    unit: str = "user",
    likes: RawInteractions | None = None,
    totals: tuple[int | None, int | None, int | None] = (None, None, None),
) -> LikesPlan:
    """Forecasts for a comma-separated list of budgets, from raw `likes` or `totals` (users, items, interactions)."""
    budgets = parse_epsilons(epsilons)
    for epsilon in budgets:
        check_likes(unit, epsilon, delta)
        check_unit(unit, epsilon, delta, True)
    assert delta is not None
    rows = likes if likes is not None else _made_up(*totals)
    check_enough(rows.mask.census)
    table = InteractionTable.of(rows)
    kind = PeopleLikesVault if unit == "user" else SingleLikesVault
    with one_blas_thread():
        found = tuple(_forecast(kind, table, epsilon, delta) for epsilon in budgets)
    return LikesPlan(found, likes is not None)


def _forecast(kind: type[LikesVault], likes: InteractionTable, epsilon: float, delta: float) -> LikesForecast:
    def worth(declared: pa.Array | None, seed: int) -> tuple[float, float, int]:
        return _worth(kind(likes.table, epsilon, delta, noise=NoiseSource.seeded(seed), declared=declared))

    listed = [worth(likes.table.census.item_ids, seed) for seed in range(_DRAWS)]
    popularity, taste, frequent = np.mean(listed, axis=0).tolist()
    kept, gained, _ = worth(None, 0)
    return LikesForecast(epsilon, popularity, taste, round(frequent), kept * gained)


def _worth(vault: LikesVault) -> tuple[float, float, int]:
    """What is left of popularity, what taste adds, and over how many cells."""
    activity = ask_activity(vault)
    popularity, ahead = ask_popularity(vault, activity)
    following, spent = next_cells(vault, popularity, activity), 1 - vault.left
    loss = Loss.of(popularity, vault.n_cells, popularity.order[: ahead.n_named], following)
    if vault.declared is not None and not ahead.n_frequent:  # the rest goes into counts too
        loss = loss.after_round(spent, vault.left)
    return 1 - loss.after_names(spent, ahead.names), ahead.gain, ahead.n_frequent


def _made_up(users: int | None, items: int | None, interactions: int | None) -> Interactions:
    if users is None or items is None or interactions is None:
        raise ParameterError(NO_TOTALS)
    if not users <= interactions <= users * items:
        raise ParameterError(
            f"everybody does something and nothing counts twice: {interactions:,} interactions of {users:,} people "
            f"and {items:,} items cannot be. Check the totals."
        )
    if interactions > MOST_MADE_UP:
        raise ParameterError(
            f"a plan makes up at most {MOST_MADE_UP:,} interactions, found {interactions:,}. Plan with a part of the "
            "people and of their interactions: more people only make lists better."
        )
    return Interactions.of_mask(realistic(0, n_users=users, n_items=items, n_ratings=interactions).mask, "made up")
