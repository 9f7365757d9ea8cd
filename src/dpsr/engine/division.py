"""Which question each rating spends its budget on, and in which turn it is asked: a public division, by counts of items
and users and by place.

Every row has a class (octaves of its count). For each pair of classes two small tables say the item's share of a
rating's weight in the sums, and how many of 256 ratings are asked one by one; which ones follows from a hash of their
places in the table. A rating that is asked one by one weighs `light` of `GRID` in the sums, any other all of it; of
either, `pooled` of `GRID` is its weight in the sums over all ratings (`contrasts.py`), and item and user share the
rest. So a rating's part in the answers follows from who rated what alone, and is the same however the table is cut.

What earlier turns answered may decide how later ones are asked. A rating has one turn, so it is asked once however many
turns there are.
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
from dpsr.engine.place_hash import hashed_place, hashed_places
from dpsr.engine.table import Block, BlockResult, Table, zeros
from dpsr.errors import PrivacyError
from dpsr.linalg.compiled import fast_parallel_kernel, threads_for

GRID = DIVIDED_GRID
"""Weights in sums are multiples of one over this, and so are shares of ratings."""

ITEM_SHARES = (0, 1, 2, 4, 8, *range(16, GRID - 15, 16), GRID - 8, GRID - 4, GRID - 2, GRID - 1, GRID)
"""Of 256: shares of a weight that an item may have. Sixteenths, and finer towards either end: where a hundred items are
rated by thousands of people each, a fiftieth of every weight is what they need, and nothing would be too little."""

_N_SHARES = len(ITEM_SHARES)

_MOST_KEPT = 1 << 26
"""Ratings whose codes are kept between passes, a byte each; of larger tables they are computed anew."""


@dataclass(frozen=True, eq=False)
class Division:
    """Classes of rows, and tables over pairs of classes (items, users) in 256ths: `item`, of `ITEM_SHARES`, `asked`."""

    item_class: Bytes
    user_class: Bytes
    item: AnyInts
    asked: AnyInts
    light: int
    pooled: int = 0

    def __post_init__(self) -> None:
        if not np.isin(self.item, ITEM_SHARES).all():
            raise PrivacyError(f"items have one of these shares of a weight, of {GRID}: {ITEM_SHARES}")

    @classmethod
    def uniform(cls, shape: tuple[int, int], item: int, *, asked: int = 0, light: int = 0, pooled: int = 0) -> Division:
        """One class of users and one of items: every rating is treated alike, `shape` is (users, items)."""
        users, items = (np.zeros(n, dtype=np.uint8) for n in shape)
        return cls(items, users, np.array([[item]]), np.array([[asked]]), light, pooled)

    @property
    def item_weights(self) -> Ints:
        """The weight in its item's sum of a rating of every code: first those in the sums alone, then those asked."""
        return np.tile(ITEM_SHARES, 2) * (self._whole - self.pooled_weights) // GRID

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
        return np.repeat([GRID, self.light], _N_SHARES)

    def codes(self, block: Block) -> Bytes:
        """Of every rating: the place of the item's share among all, and so many further if it is asked one by one."""
        users, share = self.user_class[block.users], np.searchsorted(ITEM_SHARES, self.item)
        with threads_for(8 * len(block.items)):
            return _codes(block.start, block.indptr, block.items, self.item_class, users, share, self.asked)

    def asks(self, block: Block) -> npt.NDArray[np.bool_]:
        """Which ratings of a block are asked one by one."""
        return self.asks_code(self.codes(block))

    @staticmethod
    def asks_code(codes: AnyInts) -> npt.NDArray[np.bool_]:
        """Whether ratings of these codes are asked one by one."""
        return np.asarray(codes >= _N_SHARES)


@fast_parallel_kernel
def _codes(
    start: int, indptr: Ints, items: Codes, item_class: Bytes, user_class: Bytes, share: AnyInts, asked: AnyInts
) -> Bytes:
    out = np.empty(len(items), np.uint8)
    for u in prange(len(indptr) - 1):
        b = user_class[u]
        for e in range(indptr[u], indptr[u + 1]):
            a = item_class[np.uint32(items[e])]
            chance = np.int64(hashed_place(np.uint64(start + e)) >> np.uint64(56))
            out[e] = share[a, b] + (_N_SHARES if chance < asked[a, b] else 0)
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


WHOLE = 256
"""Shares of turns are multiples of one over this."""


_OF_TURNS = 0x9E3779B97F4A7C15
"""Offset of places, for turns that have nothing to do with which ratings are asked: SplitMix64's own step."""


@dataclass(frozen=True)
class Turns:
    """Which part of the ratings each turn asks, in 256ths: turn t has `shares[t]` of them."""

    shares: tuple[int, ...] = (WHOLE,)

    def __post_init__(self) -> None:
        if min(self.shares, default=0) < 1 or sum(self.shares) != WHOLE:
            raise PrivacyError(f"shares of turns are at least one and add up to {WHOLE}, found {self.shares}.")

    @property
    def number(self) -> int:
        return len(self.shares)

    def of(self, block: Block) -> npt.NDArray[np.int64]:
        """The turn of every rating of a block, the same however the table is cut."""
        chance = (hashed_places(block, _OF_TURNS) >> np.uint64(40)) % np.uint64(WHOLE)
        return np.searchsorted(np.cumsum(self.shares), chance.astype(np.int64), side="right")


AT_ONCE = Turns()
"""Everybody in the first turn."""
