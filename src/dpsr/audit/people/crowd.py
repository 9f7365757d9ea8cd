"""Tables with canary people: each has items that nobody else rates, and is there or not by a fair coin.

Their ratings are at the two ends of the scale in turn, so that what they add lies far from what is expected of anybody.
The list of items is declared, those of absent canaries included: it says nothing about who is there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from dpsr.arrays import Bools, Ints
from dpsr.data import realistic
from dpsr.engine import MemoryTable
from dpsr.engine.raw import LEVEL, WEIGHT, InteractionTable, RawTable
from dpsr.types import Mask, Scale

BLOCK = 1 << 16


@dataclass(frozen=True, eq=False)
class CanaryPeople:
    """`bits` say who is there; canary i has the items i K .. (i + 1) K - 1, K = `each`."""

    bits: Bools
    each: int
    scale: Scale

    @classmethod
    def toss(cls, n: int, each: int, scale: Scale, rng: np.random.Generator) -> CanaryPeople:
        """n canaries with `each` items."""
        return cls(rng.random(n) < 0.5, each, scale)

    @property
    def n_items(self) -> int:
        return len(self.bits) * self.each

    @property
    def declared(self) -> pa.Array:
        """All items there are, those of `others` after the canaries'."""
        return pa.array(np.arange(self.n_items + OTHER_ITEMS, dtype=np.int64))

    def table(self, others: int = 0, *, block: int = BLOCK, halves: bool = False) -> RawTable:
        """Who is there, with some `others`; with `halves` every canary's ratings are under two names."""
        mask, levels = self._rows(others, halves)
        return RawTable(MemoryTable(mask, {LEVEL: levels.astype(np.uint16)}, block_ratings=block), self.scale)

    def likes(self, others: int = 0, *, block: int = BLOCK, halves: bool = False) -> InteractionTable:
        """The same rows as interactions, each of weight one."""
        mask, _ = self._rows(others, halves)
        return InteractionTable(MemoryTable(mask, {WEIGHT: np.ones(mask.n_ratings)}, block_ratings=block))

    def _rows(self, others: int, halves: bool) -> tuple[Mask, Ints]:
        """Who rated what, and the levels."""
        there = np.flatnonzero(self.bits)
        items = (there[:, None] * self.each + np.arange(self.each)).ravel()
        levels = np.tile(np.where(np.arange(self.each) % 2 == 0, 0, self.scale.n_levels - 1), len(there))
        counts = np.full(len(there), self.each)
        if halves:
            counts = np.repeat([self.each // 2, self.each - self.each // 2], len(there)).reshape(2, -1).T.ravel()
        if others:
            more_items, more_levels, more = _others(others, self.scale)
            items, levels = np.concatenate([items, more_items + self.n_items]), np.concatenate([levels, more_levels])
            counts = np.concatenate([counts, more])
        indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        people = pa.array(np.arange(len(counts), dtype=np.int64))
        return Mask(people, self.declared, indptr, items.astype(np.int32)), levels

    def cells(self) -> Ints:
        """The cells of every canary (canaries, each)."""
        return np.arange(self.n_items).reshape(len(self.bits), self.each)


OTHER_ITEMS = 300


def _others(people: int, scale: Scale) -> tuple[Ints, Ints, Ints]:
    """Ordinary people: items, levels, numbers of ratings."""
    stars = realistic(7, n_users=people, n_items=OTHER_ITEMS, n_ratings=12 * people)
    counts = stars.mask.user_counts
    within = np.random.default_rng(7).random(len(stars))
    levels = ((stars.levels + within) / 5 * scale.n_levels).astype(np.int64)
    return stars.mask.items.astype(np.int64), levels, counts[counts > 0]
