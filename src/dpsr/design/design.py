"""The public design: who rated what, by user and by item, with features of both sides."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from numba import prange

from dpsr.design.embeddings import mask_embeddings
from dpsr.design.features import public_features
from dpsr.linalg import Pattern
from dpsr.linalg.compiled import fast_parallel_kernel, threads_for
from dpsr.types import Affinity, Mask

Floats = npt.NDArray[np.float64]

RANK = 8
"""Columns of the mask embeddings. More cost time with the square and gained nothing on any set tried."""


@dataclass(frozen=True, eq=False)
class Design:
    """Everything that is computed from the mask alone.

    `x` (users) and `z` (items) have the constant first and the mask embedding in their last `embedding` columns.
    """

    mask: Mask
    pattern: Pattern
    x: Floats
    z: Floats
    embedding: int
    affinity: Affinity

    @classmethod
    def of(cls, mask: Mask, *, rank: int = RANK) -> Design:
        """Features and orderings of a mask."""
        pattern = Pattern.from_rows(mask.indptr, mask.items, mask.n_items)
        embeddings = mask_embeddings(mask, pattern, rank)
        x, z = public_features(mask, embeddings)
        return cls(mask, pattern, x, z, embeddings.items.shape[1], embeddings.affinity)

    @cached_property
    def user_counts(self) -> Floats:
        return self.mask.user_counts.astype(np.float64)

    @cached_property
    def item_counts(self) -> Floats:
        return self.mask.item_counts.astype(np.float64)

    @cached_property
    def incidence(self) -> sp.csr_matrix:
        """The 0/1 mask, users by items."""
        ones = np.ones(self.mask.n_ratings)
        return sp.csr_matrix((ones, self.mask.items, self.mask.indptr), shape=self.mask.shape)

    @cached_property
    def incidence_transposed(self) -> sp.csr_matrix:
        """The 0/1 mask, items by users."""
        ones = np.ones(self.mask.n_ratings)
        return sp.csr_matrix((ones, self.pattern.rows, self.pattern.column_indptr), shape=self.mask.shape[::-1])

    @cached_property
    def weight_groups(self) -> npt.NDArray[np.int64]:
        """Entries of W in z' W x that share a ridge.

        0 the constant; 1 and 2 an item's counts and embedding; 3 and 4 a user's; 5 products of both.
        """
        q, d = self.z.shape[1], self.x.shape[1]
        groups = np.full((q, d), 5)
        groups[0, 0] = 0
        groups[1 : q - self.embedding, 0], groups[q - self.embedding :, 0] = 1, 2
        groups[0, 1 : d - self.embedding], groups[0, d - self.embedding :] = 3, 4
        return groups

    def at_ratings(self, left: Floats, right: Floats) -> Floats:
        """left_u . right_j at every rating."""
        left, right = np.ascontiguousarray(left), np.ascontiguousarray(right)
        with threads_for(self.mask.n_ratings * left.shape[1]):
            return _inner(self.mask.indptr, self.mask.items, left, right)


@fast_parallel_kernel
def _inner(indptr: npt.NDArray[np.int64], items: npt.NDArray[np.int32], left: Floats, right: Floats) -> Floats:
    out = np.empty(len(items))
    for u in prange(len(indptr) - 1):
        for e in range(indptr[u], indptr[u + 1]):
            b = right[items[e]]
            total = 0.0
            for p in range(len(b)):
                total += left[u, p] * b[p]
            out[e] = total
    return out
