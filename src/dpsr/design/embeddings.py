"""Embeddings of users and items from who rated what. The mask is public, so they cost nothing.

With M the 0/1 mask, n_u and c_j its row and column sums and n, c their averages over those that have any, the
degree-normalised mask is

    N = (D_u + n)^-1/2  M  (D_j + c)^-1/2.

Adding the average degree is the regularisation of spectral clustering (Amini, Chen, Bickel and Levina 2013): without
it, a few people who rated nothing but each other's items have a singular value of one of their own, and on sparse sets
such islands are all that the leading vectors show. The first pair of N is popularity times activity and is left out;
the next d singular pairs (U, S, V) are the embeddings. U_u / sqrt(n_u + n) is an average over u's items, shrunk where it
rests on few; so V_j likewise.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dpsr.linalg import LowRankPlusSparse, Pattern, truncated_svd
from dpsr.types import Mask

Floats = npt.NDArray[np.float64]

_TOLERANCE = 1e-2
"""Features need directions, not digits."""


def mask_embeddings(mask: Mask, pattern: Pattern, rank: int) -> tuple[Floats, Floats]:
    """User and item embeddings with at most `rank` columns; none where the mask is too small to have any."""
    rank = max(0, min(rank, min(mask.shape) - 2))
    n_u, c_j = mask.user_counts.astype(np.float64), mask.item_counts.astype(np.float64)
    if not rank or not mask.n_ratings:
        return np.zeros((mask.n_users, 0)), np.zeros((mask.n_items, 0))
    left, right = (1 / np.sqrt(counts + mask.n_ratings / np.count_nonzero(counts)) for counts in (n_u, c_j))
    values = np.repeat(left, mask.user_counts) * right[mask.items]
    nothing = LowRankPlusSparse(np.zeros((mask.n_users, 1)), np.zeros((mask.n_items, 1)), pattern, values)
    U, _, Vt = truncated_svd(nothing, rank + 1, tol=_TOLERANCE)
    return U[:, 1:] * left[:, None], Vt[1:].T * right[:, None]
