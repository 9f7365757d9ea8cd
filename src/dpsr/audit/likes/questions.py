"""Attacks on single questions to the vaults of interactions: one person, or one interaction, more or less.

    weighted counts                many canaries at once, each on cells of their own
    weighted counts, asked twice   the same with two questions at different prices: noise that is used again cancels
    second moments of presence     canaries with two cells each, where nobody else has both
    pairs of presence              people with many cells, one of which is there or not
    numbers of interactions        one small vault a trial: a person more among a few others
    names                          weights of items that others name anyway, with one person more on each

Every question is asked for nearly all of the budget, so that its claim is the epsilon that was asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from dpsr.arrays import Floats, Ints
from dpsr.audit.people.crowd import OTHER_ITEMS, CanaryPeople
from dpsr.audit.people.questions import FEW, MANY, NEARLY, SOME, Trial
from dpsr.engine import MemoryTable
from dpsr.engine.raw import WEIGHT, InteractionTable
from dpsr.privacy.noise import NoiseSource
from dpsr.privacy.vault.people.likes_vault import LikesVault, PeopleLikesVault, SingleLikesVault
from dpsr.types import Mask, Scale
from dpsr.types.item_side import ACTIVITY_BINS

STARS = Scale(1, 5)
"""Canaries have levels, too, which nobody reads here."""

_PAIRS = 256
"""Canaries in one question about second moments: with two cells each, their products are a matrix of 512 x 512."""

_BUSY, _MANY_CELLS = 24, 8
"""People in one question about pairs, and cells of each: all pairs with one of them weigh nearly the whole bound."""

_MOST_NAMING = 1 << 20
"""People in the question about names."""

LikesVaults = Callable[..., LikesVault]


@dataclass(frozen=True)
class LikesSetting:
    """What is claimed: a unit at (epsilon, delta); `vaults` makes the vault that is attacked."""

    unit: str
    epsilon: float
    delta: float
    vaults: LikesVaults | None = None

    @property
    def each(self) -> int:
        """Interactions of a canary: one where one interaction is the unit."""
        return 4 if self.unit == "user" else 1

    def open(self, likes: InteractionTable, declared: pa.Array | None, noise: NoiseSource) -> LikesVault:
        """A vault of the unit, with the declared list, if any."""
        make = self.vaults or (PeopleLikesVault if self.unit == "user" else SingleLikesVault)
        return make(likes.table, self.epsilon, self.delta, noise=noise, declared=declared)

    def claimed(self, vault: LikesVault) -> float:
        """What the receipt states, or what was asked if that is less."""
        return min(self.epsilon, vault.certificate().epsilon)


def counts(
    setting: LikesSetting, noise: NoiseSource, rng: np.random.Generator, n: int = MANY, *, halves: bool = False
) -> Trial:
    """Many canaries in one question; with `halves` each of them is taken for two people (a planted error)."""
    crowd = CanaryPeople.toss(n, setting.each, STARS, rng)
    vault = setting.open(crowd.likes(halves=halves), crowd.declared, noise)
    numbers = _counted(vault, crowd, NEARLY)
    return Trial("weighted counts, one person or interaction each", numbers, crowd.bits, setting.claimed(vault))


def counts_twice(setting: LikesSetting, noise: NoiseSource, rng: np.random.Generator, n: int = SOME) -> Trial:
    """Two questions, of which the second costs four times the first."""
    crowd = CanaryPeople.toss(n, setting.each, STARS, rng)
    vault = setting.open(crowd.likes(), crowd.declared, noise)
    numbers = np.hstack([_counted(vault, crowd, share * NEARLY) for share in (0.2, 0.8)])
    return Trial("weighted counts, asked twice", numbers, crowd.bits, setting.claimed(vault))


def _counted(vault: LikesVault, crowd: CanaryPeople, share: float) -> Floats:
    """A round of counts: each canary's own cells, added up."""
    answer = vault.counts(share, np.arange(vault.n_cells))
    own = answer.values[: crowd.n_items].reshape(len(crowd.bits), crowd.each) / answer.noise
    return np.asarray(own.sum(axis=1, keepdims=True))


