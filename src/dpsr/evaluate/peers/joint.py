"""A shared item side and a user side that never leaves the user: what DP-ALS and local-DP factorisation have in common.

    y_uj ~ mean + alpha c_j + b_u + p_u . q_j,     item vectors v_j = (c_j, q_j),     x_u = (alpha, p_u), |x_u| <= 1

Users compute b_u and p_u by ridge regression of their own ratings on the shared (1, q_j). In what they contribute to
the item side p_u is clipped, and the constant is alpha for everyone, so that item biases mean the same to all.
"""

from __future__ import annotations

import numpy as np

from dpsr.arrays import Floats
from dpsr.evaluate.peers.linear import Linear, clip_rows, local_rows
from dpsr.evaluate.peers.perturbed import BIAS_SIGNAL, FACTOR_SIGNAL, RESIDUAL
from dpsr.types import Mask, Scale

RANK, ALPHA = 2, 0.8
ITEM_SIGNAL = np.array([BIAS_SIGNAL, *[FACTOR_SIGNAL] * RANK])
"""Prior variances of an item vector."""
ITEM_WEIGHT = np.array([1.0, *[FACTOR_SIGNAL] * RANK])
"""What one rating adds to the diagonal of an item's gram matrix, about."""
OWN_RIDGE = RESIDUAL / np.array([BIAS_SIGNAL, *[1.0] * RANK])


def start_vectors(n_items: int, chance: np.random.Generator) -> Floats:
    """No biases, small random factors."""
    return np.column_stack([np.zeros(n_items), chance.normal(0, np.sqrt(FACTOR_SIGNAL), (n_items, RANK))])


def features(v: Floats) -> Floats:
    """What users regress their own ratings on: a constant and the item factors."""
    return np.column_stack([np.ones(len(v)), v[:, 1:]])


def own_rows(mask: Mask, y: Floats, v: Floats) -> Floats:
    """(b_u, p_u) of every user, each from that user's own ratings and the shared item side."""
    return local_rows(mask, y - ALPHA * v[mask.items, 0], features(v), OWN_RIDGE)


def shared_vectors(p: Floats) -> Floats:
    """x_u, of length one at most."""
    return np.column_stack([np.full(len(p), ALPHA), clip_rows(p, np.sqrt(1 - ALPHA**2))])


def joint_model(scale: Scale, mean: float, mask: Mask, y: Floats, v: Floats) -> Linear:
    """Predictions from the item side and every user's own side; `y` is without the mean."""
    users = np.column_stack([own_rows(mask, y, v), np.full(mask.n_users, ALPHA)])
    return Linear(scale, mean, users, np.column_stack([features(v), v[:, 0]]))
