"""The item covariance of McSherry and Mironov 2009 and its sensitivity.

A user's ratings, centred by the noisy item effects, lose the user's own shrunken mean and are clamped:

    d_uj = y_uj - mean - item_j,    h_u = sum_j d_uj / (n_u + beta),    e_uj = clamp(d_uj - h_u, -B, B)
    cov_jk = sum_u w_u e_uj e_uk,   w_u = 1 / sqrt(k_u),    over pairs j < k of the K most rated items

k_u of u's n_u items being among those K. When one value changes by 2, its own e moves by at most 2B and all others by
at most 2 / (n_u + beta), so |e - e'| <= s_u with s_u^2 = max(2B, 2/(n_u+beta))^2 + (k_u - 1) (2/(n_u+beta))^2, and

    |e e' - f f'|_F <= |e - f| (|e| + |f|) <= s_u 2 B sqrt(k_u).

Each pair j < k stands for two entries of the matrix, so the released half moves by at most
max_u w_u s_u 2 B sqrt(k_u) / sqrt(2) = max_u sqrt(2) B s_u in Euclidean length. All of it reads public counts.

The paper protects the presence of a rating and so also pays for counts and weights, with w_u = 1 / k_u; with the value
as unit they are public, and 1/sqrt(k_u) keeps more of the signal at the same sensitivity in this norm.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dpsr.arrays import Floats, Ints
from dpsr.types import Mask

BOUND = 0.5
"""B, in half-widths of the scale."""
BETA = 5.0
"""Pretended ratings at zero in a user's own mean."""
LIMIT, LEAST = 1000, 5
"""Items in the covariance: the most rated ones, with at least so many ratings."""


@dataclass(frozen=True, eq=False)
class Pairs:
    """Which items are in the covariance and what the public counts say about it."""

    items: Ints
    column: npt.NDArray[np.int64]
    kept: npt.NDArray[np.bool_]
    user_weight: Floats
    sensitivity: float

    @classmethod
    def of(cls, mask: Mask) -> Pairs:
        """The most rated items; ties to the lower code."""
        order = np.argsort(-mask.item_counts, kind="stable")[:LIMIT]
        items = np.sort(order[mask.item_counts[order] >= LEAST])
        column = np.full(mask.n_items, -1)
        column[items] = np.arange(len(items))
        kept = column[mask.items] >= 0
        k = np.bincount(mask.users[kept], minlength=mask.n_users)
        weight = 1 / np.sqrt(np.maximum(k, 1))
        return cls(items, column, kept, weight, half_sensitivity(mask.user_counts[k > 0], k[k > 0]))


def half_sensitivity(n: Ints, k: Ints) -> float:
    """max_u sqrt(2) B s_u over users with n ratings, k of them on kept items."""
    if not len(n):
        return float(np.sqrt(2) * BOUND * 2 * BOUND)
    shift = 2 / (n + BETA)
    moved = np.sqrt(np.maximum(2 * BOUND, shift) ** 2 + (k - 1) * shift**2)
    return float(np.sqrt(2) * BOUND * moved.max())


def user_centred(mask: Mask, centred: Floats) -> tuple[Floats, Floats]:
    """e at every rating and h of every user, from ratings centred by mean and item."""
    h = np.bincount(mask.users, centred, minlength=mask.n_users) / (mask.user_counts + BETA)
    return np.clip(centred - h[mask.users], -BOUND, BOUND), h


def half_covariance(mask: Mask, pairs: Pairs, e: Floats) -> Floats:
    """cov_jk for j < k, row by row."""
    return half(_gram(mask, pairs, e))


def half_weights(mask: Mask, pairs: Pairs) -> Floats:
    """sum of w_u over the common raters of each pair: public."""
    return half(_gram(mask, pairs, np.ones(mask.n_ratings)))


def half(matrix: Floats) -> Floats:
    """The entries above the diagonal, row by row."""
    return matrix[np.triu_indices(len(matrix), 1)]


def whole(upper: Floats, size: int) -> Floats:
    """The symmetric matrix with these entries above its diagonal, and zeros on it."""
    matrix = np.zeros((size, size))
    matrix[np.triu_indices(size, 1)] = upper
    return matrix + matrix.T


def _gram(mask: Mask, pairs: Pairs, e: Floats) -> Floats:
    users, columns = mask.users[pairs.kept], pairs.column[mask.items[pairs.kept]]
    values = e[pairs.kept] * np.sqrt(pairs.user_weight[users])
    X = sp.csr_matrix((values, (users, columns)), shape=(mask.n_users, len(pairs.items)))
    return (X.T @ X).toarray()