def moments(setting: LikesSetting, noise: NoiseSource, rng: np.random.Generator, n: int = SOME) -> Trial:
    """Second moments of presence: somebody with two cells adds to one product alone, which is all they may add."""
    bits, numbers, claim = [], [], 0.0
    for _ in range(max(1, n // _PAIRS)):
        crowd = CanaryPeople.toss(_PAIRS, 2, STARS, rng)
        vault = setting.open(crowd.likes(), crowd.declared, noise)
        T = crowd.n_items
        flat = np.full(T, 1 / T)
        answer = vault.presence_moments(NEARLY, np.arange(T), flat, np.ones(T))
        numbers.append(answer.values[np.arange(0, T, 2), np.arange(1, T, 2)] / answer.noise)
        bits.append(crowd.bits)
        claim = max(claim, setting.claimed(vault))
    name = "second moments of presence, one person each"
    return Trial(name, np.concatenate(numbers)[:, None], np.concatenate(bits), claim)


def pairs(setting: LikesSetting, noise: NoiseSource, rng: np.random.Generator, n: int = FEW) -> Trial:
    """Pairs of presence: of somebody with many cells the last one is there or not, and all pairs with it are sought."""
    bits, numbers, claim = [], [], 0.0
    cells = np.arange(_BUSY * _MANY_CELLS).reshape(_BUSY, _MANY_CELLS)
    declared = pa.array(cells.ravel())
    for _ in range(max(1, n // _BUSY)):
        there = rng.random(_BUSY) < 0.5
        counts = _MANY_CELLS - 1 + there
        items = np.concatenate([own[:many] for own, many in zip(cells, counts, strict=True)])
        indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        mask = Mask(pa.array(np.arange(_BUSY)), declared, indptr, items.astype(np.int32))
        table = InteractionTable(MemoryTable(mask, {WEIGHT: np.ones(len(items))}))
        vault, T = setting.open(table, declared, noise), cells.size
        answer = vault.presence_moments(NEARLY, np.arange(T), np.full(T, 1 / T), np.ones(T))
        found = [answer.values[own[:-1], own[-1]].sum() for own in cells]
        numbers.append(np.array(found) / (answer.noise * np.sqrt(_MANY_CELLS - 1)))
        bits.append(there)
        claim = max(claim, setting.claimed(vault))
    name = "pairs of presence, one interaction each"
    return Trial(name, np.concatenate(numbers)[:, None], np.concatenate(bits), claim)


def names(setting: LikesSetting, noise: NoiseSource, rng: np.random.Generator, n: int = MANY // 4) -> Trial:
    """The weights of named items: so many people name each of them that one more or less only moves its weight."""
    empty = setting.open(_once_each(pa.array([0]), np.zeros(1, dtype=np.int64)), None, noise)
    others = int(empty.naming_threshold(NEARLY) + 8 * empty.naming_noise(NEARLY)) + 1
    n = min(n, max(_MOST_NAMING // others, 1))
    bits, items = rng.random(n) < 0.5, pa.array(np.arange(n, dtype=np.int64))
    vault = setting.open(_once_each(items, others + bits), None, noise)
    found = vault.named(NEARLY, np.arange(vault.n_cells))
    weights = np.zeros(n)
    weights[np.array(found.names.to_pylist(), dtype=np.int64)] = found.values / found.noise
    return Trial("weights of named items, one person each", weights[:, None], bits, setting.claimed(vault))


def _once_each(items: pa.Array, people: Ints) -> InteractionTable:
    """So many `people` for each item, each of whom did something there once."""
    owners = np.repeat(np.arange(len(items)), people)
    indptr, ids = np.arange(len(owners) + 1, dtype=np.int64), pa.array(np.arange(len(owners)))
    return InteractionTable(
        MemoryTable(Mask(ids, items, indptr, owners.astype(np.int32)), {WEIGHT: np.ones(len(owners))})
    )


def people_numbered(setting: LikesSetting, noise: NoiseSource, rng: np.random.Generator, n: int = FEW) -> Trial:
    """Numbers of interactions of two people or three, with one each; each time in a vault of its own."""
    bits, numbers, claim = rng.random(n) < 0.5, np.zeros((n, ACTIVITY_BINS)), 0.0
    declared = pa.array(np.arange(3 + OTHER_ITEMS, dtype=np.int64))
    vaults = {
        bit: setting.open(CanaryPeople(np.array([True, True, bit]), 1, STARS).likes(), declared, noise)
        for bit in (True, False)
    }
    for place, bit in enumerate(bits.tolist()):
        vault = copy(vaults[bit])  # what a budget affords takes long to find, and noise goes on
        vault._parts = []
        answer = vault.numbers(NEARLY, np.arange(vault.n_cells))
        numbers[place] = answer.values / answer.noise
        claim = max(claim, 0.0 if place else setting.claimed(vault))
    return Trial("numbers of interactions, one person more", numbers, bits, claim)
