"""Which pairs of items may matter, by similarities in single precision.

Sixteen items at a time, neighbours in popularity, form a tile. A user's ratings of a tile are one line of sixteen
floats (zeros where not rated); it is added, times x_uq, to the line of every item q the user rated, up to the tile
itself. So each pair of items is met once, in the tile of its rarer one, and a multiply-add covers sixteen pairs. A tile
holds 64 bytes per item; nothing of size n x n exists.

The error is bounded, not guessed. A sum of at most BLOCK products is closed and added to a second sum. With u = 2^-24,
each x rounded once, each product once, at most BLOCK additions below and C above, the computed s' of a pair obeys

    |s' - s|  <=  (BLOCK + C + 3) u / (1 - (BLOCK + C + 3) u)  *  sum_i |x_ij x_ik|,      sum_i |x_ij x_ik| <= 1

by Cauchy and Schwarz; adding a zero is exact and counts for nothing. `error_bound` is that, with room for the products
that underflow and for columns that are longer than one by rounding.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from numba import prange

from dpsr.denoise.columns import Floats32, Lists, Names
from dpsr.denoise.heap import INDEX_BITS, Keys, keep
from dpsr.linalg.compiled import kernel, parallel_kernel
from dpsr.linalg.lanes import LINE, exceeds, spread, zero_lines
from dpsr.linalg.pattern import Codes, Integers, accumulated, row_ranges

TILE = LINE // 4
"""Items in a tile: one line of floats."""

BLOCK = 512
"""Products added up before the sum is closed."""

_ROOM = 1 << 29
"""Bytes that the tiles and candidates of all threads may take together; where they would take more, fewer work."""


@dataclass(frozen=True, eq=False)
class Proposals:
    """`keys[t, p]` are the best candidates of item p among those thread t met; |s'| of all others is no better.

    `error` bounds |s' - s| of every pair; pairs with |s'| < `error` are not in it.
    """

    keys: npt.NDArray[np.int64]
    error: float


def propose(lists: Lists, n: int, size: int, threads: int) -> Proposals:
    """The `size` strongest partners of each of n items, in single precision."""
    groups = _grouped(lists.indptr, lists.last, lists.names, -(-n // TILE), row_ranges(lists.indptr, threads))
    threads = max(1, min(threads, _ROOM // max(n * (2 * LINE + 8 * size), 1)))
    counts = np.diff(groups[0])
    error = error_bound(int(counts.max(initial=0)))
    closed = int(np.flatnonzero(counts > BLOCK).max(initial=-1)) + 1
    sums, totals = (zero_lines(threads, rows, np.float32).reshape(threads, -1) for rows in (n + TILE, closed * TILE))
    floors = np.full((threads, n + TILE), error, np.float32)
    keys = np.zeros((threads, n, size), np.int64)
    _fill(lists.indptr, lists.last, lists.names, lists.x, *groups, sums, totals, floors, keys)
    return Proposals(keys, error)


def error_bound(n_users: int) -> float:
    """A bound of |s' - s| when no tile has more than `n_users` raters."""
    steps = BLOCK + -(-n_users // BLOCK) + 3
    return 1.05 * steps * 2.0**-24 + 2.0**-30 if steps < 2**18 else np.inf


@kernel
def strength(s: np.float32) -> int:
    """|s| as an integer of the same order: the bits of a float of zero sign."""
    return int(np.float32(abs(s)).view(np.int32))


@kernel
def weakness(key: int) -> np.float32:
    """The |s'| of a candidate's key; 0 for an empty place."""
    return np.int32(key >> INDEX_BITS).view(np.float32)


@parallel_kernel
def _grouped(
    indptr: Integers, last: Integers, names: Names, tiles: int, ranges: Integers
) -> tuple[Integers, Codes, Codes]:
    """The raters of each tile, ascending, and where in their lists the tile begins: a counting sort by tile."""
    parts = len(ranges) - 1
    cursors = np.zeros((parts, tiles), np.int64)
    for t in prange(parts):
        for u in range(ranges[t], ranges[t + 1]):
            before = -1
            for e in range(indptr[u], last[u]):
                tile = int(names[e]) // TILE
                cursors[t, tile] += tile != before
                before = tile
    pointers = accumulated(cursors)
    users = np.empty(pointers[-1], np.int32)
    offsets = np.empty(pointers[-1], np.int32)
    for t in prange(parts):
        for u in range(ranges[t], ranges[t + 1]):
            before = -1
            for e in range(indptr[u], last[u]):
                tile = int(names[e]) // TILE
                if tile != before:
                    users[cursors[t, tile]], offsets[cursors[t, tile]] = u, e - indptr[u]
                    cursors[t, tile] += 1
                    before = tile
    return pointers, users, offsets


@parallel_kernel
def _fill(
    indptr: Integers,
    last: Integers,
    names: Names,
    x: Floats32,
    pointers: Integers,
    users: Codes,
    offsets: Codes,
    sums: Floats32,
    totals: Floats32,
    floors: Floats32,
    keys: npt.NDArray[np.int64],
) -> None:
    """Each thread takes every so-manieth tile, from the rarest on: rare items have the strongest similarities."""
    threads, tiles = len(sums), len(pointers) - 1
    for t in prange(threads):
        line = np.zeros(TILE, np.float32)
        for tile in range(tiles - 1 - t, -1, -threads):
            group = slice(pointers[tile], pointers[tile + 1])
            raters, starts = users[group], offsets[group]
            work = _add_up(indptr, last, names, x, tile, raters, starts, line, sums[t], totals[t])
            found = totals[t] if len(raters) > BLOCK else sums[t]
            if work > 4 * tile:  # many lines were touched: look at all of them
                _offer_all(found, tile, floors[t], keys[t])
            else:
                _offer_touched(found, tile, indptr, last, names, raters, floors[t], keys[t])


@kernel
def _add_up(
    indptr: Integers,
    last: Integers,
    names: Names,
    x: Floats32,
    tile: int,
    raters: Codes,
    starts: Codes,
    line: Floats32,
    sums: Floats32,
    totals: Floats32,
) -> int:
    """The similarities of a tile with itself and all before it, in `totals` if its raters fill a block, else in `sums`.

    Returns how many lines were added to, a line counted each time.
    """
    work, top = 0, (tile + 1) * TILE
    for g in range(len(raters)):
        u = raters[g]
        begin, at, end = indptr[u], indptr[u] + starts[g], indptr[u] + starts[g]
        while end < last[u] and names[end] < top:
            line[names[end] & np.uint32(TILE - 1)] = x[end]
            end += 1
        spread(names, x, begin, end, line, sums)
        for e in range(at, end):
            line[names[e] & np.uint32(TILE - 1)] = 0.0
        work += end - begin
        if len(raters) > BLOCK and (g % BLOCK == BLOCK - 1 or g == len(raters) - 1):
            for i in range(top * TILE):
                totals[i] += sums[i]
                sums[i] = 0.0
    return work


@kernel
def _offer_all(found: Floats32, tile: int, floors: Floats32, keys: npt.NDArray[np.int64]) -> None:
    """Offer every pair of the tile, rarest partners first, and clear the lines."""
    for q in range(min((tile + 1) * TILE, len(keys)) - 1, -1, -1):
        _offer_line(found, q, tile, floors, keys)
    found[: (tile + 1) * TILE * TILE] = 0.0


@kernel
def _offer_touched(
    found: Floats32,
    tile: int,
    indptr: Integers,
    last: Integers,
    names: Names,
    raters: Codes,
    floors: Floats32,
    keys: npt.NDArray[np.int64],
) -> None:
    """The same by the raters' lists: a line is cleared when it is met, and zeros are offered to nobody."""
    for u in raters:
        for e in range(indptr[u], last[u]):
            q = int(names[e])
            if q >= (tile + 1) * TILE:
                break
            _offer_line(found, q, tile, floors, keys)
            found[q * TILE : (q + 1) * TILE] = 0.0


@kernel
def _offer_line(found: Floats32, q: int, tile: int, floors: Floats32, keys: npt.NDArray[np.int64]) -> None:
    """Offer the pairs of q with a tile to both sides, where either has not yet enough that is better."""
    p = tile * TILE
    hits = exceeds(found, q, floors[p : p + TILE], floors[q])
    while hits:
        if hits & np.uint64(1) and q < p:
            _offer(keys[p], floors, p, found[q * TILE + p % TILE], q)
            _offer(keys[q], floors, q, found[q * TILE + p % TILE], p)
        hits >>= np.uint64(1)
        p += 1


@kernel
def _offer(keys: Keys, floors: Floats32, p: int, s: np.float32, q: int) -> None:
    """Offer q to item p, and raise the floor under which p needs no more offers."""
    if abs(s) >= floors[p]:
        keep(keys, strength(s), q)
        floors[p] = max(floors[p], weakness(keys[0]))
