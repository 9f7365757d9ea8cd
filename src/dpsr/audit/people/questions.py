"""Attacks on single questions to the vaults of people: one person, or one rating, more or less.

    scores               many canaries at once, each on cells of their own: as many independent trials as canaries
    scores, asked twice  the same with two questions at different prices: noise that is used again cancels
    levels, activity     one small vault a trial: a person more among a few others

Every question is asked for nearly all of the budget, so that its claim is the epsilon that was asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from dpsr.arrays import Bools, Floats
from dpsr.audit.people.crowd import OTHER_ITEMS, CanaryPeople
from dpsr.engine.raw import RawTable
from dpsr.privacy.noise import NoiseSource
from dpsr.privacy.vault.people import PeopleVault, RatingVault
from dpsr.types import Scale
from dpsr.types.item_side import ACTIVITY_BINS, ItemSide

NEARLY = 0.98
MANY, SOME, FEW = 1 << 16, 1 << 13, 1 << 12
"""Canaries where there may be many; where two questions are asked; and small vaults."""

Vaults = Callable[..., PeopleVault]


@dataclass(frozen=True, eq=False)
class Trial:
    """Numbers about each canary, who was there, and the epsilon that the vault's receipt states at its delta."""

    name: str
    numbers: Floats
    bits: Bools
    claim: float


@dataclass(frozen=True)
class Setting:
    """What is claimed: a unit on a scale at (epsilon, delta); `vaults` makes the vault that is attacked."""

    unit: str
    scale: Scale
    epsilon: float
    delta: float
    vaults: Vaults | None = None

    @property
    def each(self) -> int:
        """Ratings of a canary: one where one rating is the unit."""
        return 4 if self.unit == "user" else 1

    def open(self, table: RawTable, declared: pa.Array, noise: NoiseSource) -> PeopleVault:
        """A vault of the unit, with the declared list."""
        make = self.vaults or (PeopleVault if self.unit == "user" else RatingVault)
        return make(table, self.epsilon, self.delta, noise=noise, declared=declared)

    def claimed(self, vault: PeopleVault) -> float:
        """What the receipt states, or what was asked if that is less."""
        return min(self.epsilon, vault.certificate().epsilon)


def scores(
    setting: Setting, noise: NoiseSource, rng: np.random.Generator, n: int = MANY, *, halves: bool = False
) -> Trial:
    """Many canaries in one question; with `halves` each of them is taken for two people (a planted error)."""
    crowd = CanaryPeople.toss(n, setting.each, setting.scale, rng)
    vault = setting.open(crowd.table(halves=halves), crowd.declared, noise)
    numbers = _asked(setting, vault, crowd, NEARLY)
    return Trial("scores of items, one person or rating each", numbers, crowd.bits, setting.claimed(vault))


def scores_twice(setting: Setting, noise: NoiseSource, rng: np.random.Generator, n: int = SOME) -> Trial:
    """Two questions, of which the second costs four times the first."""
    crowd = CanaryPeople.toss(n, setting.each, setting.scale, rng)
    vault = setting.open(crowd.table(), crowd.declared, noise)
    numbers = np.hstack([_asked(setting, vault, crowd, share * NEARLY) for share in (0.2, 0.8)])
    return Trial("scores of items, asked twice", numbers, crowd.bits, setting.claimed(vault))


def _asked(setting: Setting, vault: PeopleVault, crowd: CanaryPeople, share: float) -> Floats:
    """A question for scores: each canary's own numbers, those of its low and of its high ratings added up."""
    side = unlearned(setting.scale, vault.n_cells)
    if isinstance(vault, RatingVault):
        answer = vault.rating_scores(share, side, level=0.0, shrink=0.0)
    else:
        answer = vault.scores(share, side, alpha=0.7)
    own = answer.values[: crowd.n_items].reshape(len(crowd.bits), crowd.each, -1) / answer.noise
    parts = [own[:, place::2].sum(axis=1) for place in (0, 1)] if crowd.each > 1 else [own[:, 0]]
    return np.hstack(parts)


def people_counted(setting: Setting, noise: NoiseSource, rng: np.random.Generator, n: int = FEW) -> Trial:
    """Levels and activity of two people or three, each time in a vault of its own."""
    bits, numbers, claim = rng.random(n) < 0.5, [], 0.0
    declared = pa.array(np.arange(3 * setting.each + OTHER_ITEMS, dtype=np.int64))
    vaults = {
        bit: setting.open(
            CanaryPeople(np.array([True, True, bit]), setting.each, setting.scale).table(), declared, noise
        )
        for bit in (True, False)
    }
    for place, bit in enumerate(bits.tolist()):
        vault = _afresh(vaults[bit])
        first, second = vault.totals(NEARLY / 2), vault.activity(NEARLY / 2)
        numbers.append(np.concatenate([first.values / first.noise, (second.values / second.noise).ravel()]))
        claim = max(claim, 0.0 if place else setting.claimed(vault))
    return Trial("levels and activity, one person more", np.array(numbers), bits, claim)


def _afresh(vault: PeopleVault) -> PeopleVault:
    """The same vault before anything was asked; noise goes on. What a budget affords takes long to find."""
    again = copy(vault)
    again._parts = []
    return again


def unlearned(scale: Scale, n_cells: int) -> ItemSide:
    """What is believed of items before anything was asked."""
    return ItemSide(
        scale, np.zeros(n_cells), np.full(n_cells, 0.2), np.zeros((n_cells, 2)), 1.0, 0.4,
        np.full(ACTIVITY_BINS, 0.25), np.zeros(3), np.diag([0.3, 0.2, 0.02]),
    )  # fmt: skip
