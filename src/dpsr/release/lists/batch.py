"""Lists for every user at once: blocks of users in, rows of a table out.

A block is a few hundred users. Which items can be among a user's n best is found in single precision, with none left
out; their order comes from the same arithmetic that one user alone gets (`ranking`), so the rows are those of
`Release.recommend`, bit for bit, whatever the block size and the number of threads. Threads take a block each; blocks
are given back in order and only as many are under way as there are threads, so memory does not grow with the number of
users.

**None left out.** Let p and r be the products A_u . B_j and R_u . S_j as single precision gives them, in whatever order
they were summed. With d factors and u = 2^-24 (rounding of either input, of every product and of every sum),

    | p - A_u . B_j |  <=  gamma |A_u| |B_j|,     gamma = 2 (d + 8) u  >  (1 + u)^(d + 3) - 1,

and the score increases in both, so it lies between `low` and `high`, the scores at the ends of the two intervals. Let t
be the n-th largest `low` of a user. At least n items score t or more, hence an item with high < t is not among the n
best; all others are candidates, whose order is then decided in double precision. t only grows while items
pass by, so those that fail are dropped on the way. Room for candidates is limited; a user with more of them (many equal
items) is reported instead, and ranked over all items.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from math import inf, sqrt
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dpsr.arrays import Floats, Ints, Singles
from dpsr.errors import ParameterError
from dpsr.linalg.compiled import n_threads, one_blas_thread
from dpsr.release.atomic import atomic_table
from dpsr.release.lists.kernels import MARGIN, drop_all, see_tile
from dpsr.release.lists.ranking import check_number, score_pairs
from dpsr.types import Mask, Model
from dpsr.types.model import HARDLY

TILE = 2_048
"""Items scored at a time: a block of users times a tile stays within the processor's cache."""

_UNIT = 2.0**-24
_LARGEST = 1e15
"""Norms up to this cannot overflow in single precision."""


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows of one side in single precision, and gamma times their norms in double."""

    single: Singles
    error_factor: Floats

    @classmethod
    def of(cls, rows: Floats) -> Rows:
        """Norms are rounded up a little, since the bound needs them whole. What does not fit is infinite."""
        norms = np.sqrt(np.einsum("rd,rd->r", rows, rows)) * (1 + MARGIN)
        with np.errstate(over="ignore"):  # then `representable` is false, and single precision is not asked
            single = np.ascontiguousarray(rows, dtype=np.float32)
        return cls(single, norms * sqrt(2 * (rows.shape[1] + 8) * _UNIT))


@dataclass(frozen=True, eq=False)
class Shortlist:
    """Items of each user of a block that may be among its best; a count of -1 says that there was no room."""

    items: npt.NDArray[np.int32]
    counts: npt.NDArray[np.int64]


class Candidates:
    """Finds the shortlists of blocks of users. Holds the item side in single precision; safe to use from threads."""

    def __init__(self, model: Model, n: int) -> None:
        if not isinstance(model.mask, Mask):
            raise ParameterError(
                "lists leave out what was rated, and this model does not hold it. Load the release folder."
            )
        self.model, self.mask, self.n = model, model.mask, n
        factors = [(model.user_factors, model.item_factors)]
        if model.affinity is not None:
            factors.append((model.affinity.users, model.affinity.items))
        self.representable = all(bool((np.abs(side) < _LARGEST).all()) for pair in factors for side in pair)
        """Whether the numbers fit single precision at all."""
        self._sides = [(users, Rows.of(items)) for users, items in factors]

    def of_block(self, start: int, stop: int) -> Shortlist:
        """The shortlists of the users `start:stop`."""
        mask, block = self.mask, _Block(self.model, self.mask, self.n, start, stop)
        users = [Rows.of(side[start:stop]) for side, _ in self._sides]
        pages = [np.empty((stop - start) * TILE, dtype=np.float32) for _ in users]
        for first in range(0, mask.n_items, TILE):
            tile = slice(first, min(first + TILE, mask.n_items))
            items = [Rows(rows.single[tile], rows.error_factor[tile]) for _, rows in self._sides]
            block.see(first, users, items, [_product(*three) for three in zip(users, items, pages, strict=True)])
        return block.shortlist()


def _product(users: Rows, items: Rows, page: Singles) -> Singles:
    shape = len(users.single), len(items.single)
    return np.matmul(users.single, items.single.T, out=page[: shape[0] * shape[1]].reshape(shape))


class _Block:
    """What is remembered of a block of users while tiles of items pass by."""

    def __init__(self, model: Model, mask: Mask, n: int, start: int, stop: int) -> None:
        height, room = stop - start, 4 * n + 64
        self.weights = model.affinity is not None, model.overall, model.deviation * sqrt(2.0), HARDLY
        self.rated = mask.items, mask.indptr[start:stop].copy(), mask.indptr[start + 1 : stop + 1]
        self.best = np.full((height, n), -inf)  # a heap of the n largest `low`, the least of them first
        self.items = np.empty((height, room), dtype=np.int32)
        self.highs = np.empty((height, room))
        self.counts = np.zeros(height, dtype=np.int64)

    def see(self, first: int, users: list[Rows], items: list[Rows], products: list[Singles]) -> None:
        pairs = list(zip(users, items, products, strict=True))
        predicted, meets = (
            (product, own.error_factor, theirs.error_factor) for own, theirs, product in (pairs[0], pairs[-1])
        )  # without an affinity they are the same
        kept = self.best, self.items, self.highs, self.counts
        see_tile(first, predicted, meets, self.weights, self.rated, kept)

    def shortlist(self) -> Shortlist:
        drop_all(self.best, self.items, self.highs, self.counts)
        return Shortlist(self.items, self.counts)


Progress = Callable[[int, int], None]

BLOCK = 512
"""Users at a time: large enough for matrix products to be fast, 8 MB a thread for products with a tile of items."""


@dataclass(frozen=True, eq=False)
class Lists:
    """The lists of consecutive users, row by row: codes of user and item, place in the list from 1, clipped rating."""

    users: Ints
    ranks: Ints
    items: Ints
    scores: Floats


def write_lists(
    model: Model,
    path: Path,
    n: int,
    *,
    overwrite: bool = False,
    progress: Progress | None = None,
    titles: list[str | None] | None = None,
) -> Path:
    """Every user's `n` best unrated items as a table (user, rank, item, score[, title]), whole or not at all."""
    mask = model.mask
    kinds = [("user", mask.user_ids.type), ("rank", pa.int32()), ("item", mask.item_ids.type), ("score", pa.float64())]
    named = None if titles is None else pa.array(titles, pa.string())
    schema = pa.schema(kinds if named is None else [*kinds, ("title", pa.string())])
    with atomic_table(path, schema, overwrite=overwrite) as rows:
        done = 0
        for lists in all_lists(model, n):
            rows.write_table(table(model, lists, schema, named))
            done = min(done + BLOCK, mask.n_users)
            if progress is not None:
                progress(done, mask.n_users)
    return path


