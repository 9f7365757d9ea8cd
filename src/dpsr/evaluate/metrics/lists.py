"""How good lists are where there are no ratings, as pure functions of arrays; and how narrow.

`lists` has one row a person: item codes, best first, -1 where the list has run out. What was hidden of a person is a
row of a `Mask`, n_u items of it. Each measure of accuracy is one number a person, NaN where nothing was hidden:

    Recall@k  =  #{ i <= k : the i-th item was hidden } / min(k, n_u)          so that a perfect list has 1 at every k
    NDCG@k    =  sum_{i <= k, hidden} 1 / log2(i + 1)  /  sum_{i <= min(k, n_u)} 1 / log2(i + 1)

(Liang et al. 2018). Of all lists together:

    coverage         the share of the catalogue that stands among the first k of anybody
    popularity bias  how often the listed items occur in training, on average over people and places, as a multiple of
                     how often what was hidden does: 1 where lists are as popular as what people choose themselves

They read who did what, so no figure is private.
"""

from __future__ import annotations

import numpy as np

from dpsr.arrays import AnyInts, Bools, Floats, Ints
from dpsr.evaluate.metrics.accuracy import discounts
from dpsr.types import Mask


def hits_of(lists: AnyInts, hidden: Mask) -> Bools:
    """Which places of the lists hold something hidden; row u of the lists belongs to user u of the mask."""
    cells = hidden.users.astype(np.int64) * hidden.n_items + hidden.items
    asked = np.arange(len(lists))[:, None] * hidden.n_items + lists
    place = np.minimum(np.searchsorted(cells, asked), max(len(cells) - 1, 0))
    found = cells[place] == asked if len(cells) else np.zeros(lists.shape, dtype=np.bool_)
    return np.asarray(found & (lists >= 0))


def recall_at(hits: Bools, n_hidden: Ints, k: int) -> Floats:
    """Recall@k of every person.

    >>> recall_at(np.array([[True, False, True]]), np.array([4]), 2)
    array([0.5])
    """
    return _share(hits[:, :k].sum(axis=1).astype(np.float64), np.minimum(n_hidden, k).astype(np.float64))


def list_ndcg_at(hits: Bools, n_hidden: Ints, k: int) -> Floats:
    """NDCG@k of every person, every hidden item worth the same.

    >>> list_ndcg_at(np.array([[False, True]]), np.array([1]), 2).round(6)  # in second place: 1 / log2(3)
    array([0.63093])
    """
    best = np.concatenate([[0.0], np.cumsum(discounts(k))])
    return _share(hits[:, :k] @ discounts(hits[:, :k].shape[1]), best[np.minimum(n_hidden, k)])


def coverage_at(lists: AnyInts, n_items: int, k: int) -> float:
    """The share of the catalogue that anybody is shown.

    >>> coverage_at(np.array([[0, 1], [1, -1]]), 4, 2)
    0.5
    """
    shown = np.unique(lists[:, :k])
    return float((shown >= 0).sum() / n_items)


def popularity_bias_at(lists: AnyInts, hidden: Mask, counts: Ints, k: int) -> float:
    """How popular the listed items are, as a multiple of what people choose; NaN without lists or anything hidden.

    >>> hidden = Mask(["ann"], ["a", "b"], np.array([0, 1]), np.array([1], dtype=np.int32))
    >>> popularity_bias_at(np.array([[0]]), hidden, np.array([6, 2]), 1)
    3.0
    """
    listed = [counts[row[row >= 0]].mean() for row in lists[:, :k] if (row >= 0).any()]
    people = np.flatnonzero(hidden.user_counts)
    sums = np.add.reduceat(counts[hidden.items], hidden.indptr[people]) if len(people) else np.empty(0)
    chosen = sums / hidden.user_counts[people]
    return float(np.mean(listed) / np.mean(chosen)) if listed and len(chosen) and chosen.any() else float("nan")


def mean_of_known(values: Floats) -> float:
    """The mean over people of whom something was hidden; NaN if there are none."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else float("nan")


def _share(found: Floats, most: Floats) -> Floats:
    return np.divide(found, most, out=np.full(len(found), np.nan), where=most > 0)
