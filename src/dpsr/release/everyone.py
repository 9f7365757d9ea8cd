"""Lists for every user at once: blocks of users in, rows of a table out.

A block is a few hundred users. Its candidates come from single-precision matrix products (`candidates`), their order
from the same arithmetic that one user alone gets (`exact`), so the rows are those of `Release.recommend`, bit for bit,
whatever the block size and the number of threads. Threads take a block each; blocks are given back in order and only
as many are under way as there are threads, so memory does not grow with the number of users.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dpsr.errors import ParameterError
from dpsr.linalg.compiled import n_threads, one_blas_thread
from dpsr.release.candidates import Candidates, Shortlist
from dpsr.release.exact import score_pairs
from dpsr.release.whole import table_at
from dpsr.types import Mask, Model

Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]
Progress = Callable[[int, int], None]

BLOCK = 512
"""Users at a time: large enough for matrix products to be fast, 8 MB a thread for products with a tile of items."""


@dataclass(frozen=True, eq=False)
class Lists:
    """The lists of consecutive users, row by row: codes of user and item, place in the list from 1, clipped rating."""

    users: Places
    ranks: Places
    items: Places
    scores: Floats


def write_lists(
    model: Model,
    path: Path,
    n: int,
    *,
    overwrite: bool = False,
    block: int = BLOCK,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Path:
    """Every user's `n` best unrated items as a table (user, rank, item, score), whole or not at all."""
    mask = model.mask
    kinds = [("user", mask.user_ids.type), ("rank", pa.int32()), ("item", mask.item_ids.type), ("score", pa.float64())]
    schema = pa.schema(kinds)
    with table_at(path, schema, overwrite=overwrite) as rows:
        done = 0
        for lists in all_lists(model, n, block=block, threads=threads):
            rows.write_table(_table(model, lists, schema))
            done = min(done + block, mask.n_users)
            if progress is not None:
                progress(done, mask.n_users)
    return path


def all_lists(model: Model, n: int, *, block: int = BLOCK, threads: int | None = None) -> Iterator[Lists]:
    """The lists of all users, `block` users at a time and in order."""
    if n < 1 or block < 1:
        raise ParameterError(
            f"n and block must be at least 1, found {n} and {block}. Ask for the items you would show."
        )
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


def _pairs(mask: Mask, shortlist: Shortlist, start: int) -> tuple[Places, Places]:
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


def _table(model: Model, lists: Lists, schema: pa.Schema) -> pa.Table:
    columns = [
        model.mask.user_ids.take(pa.array(lists.users)),
        pa.array(lists.ranks, type=pa.int32()),
        model.mask.item_ids.take(pa.array(lists.items)),
        pa.array(lists.scores),
    ]
    return pa.table(columns, schema=schema)
