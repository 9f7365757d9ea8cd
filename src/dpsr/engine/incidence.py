"""The mask as a linear map, whole or with weights on it: products one block at a time.

    by_user       Y_u  = sum_{e of u} a_e X_{j(e)}           user rows from an item-side array
    add_by_item   Z_j += sum_{e of j} a_e Y_{u(e)}           item-side sums from user rows
    at_ratings    l_e  = P_u . Q_j                           two thin factors at every rating

One thread owns each row of a result and adds in the order of the data, so the bits do not depend on the thread count.

**Weights** follow from a public division: which question each rating spends its budget on, and in which turn it is
asked, by counts of items and users and by place. Every row has a class (octaves of its count). For each pair of classes
two small tables say the item's share of a rating's weight in the sums, and how many of 256 ratings are asked one by
one; which ones follows from a hash of their places in the table. A rating that is asked one by one weighs `light` of
`GRID` in the sums, any other all of it; of either, `pooled` of `GRID` is its weight in the sums over all ratings
(`contrasts.py`), and item and user share the rest. So a rating's part in the answers follows from who rated what alone,
and is the same however the table is cut.

What earlier turns answered may decide how later ones are asked. A rating has one turn, so it is asked once however many
turns there are.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from numba import prange

from dpsr.arrays import AnyInts, Codes, Floats, Ints
from dpsr.certify.parts import DIVIDED_GRID
from dpsr.engine.place_hash import hashed_place, hashed_places
from dpsr.engine.table import Block, BlockResult, Table, zeros
from dpsr.errors import PrivacyError
from dpsr.linalg.compiled import fast_parallel_kernel, parallel_kernel, threads_for
from dpsr.types import Census

Bytes: TypeAlias = npt.NDArray[np.uint8]

_ONES = np.empty(0)
"""Stands for values that are all one."""

_STEP = 4
"""Multiply-adds that take as long as fetching one number by its index."""


@dataclass(frozen=True, eq=False)
class ColumnStack:
    """Arrays side by side, put together only for the rows that are asked for: a whole one would be a copy of all."""

    parts: tuple[Floats, ...]

    def __getitem__(self, rows: slice) -> Floats:
        return np.column_stack([part[rows] for part in self.parts])


def by_user(block: Block, X: Floats, values: Floats = _ONES) -> Floats:
    """A X for the block's users, A the mask or `values` on it."""
    Y = np.empty((block.n_users, X.shape[1]))
    with threads_for(_STEP * len(block.items) * X.shape[1]):
        if X.shape[1] == 1 and values is _ONES:
            _rows_sums(block.indptr, block.items, np.ascontiguousarray(X[:, 0]), Y[:, 0])
            return Y
        _rows_times(block.indptr, block.items, values, np.ascontiguousarray(X), Y)
    return Y


def add_by_item(block: Block, Y: Floats, out: Floats, values: Floats = _ONES) -> None:
    """out += A' Y for the block's users."""
    by = block.by_item
    with threads_for(_STEP * len(block.items) * Y.shape[1]):
        if Y.shape[1] == 1 and values is _ONES:
            _add_columns_sums(by.items, by.ptr, by.rows, np.ascontiguousarray(Y[:, 0]), out[:, 0])
            return
        _add_columns_times(by.items, by.ptr, by.rows, by.places, values, np.ascontiguousarray(Y), out)


def coded_both(
    block: Block, users: Floats, items: Floats, codes: Bytes, to_items: Floats, to_users: Floats, out: Floats
) -> Floats:
    """out += A' users, and B items for the block's users; A, B are weights of codes on the mask."""
    by, rows = block.by_item, np.empty((block.n_users, items.shape[1]))
    users, items = np.ascontiguousarray(users), np.ascontiguousarray(items)
    with threads_for(_STEP * len(block.items) * min(users.shape[1], items.shape[1])):
        if users.shape[1] == items.shape[1] == 1:
            _add_columns_coded_sums(by.items, by.ptr, by.rows, by.places, codes, to_items, users[:, 0], out[:, 0])
            _rows_coded_sums(block.indptr, block.items, codes, to_users, items[:, 0], rows[:, 0])
        else:
            _add_columns_coded(by.items, by.ptr, by.rows, by.places, codes, to_items, users, out)
            _rows_coded(block.indptr, block.items, codes, to_users, items, rows)
    return rows


def at_ratings(block: Block, left: Floats, right: Floats) -> Floats:
    """left_u . right_j at every rating of the block; `left` holds the block's users only."""
    with threads_for(len(block.items) * left.shape[1]):
        return _inner(block.indptr, block.items, np.ascontiguousarray(left), np.ascontiguousarray(right))


