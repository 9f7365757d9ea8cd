r"""From axes of taste to scores: factors, and the closed form of an item-item linear model.

**Factors.** E[f | x] for somebody with n interactions, linear: (I + n H)^-1 V' (x - n p), H = sum_j p_j (v_j v_j' +
cov_j): a loading that is not well known counts less.

**Item-item** (EASE; Steck 2019). The linear model that predicts each cell of r from the others, r B with an empty
diagonal, of least squared error under the second moments G = A A' + D is

    B_ij = - P_ij / P_jj,    P = G^-1 = D^-1 - D^-1 A K A' D^-1,    K = (I + A' D^-1 A)^-1,

so off the diagonal B = Q = D^-1 A K A' D^-1 / diag P: a product of thin factors. For a cell that somebody does not
have, r_j = - n p_j g_j, and what the diagonal of the product would add is taken out again by the offset Q_jj. Divided
by g_j n p_j this is what taste adds to the popularity of the cell.

Factors shrink what is not known and are the better ones where little is. Where every cell is known by its moments, the
mean of both is as good as the better of them on nearly every table tried (docs/likes.md).
"""

from __future__ import annotations

from dataclasses import replace
from math import sqrt

import numpy as np

from dpsr.arrays import Floats, Ints
from dpsr.likes.taste import Moments, Taste
from dpsr.types.likes_side import LikesSide

_LEAST_OWN = 0.2
"""Of a cell's own variance, taste never explains more than all but this."""

_LEAST_AXIS = 1e-6
"""Axes whose loadings explain less of the variance than this are dropped."""


def by_factors(popularity: Floats, frequent: Ints, moments: Moments, taste: Taste) -> LikesSide:
    """Scores by the posterior of a person's taste."""
    p, V = moments.centre, taste.loadings
    gram = (V * p[:, None]).T @ V + np.einsum("j,jab->ab", p, taste.covariances)
    values, turn = np.linalg.eigh((gram + gram.T) / 2)
    V = V @ turn
    own = np.einsum("j,ja,ja->a", p, V, V)
    keep = np.sort(np.argsort(-own)[: max(1, int((own > _LEAST_AXIS).sum()))])
    V, values = V[:, keep], np.maximum(values[keep], 0.0)
    return LikesSide(popularity, frequent, p, V, V, np.zeros(len(p)), np.ones(len(values)), values, "factors")


def by_items(popularity: Floats, frequent: Ints, moments: Moments, taste: Taste) -> LikesSide:
    """Scores by the item-item linear model of the denoised second moments."""
    p, g = moments.centre, moments.favour
    A = moments.scale[:, None] * taste.loadings
    keep = (A * A).sum(0) > _LEAST_AXIS * float((A * A).sum() + 1e-300)
    A = A[:, keep] if keep.any() else A[:, :1]
    D = np.maximum(moments.diagonal - (A * A).sum(1), _LEAST_OWN * moments.diagonal)
    thin = A / D[:, None]
    K = np.linalg.inv(np.eye(A.shape[1]) + A.T @ thin)
    explained = np.einsum("ja,ab,jb->j", thin, K, thin)
    P = 1 / D - explained
    leave = thin / (P * g * p)[:, None]
    k = A.shape[1]
    enter = g[:, None] * (thin @ K)
    return LikesSide(popularity, frequent, p, enter, leave, explained / P, np.zeros(k), np.ones(k), "item-item")


def mean_of(one: LikesSide, other: LikesSide) -> LikesSide:
    """What both say, half and half."""
    return LikesSide(
        one.popularity,
        one.frequent,
        one.centre,
        np.hstack([one.entry, other.entry]),
        np.hstack([one.exit, other.exit]) / 2,
        (one.offset + other.offset) / 2,
        np.concatenate([one.ridge, other.ridge]),
        np.concatenate([one.gram, other.gram]),
        "factors and item-item",
    )


def weighed(side: LikesSide, weight: float) -> LikesSide:
    """What taste adds to popularity, times a weight: half of it enters by what people did, half by what cells are."""
    root = sqrt(weight)
    return replace(side, entry=root * side.entry, exit=root * side.exit, offset=weight * side.offset)
