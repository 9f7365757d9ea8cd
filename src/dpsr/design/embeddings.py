"""Embeddings of users and items from who rated what. The mask is public, so they cost nothing.

With M the 0/1 mask, n_u and c_j its row and column sums and n, c their averages over those that have any, the
degree-normalised mask is

    N = (D_u + n)^-1/2  M  (D_j + c)^-1/2.

Adding the average degree is the regularisation of spectral clustering (Amini, Chen, Bickel and Levina 2013): without
it, a few people who rated nothing but each other's items have a singular value of one of their own, and on sparse sets
such islands are all that the leading vectors show. The first pair of N is popularity times activity and is left out;
the next d singular pairs (U, S, V) are the embeddings. U_u / sqrt(n_u + n) is an average over u's items, shrunk where
it rests on few; so V_j likewise.

All pairs together, undone from the normalisation, say who is likely to meet what (`Affinity`): M_uj is nearly
sqrt((n_u + n) (c_j + c)) (U S V')_uj.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from dpsr.engine import Table
from dpsr.engine.products import Incidence
from dpsr.linalg.gram import Gram, leading_right
from dpsr.types import Affinity

Floats = npt.NDArray[np.float64]

_TOLERANCE, _PRODUCTS = 1e-2, 12
"""Features need directions, not digits; where twelve products leave them open, the mask has none to show."""


@dataclass(frozen=True, eq=False)
class Embeddings:
    """User and item embeddings, row by row, and the affinity they imply."""

    users: Floats
    items: Floats
    affinity: Affinity


def mask_embeddings(table: Table, rank: int) -> Embeddings:
    """Embeddings with at most `rank` columns; none where the mask is too small to have any."""
    census, mask = table.census, Incidence(table)
    rank = max(0, min(rank, min(census.shape) - 2))
    left, right = degree_scales(census.user_counts), degree_scales(census.item_counts)
    s, V = _leading_items(partial(mask.gram, left, right), census.item_counts > 0, rank + 1)
    _, met = mask.both(np.empty((census.n_users, 0)), right[:, None] * V)
    US = left[:, None] * met
    U = US / np.where(s > 1e-7 * s[0], s, np.inf)
    affinity = Affinity(users=US / left[:, None], items=V / right[:, None])
    return Embeddings(U[:, 1:] * left[:, None], V[:, 1:] * right[:, None], affinity)


def _leading_items(gram: Gram, rated: npt.NDArray[np.bool_], rank: int) -> tuple[Floats, Floats]:
    """Singular values and item vectors; an item nobody rated has no part in them and is left out of the work."""

    def among_rated(X: Floats) -> Floats:
        return gram(_everywhere(rated, X))[rated]

    s, V = leading_right(among_rated, int(rated.sum()), rank, tol=_TOLERANCE, products=_PRODUCTS)
    return s, _everywhere(rated, V)


def _everywhere(rated: npt.NDArray[np.bool_], X: Floats) -> Floats:
    full = np.zeros((len(rated), X.shape[1]))
    full[rated] = X
    return full


def degree_scales(counts: npt.NDArray[np.int64]) -> Floats:
    """1 / sqrt(count + average count)."""
    return 1 / np.sqrt(counts + max(counts.sum(), 1) / max(np.count_nonzero(counts), 1))