class Incidence:
    """The 0/1 mask M of a table as a linear map."""

    def __init__(self, table: Table) -> None:
        self._table = table.mask_only()
        self._n_items = table.census.n_items

    def both(self, users: Floats, items: Floats) -> tuple[Floats, Floats]:
        """M' users (item side) and M items (user side), in one pass. Vectors, or blocks of columns."""
        U, V = (array if array.ndim == 2 else array[:, None] for array in (users, items))

        def add(block: Block, sums: Floats) -> BlockResult:
            add_by_item(block, U[block.users], sums)
            return BlockResult(rows=(by_user(block, V),))

        answer = self._table.run(add, [zeros(self._n_items, U.shape[1])])
        sums, rows = answer.sums[0], answer.rows[0]
        return sums if users.ndim == 2 else sums[:, 0], rows if items.ndim == 2 else rows[:, 0]

    def gram(self, left: Floats, right: Floats, X: Floats) -> Floats:
        """N' N X  for  N = diag(left) M diag(right)."""
        scaled = right[:, None] * X

        def add(block: Block, sums: Floats) -> None:
            add_by_item(block, left[block.users, None] ** 2 * by_user(block, scaled), sums)

        return right[:, None] * self._table.run(add, [zeros(*X.shape)]).sums[0]


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
class RowSums:
    """Some of the sums over rows: which items have theirs in it, and which users."""

    items: npt.NDArray[np.bool_]
    users: npt.NDArray[np.bool_]

    def __post_init__(self) -> None:
        if any(rows.dtype != np.bool_ or rows.ndim != 1 for rows in (self.items, self.users)):
            raise PrivacyError("which sums are asked is true or false for every row: numbers could name a row twice.")

    @classmethod
    def all(cls, census: Census) -> RowSums:
        """Those of every row."""
        return cls(np.ones(census.n_items, dtype=bool), np.ones(census.n_users, dtype=bool))

    def __or__(self, other: RowSums) -> RowSums:
        return RowSums(self.items | other.items, self.users | other.users)

    def meets(self, other: RowSums) -> bool:
        """Whether they have a sum in common."""
        return bool((self.items & other.items).any() or (self.users & other.users).any())


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

    def at(self, block: Block) -> tuple[Floats, Floats]:
        """The weights of every rating of a block: in its item's sum, and in its user's."""
        codes = self._codes(block)
        return self.item_weights[codes], self.user_weights[codes]

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
        return np.repeat(np.arange(self.number), self.shares)[chance.astype(np.int64)]


AT_ONCE = Turns()
"""Everybody in the first turn."""


@fast_parallel_kernel
def _rows_times(indptr: Ints, items: Codes, values: Floats, X: Floats, Y: Floats) -> None:
    b, ones = X.shape[1], len(values) == 0
    for u in prange(len(indptr) - 1):
        y = Y[u]
        y[:] = 0.0
        for e in range(indptr[u], indptr[u + 1]):
            x = X[np.uint32(items[e])]
            a = 1.0 if ones else values[e]
            for c in range(b):
                y[c] += a * x[c]


@fast_parallel_kernel
def _add_columns_times(
    occurring: Codes, ptr: Ints, rows: Codes, places: Codes, values: Floats, Y: Floats, out: Floats
) -> None:
    b, ones = Y.shape[1], len(values) == 0
    for i in prange(len(occurring)):
        to = out[np.uint32(occurring[i])]
        for e in range(ptr[i], ptr[i + 1]):
            y = Y[np.uint32(rows[e])]
            a = 1.0 if ones else values[np.uint32(places[e])]
            for c in range(b):
                to[c] += a * y[c]


@fast_parallel_kernel
def _rows_coded(indptr: Ints, items: Codes, codes: Bytes, weights: Floats, X: Floats, Y: Floats) -> None:
    for u in prange(len(indptr) - 1):
        y = Y[u]
        y[:] = 0.0
        for e in range(indptr[u], indptr[u + 1]):
            x, a = X[np.uint32(items[e])], weights[codes[e]]
            for c in range(len(y)):
                y[c] += a * x[c]


@fast_parallel_kernel
def _add_columns_coded(
    occurring: Codes, ptr: Ints, rows: Codes, places: Codes, codes: Bytes, weights: Floats, Y: Floats, out: Floats
) -> None:
    for i in prange(len(occurring)):
        to = out[np.uint32(occurring[i])]
        for e in range(ptr[i], ptr[i + 1]):
            y, a = Y[np.uint32(rows[e])], weights[codes[np.uint32(places[e])]]
            for c in range(len(to)):
                to[c] += a * y[c]


@parallel_kernel
def _rows_coded_sums(indptr: Ints, items: Codes, codes: Bytes, weights: Floats, x: Floats, y: Floats) -> None:
    for u in prange(len(indptr) - 1):
        total = 0.0
        for e in range(indptr[u], indptr[u + 1]):
            total += weights[codes[e]] * x[np.uint32(items[e])]
        y[u] = total


@parallel_kernel
def _add_columns_coded_sums(
    occurring: Codes, ptr: Ints, rows: Codes, places: Codes, codes: Bytes, weights: Floats, y: Floats, out: Floats
) -> None:
    for i in prange(len(occurring)):
        total = 0.0
        for e in range(ptr[i], ptr[i + 1]):
            total += weights[codes[np.uint32(places[e])]] * y[np.uint32(rows[e])]
        out[np.uint32(occurring[i])] += total


@parallel_kernel
def _rows_sums(indptr: Ints, items: Codes, x: Floats, y: Floats) -> None:
    for u in prange(len(indptr) - 1):
        total = 0.0
        for e in range(indptr[u], indptr[u + 1]):
            total += x[np.uint32(items[e])]
        y[u] = total


@parallel_kernel
def _add_columns_sums(occurring: Codes, ptr: Ints, rows: Codes, y: Floats, out: Floats) -> None:
    for i in prange(len(occurring)):
        total = 0.0
        for e in range(ptr[i], ptr[i + 1]):
            total += y[np.uint32(rows[e])]
        out[np.uint32(occurring[i])] += total


@fast_parallel_kernel
def _inner(indptr: Ints, items: Codes, left: Floats, right: Floats) -> Floats:
    out = np.empty(len(items))
    for u in prange(len(indptr) - 1):
        a = left[u]
        for e in range(indptr[u], indptr[u + 1]):
            b = right[np.uint32(items[e])]
            total = 0.0
            for c in range(len(b)):
                total += a[c] * b[c]
            out[e] = total
    return out
