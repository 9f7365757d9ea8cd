"""Which question each rating spends its budget on: a public division, by counts of items and users and by place.

Every row has a class (octaves of its count). For each pair of classes two small tables say the item's share of a
rating's weight in the sums, and how many of 256 ratings are asked one by one; which ones follows from a hash of their
places in the table. A rating that is asked one by one weighs `light` of `GRID` in the sums, any other all of it; of
either, `pooled` of `GRID` is its weight in the sums over all ratings (`contrasts.py`), and item and user share the
rest. So a rating's part in the answers follows from who rated what alone, and is the same however the table is cut.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from numba import prange

from dpsr.arrays import AnyInts, Codes, Floats, Ints
from dpsr.certify.parts import DIVIDED_GRID
from dpsr.engine.incidence import Bytes, coded_both
from dpsr.engine.table import Block, BlockResult, Table, zeros
from dpsr.linalg.compiled import fast_parallel_kernel, threads_for

GRID = DIVIDED_GRID
"""Weights in sums are multiples of one over this, and so are shares of ratings."""

SIXTEENTHS = 16
"""Steps of an item's share of a weight."""

_MOST_KEPT = 1 << 26
"""Ratings whose codes are kept between passes, a byte each; of larger tables they are computed anew."""


@dataclass(frozen=True, eq=False)
class Division:
    """Classes of rows, and tables over pairs of classes (items, users): `item` in sixteenths, `asked` in 256ths."""

    item_class: Bytes
    user_class: Bytes
    item: AnyInts
    asked: AnyInts
    light: int
    pooled: int = 0

    @classmethod
    def uniform(cls, shape: tuple[int, int], item: int, *, asked: int = 0, light: int = 0, pooled: int = 0) -> Division:
        """One class of users and one of items: every rating is treated alike, `shape` is (users, items)."""
        users, items = (np.zeros(n, dtype=np.uint8) for n in shape)
        return cls(items, users, np.array([[item]]), np.array([[asked]]), light, pooled)

    @property
    def item_weights(self) -> Ints:
        """The weight in its item's sum of a rating of every code: first those in the sums alone, then those asked."""
        shares = np.tile(np.arange(SIXTEENTHS + 1), 2)
        return shares * (self._whole - self.pooled_weights) // SIXTEENTHS

    @property
    def user_weights(self) -> Ints:
        """Likewise in its user's sum: what the others leave."""
        return self._whole - self.pooled_weights - self.item_weights

    @property
    def pooled_weights(self) -> Ints:
        """Likewise in the sum over all ratings that it is in."""
        return self._whole * self.pooled // GRID

    @property
    def _whole(self) -> Ints:
        """All that a rating of every code weighs."""
        return np.repeat([GRID, self.light], SIXTEENTHS + 1)

    def codes(self, block: Block) -> Bytes:
        """Of every rating: the item's share, plus 17 if it is asked one by one."""
        users = self.user_class[block.users]
        with threads_for(8 * len(block.items)):
            return _codes(block.start, block.indptr, block.items, self.item_class, users, self.item, self.asked)

    def asks(self, block: Block) -> npt.NDArray[np.bool_]:
        """Which ratings of a block are asked one by one."""
        return np.asarray(self.codes(block) > SIXTEENTHS)


@fast_parallel_kernel
def _codes(
    start: int, indptr: Ints, items: Codes, item_class: Bytes, user_class: Bytes, item: AnyInts, asked: AnyInts
) -> Bytes:
    out = np.empty(len(items), np.uint8)
    for u in prange(len(indptr) - 1):
        b = user_class[u]
        for e in range(indptr[u], indptr[u + 1]):
            a = item_class[np.uint32(items[e])]
            place = np.uint64(start + e)
            place = (place ^ (place >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)  # SplitMix64
            place = (place ^ (place >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            out[e] = item[a, b] + (17 if np.int64(place >> np.uint64(56)) < asked[a, b] else 0)
    return out


@dataclass(frozen=True, eq=False)
class Sizes:
    """Of every sum: the weights of its ratings together, and their squares together."""

    item: Floats
    user: Floats
    item_square: Floats
    user_square: Floats


class DividedIncidence:
    """The mask of a table with the weights of a division on it, as linear maps between rows of both sides."""

    def __init__(self, table: Table, division: Division) -> None:
        self._table, self._division = table.mask_only(), division
        self._n_items = table.census.n_items
        self._kept: dict[int, Bytes] = {}

    @cached_property
    def item_weights(self) -> Floats:
        """By code, as shares."""
        return self._division.item_weights / GRID

    @cached_property
    def user_weights(self) -> Floats:
        """By code, as shares."""
        return self._division.user_weights / GRID

    def both(self, users: Floats, items: Floats, to_items: Floats, to_users: Floats) -> tuple[Floats, Floats]:
        """sum_u w users_u of every item and sum_j w' items_j of every user, w = to_items[code], w' = to_users[code]."""
        U, V = (array if array.ndim == 2 else array[:, None] for array in (users, items))

        def add(block: Block, sums: Floats) -> BlockResult:
            rows = coded_both(block, U[block.users], V, self._codes(block), to_items, to_users, sums)
            return BlockResult(rows=(rows,))

        answer = self._table.run(add, [zeros(self._n_items, U.shape[1])])
        sums, rows = answer.sums[0], answer.rows[0]
        return sums if users.ndim == 2 else sums[:, 0], rows if items.ndim == 2 else rows[:, 0]

    def sizes(self) -> Sizes:
        """Weights that reach every sum, and their squares."""
        m, n = self._table.census.shape
        item, user = self.both(np.ones(m), np.ones(n), self.item_weights, self.user_weights)
        return Sizes(item, user, *self.both(np.ones(m), np.ones(n), self.item_weights**2, self.user_weights**2))

    def _codes(self, block: Block) -> Bytes:
        if block.start in self._kept:
            return self._kept[block.start]
        codes = self._division.codes(block)
        if self._table.census.n_ratings <= _MOST_KEPT:
            self._kept[block.start] = codes
        return codes
