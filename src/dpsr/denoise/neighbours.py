"""The K items most like each item, from sparse columns (Algorithm 1, lines 11, 12 and 15).

    s_jk = sum_{i rated both} x_ij x_ik,      x_ij = (r_ij - mean_j) / sqrt( sum_{i rated j} (r_ij - mean_j)^2 )

the cosine of item columns centred by their own mean and zero elsewhere: co-raters in the numerator, all raters in the
denominator. N_j are the K largest |s_jk|, ties to the lower index, zeros never, j itself never.

Equal similarities must tie, and zero ones vanish, whatever order the sums were taken in. So similarities are compared
on a grid: |s| counts as rint(|s| 2^31) quanta. Two values that are equal in real numbers differ by some 1e-16 in floats
and land on different grid points with probability below 1e-6; a finer grid would only make that likelier, and a coarser
one would begin to merge similarities that differ.

In three steps: `columns` centres and sorts, `proposals` finds in single precision what may matter, `verdict` decides in
double precision.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpsr.denoise.columns import centred
from dpsr.denoise.proposals import propose
from dpsr.denoise.verdict import settle
from dpsr.errors import ParameterError
from dpsr.linalg.compiled import threads_for
from dpsr.types import PrivateRatings

SPARE = 8
"""Proposals beyond K: room for near-ties, which single precision cannot tell apart."""


@dataclass(frozen=True, eq=False)
class Neighbours:
    """For each item, its neighbours from the most similar on.

    `items[j]` are item codes padded with -1, `similarities[j]` the signed s_jk padded with 0.
    """

    items: npt.NDArray[np.int32]
    similarities: npt.NDArray[np.float64]

    def __post_init__(self) -> None:
        self.items.setflags(write=False)
        self.similarities.setflags(write=False)

    @property
    def counts(self) -> npt.NDArray[np.int64]:
        """How many neighbours each item has, at most K."""
        return (self.items >= 0).sum(axis=1)


def item_neighbours(private: PrivateRatings, *, k: int) -> Neighbours:
    """The `k` items most similar to each item, by the noisy ratings.

    Memory is O(ratings + n k) per thread. The result does not depend on the number of threads.
    """
    mask = private.mask
    k = room_for(k, mask.n_items)
    pairs = int((mask.user_counts**2).sum()) // 2
    with threads_for(pairs) as threads:
        columns, lists = centred(private, threads)
        proposals = propose(lists, len(columns.order), k + SPARE, threads)
        return Neighbours(*settle(columns, lists, proposals, mask.n_items, k, threads))


def room_for(k: int, n_items: int) -> int:
    """How many neighbours an item can have."""
    if k < 1:
        raise ParameterError(f"an item needs room for at least one neighbour, found k={k}. Choose k between 5 and 50.")
    return min(k, max(n_items - 1, 1))