def all_lists(model: Model, n: int, *, block: int = BLOCK, threads: int | None = None) -> Iterator[Lists]:
    """The lists of all users, `block` users at a time and in order."""
    check_number(n)
    if block < 1:
        raise ParameterError(f"a block has at least one user, found {block}. Leave it out for the usual {BLOCK}.")
    candidates = Candidates(model, min(n, model.mask.n_items))
    spans = [(start, min(start + block, model.mask.n_users)) for start in range(0, model.mask.n_users, block)]
    workers = threads or n_threads()
    with one_blas_thread(), ThreadPoolExecutor(workers) as pool:
        under_way: deque[Future[Lists]] = deque()
        for span in spans:
            under_way.append(pool.submit(_lists_of, candidates, *span))
            if len(under_way) > workers:
                yield under_way.popleft().result()
        while under_way:
            yield under_way.popleft().result()


def _lists_of(candidates: Candidates, start: int, stop: int) -> Lists:
    model, n = candidates.model, candidates.n
    users, items = _pairs(candidates.mask, _shortlist(candidates, start, stop), start)
    scores, predicted = score_pairs(model, users, items)
    order = np.lexsort((items, -scores, users))
    counts = np.bincount(users - start, minlength=stop - start)
    places = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
    order, ranks = order[places < n], places[places < n] + 1
    return Lists(users[order], ranks, items[order], model.scale.clip(predicted[order]))


def _shortlist(candidates: Candidates, start: int, stop: int) -> Shortlist:
    if candidates.representable:
        return candidates.of_block(start, stop)
    return Shortlist(np.empty((stop - start, 0), dtype=np.int32), np.full(stop - start, -1))


def _pairs(mask: Mask, shortlist: Shortlist, start: int) -> tuple[Ints, Ints]:
    """Users and items to score; all unrated items for whoever has no shortlist."""
    lists = []
    for row, count in enumerate(shortlist.counts):
        lists.append(shortlist.items[row, :count] if count >= 0 else _unrated(mask, start + row))
    sizes = [len(items) for items in lists]
    return np.repeat(np.arange(start, start + len(lists)), sizes), np.concatenate(lists).astype(np.int64)


def _unrated(mask: Mask, user: int) -> npt.NDArray[np.int32]:
    open_items = np.ones(mask.n_items, dtype=bool)
    open_items[mask.items[mask.indptr[user] : mask.indptr[user + 1]]] = False
    return np.flatnonzero(open_items).astype(np.int32)


def table(model: Model, lists: Lists, schema: pa.Schema, titles: pa.Array | None = None) -> pa.Table:
    """Lists with ids: user, rank, item, score, and perhaps titles."""
    columns = [
        model.mask.user_ids.take(pa.array(lists.users)),
        pa.array(lists.ranks, type=pa.int32()),
        model.mask.item_ids.take(pa.array(lists.items)),
        pa.array(lists.scores),
        *([] if titles is None else [titles.take(pa.array(lists.items))]),
    ]
    return pa.table(columns, schema=schema)
