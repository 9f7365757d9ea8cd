"""The K items most like each item, from sparse columns (Algorithm 1, lines 11, 12 and 15).

    s_jk = sum_{i rated both} x_ij x_ik,      x_ij = (r_ij - mean_j) / sqrt( sum_{i rated j} (r_ij - mean_j)^2 )

the cosine of item columns centred by their own mean and zero elsewhere: co-raters in the numerator, all raters in the
denominator. N_j are the K largest |s_jk|, ties to the lower index, zeros never, j itself never.

Equal similarities must tie, and zero ones vanish, whatever order the sums were taken in. So similarities are compared
on a grid: |s| counts as rint(|s| 2^31) quanta. Two values that are equal in real numbers differ by some 1e-16 in floats
and land on different grid points with probability below 1e-6; a finer grid would only make that likelier, and a coarser
one would begin to merge similarities that differ. A column whose values lie within 2^-30 of the scale's width of each
other is constant: it has norm zero and no neighbours.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpsr.denoise.kernels import Columns, arrange, column_statistics, strongest_pairs
from dpsr.errors import ParameterError
from dpsr.linalg.compiled import threads_for
from dpsr.linalg.pattern import Pattern
from dpsr.types import PrivateRatings

CONSTANT = 2.0**-30
"""The spread, as a share of the scale's width, up to which a column counts as constant."""


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

    Each pair is computed once, from the rarer item's raters, and offered to both: half the work of the plain product.
    Memory is O(ratings + n k) per thread. The result does not depend on the number of threads.
    """
    if k < 1:
        raise ParameterError(f"an item needs room for at least one neighbour, found k={k}. Choose k between 5 and 50.")
    mask = private.mask
    k = min(k, max(mask.n_items - 1, 1))
    pairs = int((mask.user_counts**2).sum()) // 2
    with threads_for(pairs) as threads:
        return Neighbours(*strongest_pairs(*_centred(private), mask.n_items, k, threads))


def _centred(private: PrivateRatings) -> Columns:
    """The centred, normalised columns that are not constant, the most popular first."""
    mask, scale = private.mask, private.scale
    pattern = Pattern.from_rows(mask.indptr, mask.items, mask.n_items)
    mean, norm, spread = column_statistics(pattern.column_indptr, pattern.places, private.values)
    live = np.flatnonzero(spread > CONSTANT * scale.width)
    order = live[np.argsort(-mask.item_counts[live], kind="stable")]
    return arrange(mask.indptr, pattern.column_indptr, pattern.rows, pattern.places, private.values, mean, norm, order)
