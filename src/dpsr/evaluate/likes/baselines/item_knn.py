"""Items like those a person has: cosine of presence, shrunk, each item's nearest neighbours only (Sarwar et al. 2001).

    s_ij = n_ij / (sqrt(n_i n_j) + shrinkage),     score_j = sum over the person's items i near j of s_ij

n_ij counts the people who met both.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import product

import numpy as np
import scipy.sparse as sp

from dpsr.data import Interactions
from dpsr.evaluate.likes.baselines.tuning import best_setting
from dpsr.evaluate.likes.contract import ItemToItem, baskets_of
from dpsr.types import Mask

NEIGHBOURS, SHRINKAGE = (50, 200), (0.0, 20.0)


def item_knn(likes: Interactions, seed: int) -> ItemToItem:
    """Neighbours and shrinkage chosen on people held back."""
    settings = list(product(NEIGHBOURS, SHRINKAGE))
    return neighbours(likes, best_setting(likes, seed, settings, neighbours))


def neighbours(likes: Interactions, setting: tuple[int, float]) -> ItemToItem:
    """The model at one setting: how many neighbours an item has, and the shrinkage."""
    k, shrinkage = setting
    both, root = _met_together(likes.mask), np.sqrt(likes.mask.item_counts)
    rows = np.repeat(np.arange(likes.n_items), np.diff(both.indptr))
    near = both.data / (root[rows] * root[both.indices] + shrinkage)
    kept = np.ones(len(near), dtype=np.bool_)
    for item in np.flatnonzero(np.diff(both.indptr) > k):
        row = slice(both.indptr[item], both.indptr[item + 1])
        kept[row] = near[row] >= np.partition(near[row], -k)[-k]
    weights = sp.csr_matrix((near[kept], (both.indices[kept], rows[kept])), shape=both.shape)
    return ItemToItem(weights)


@lru_cache(maxsize=2)
def _met_together(mask: Mask) -> sp.csr_matrix:
    """How many people met both of two different items."""
    baskets = baskets_of(mask).astype(np.float32)
    both = (baskets.T @ baskets).tocsr()
    both.setdiag(0)
    both.eliminate_zeros()
    return both
