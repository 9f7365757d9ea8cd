"""Plans where nobody rates: what lists would be worth at each epsilon, before anything is spent.

    lists = (1 - loss) gain      next to lists of twenty by popularity without noise

`gain` is what second moments would add, as the rule that spends the budget expects it (`likes.plan`). It asks its first
questions with noise from a public seed: of a file on the curator's side, so that a plan of a file is not private, or of
made-up people, as many as were declared. `loss` is what noise in these counts costs lists. The rule has to guess it,
and where noise drowns everything it believes that all is equally popular and nothing lost; here popularity with hardly
any noise is at hand.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from dpsr.arrays import Floats
from dpsr.certify.certificate import check_unit
from dpsr.data import Interactions, realistic
from dpsr.engine.raw import InteractionTable, RawInteractions
from dpsr.errors import ParameterError
from dpsr.likes.plan import Loss, rank_of
from dpsr.linalg.compiled import one_blas_thread
from dpsr.pipeline.estimator import check_enough
from dpsr.pipeline.likes import ask_activity, ask_counts, ask_popularity, check_likes, next_cells
from dpsr.pipeline.plan import parse_epsilons
from dpsr.privacy.noise import NoiseSource
from dpsr.privacy.vault.people.likes_vault import LikesVault, PeopleLikesVault, SingleLikesVault

MOST_MADE_UP = 5_000_000
"""Interactions that are made up for a plan, at most: some seconds."""

_HARDLY_ANY_NOISE, _NEARLY_ALL = 30.0, 0.99
"""The epsilon of what popularity is compared with, and the share of it that counts get."""

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
        known = _popularity(kind, table, delta)
        found = tuple(_forecast(kind, table, epsilon, delta, known) for epsilon in budgets)
    return LikesPlan(found, likes is not None)


def _popularity(kind: type[LikesVault], likes: InteractionTable, delta: float) -> Floats:
    """Of every item, with hardly any noise."""
    items = likes.table.census.item_ids
    vault = kind(likes.table, _HARDLY_ANY_NOISE, delta, noise=NoiseSource.seeded(0), declared=items)
    return np.maximum(vault.counts(_NEARLY_ALL, np.arange(len(items))).values, 0.0)


def _forecast(
    kind: type[LikesVault], likes: InteractionTable, epsilon: float, delta: float, known: Floats
) -> LikesForecast:
    def vault(declared: pa.Array | None, seed: int) -> LikesVault:
        return kind(likes.table, epsilon, delta, noise=NoiseSource.seeded(seed), declared=declared)

    listed = [_worth_listed(vault(likes.table.census.item_ids, seed), known) for seed in range(_DRAWS)]
    popularity, taste, frequent = np.mean(listed, axis=0).tolist()
    return LikesForecast(epsilon, popularity, taste, round(frequent), _worth_unlisted(vault(None, 0)))


def _worth_listed(vault: LikesVault, known: Floats) -> tuple[float, float, int]:
    """What noise leaves of the popularity that is known, what taste adds, and over how many cells."""
    activity = ask_activity(vault)
    popularity, ahead = ask_popularity(vault, activity)
    if not ahead.n_frequent:  # the rest goes into counts too
        popularity = ask_counts(vault, popularity, vault.left, activity)
    rank = rank_of(vault.n_cells)
    kept = known[popularity.order[:rank]].sum() / np.sort(known)[::-1][:rank].sum()
    return float(kept), ahead.gain, ahead.n_frequent


def _worth_unlisted(vault: LikesVault) -> float:
    """What lists are worth where no list of items is declared."""
    activity = ask_activity(vault)
    popularity, ahead = ask_popularity(vault, activity)
    following, spent = next_cells(vault, popularity, activity), 1 - vault.left
    loss = Loss.of(popularity, vault.n_cells, popularity.order[: ahead.n_named], following)
    return (1 - loss.after_names(spent, ahead.names)) * ahead.gain


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
