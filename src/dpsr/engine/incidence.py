"""Products with the mask and with values on it, one block at a time.

    by_user       Y_u  = sum_{e of u} a_e X_{j(e)}           user rows from an item-side array
    add_by_item   Z_j += sum_{e of j} a_e Y_{u(e)}           item-side sums from user rows
    at_ratings    l_e  = P_u . Q_j                           two thin factors at every rating

One thread owns each row of a result and adds in the order of the data, so the bits do not depend on the thread count.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from numba import prange

from dpsr.arrays import Codes, Floats, Ints
from dpsr.engine.table import Block, BlockResult, Table, zeros
from dpsr.linalg.compiled import fast_parallel_kernel, parallel_kernel, threads_for

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


def moments_at_ratings(
    table: Table, left: Floats | ColumnStack, right: Floats, sample: int
) -> tuple[float, float, Floats]:
    """Mean and variance of left_u . right_j over ratings, and some `sample` of them evenly spread."""
    step = max(1, table.census.n_ratings // sample)

    def add(block: Block, sums: Floats) -> BlockResult:
        values = at_ratings(block, left[block.users], right)
        sums += np.array([len(values), values.sum(), (values**2).sum()])
        return BlockResult(rows=(block.every(step, values),))

    answer = table.run(add, [zeros(3)])
    n, total, squares = answer.sums[0]
    mean = total / max(n, 1)
    return mean, max(squares / max(n, 1) - mean**2, 0.0), answer.rows[0]


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
