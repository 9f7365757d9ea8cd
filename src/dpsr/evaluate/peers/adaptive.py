"""What DP-ALS and DP-iALS share: adaptive weights, and noisy least squares on the item side.

A user u contributes to item j with weight c_uj ~ count_j^-1/4 over the user's items, sum_j c_uj^2 = 1
(Krichene et al. 2023, "Multi-task differential privacy under distribution skew"): nobody's rows are thrown away, and
rare items get more of what a user may give. With |x_u| <= 1 and |t_uj| <= 1

    (sum_u c_uj x_u x_u')_j   moves by  sqrt(sum_j c_uj^2) |x_u|^2 <= 1,       upper halves by no more
    (sum_u c_uj t_uj x_u)_j   moves by  sqrt(sum_j c_uj^2 t_uj^2) |x_u| <= 1,

so both together by sqrt 2 when a user comes or goes. The counts that weights are made of are noisy: u adds
1 / sqrt(n_u) to each of n_u items, a vector of length one.
"""

from __future__ import annotations

import numpy as np

from dpsr.arrays import Bools, Floats
from dpsr.evaluate.baselines.base import by_items
from dpsr.evaluate.peers.least_squares import ridge_solve, weighted_equations
from dpsr.types import Mask

EXPONENT = -0.25
COUNT_SENSITIVITY = 1.0
STATISTIC_SENSITIVITY = float(np.sqrt(2.0))


def spread_counts(mask: Mask) -> Floats:
    """Everybody's presence, spread over their items with length one: moves by one when a user comes or goes."""
    each = 1 / np.sqrt(np.maximum(mask.user_counts, 1))
    return np.asarray(np.bincount(mask.items, each[mask.users], minlength=mask.n_items), dtype=np.float64)


def believed_weights(noisy: Floats, noise: float, usual: float | None = None) -> Floats:
    """Noisy weights of items drawn towards what is usual, their mean, as weights that spread like it would be."""
    middle = max(float(noisy.mean()) if usual is None else usual, 1e-3 * noise)
    trust = middle**2 / (middle**2 + noise**2)
    return np.maximum(middle + trust * (noisy - middle), 0.1 * middle)


def most_frequent(noisy_counts: Floats, n: int) -> Bools:
    """The n items with the largest noisy counts."""
    frequent = np.zeros(len(noisy_counts), dtype=np.bool_)
    frequent[np.argsort(-noisy_counts)[: max(1, n)]] = True
    return frequent


def adaptive_weights(mask: Mask, noisy_counts: Floats, noise: float, among: Bools | None = None) -> Floats:
    """c_uj of every row, zero but `among` some items; the noise is taken for the least count there can be."""
    wish = np.maximum(noisy_counts, noise) ** EXPONENT
    wish = (wish if among is None else np.where(among, wish, 0.0))[mask.items]
    length = np.sqrt(np.bincount(mask.users, wish**2, minlength=mask.n_users))
    return np.asarray(wish / np.maximum(length, 1e-300)[mask.users])


def item_statistics(mask: Mask, weights: Floats, target: Floats, x: Floats) -> Floats:
    """Upper half of the gram and right side of every item, one row each; targets are clamped to [-1, 1]."""
    order = by_items(mask)
    t = np.clip(target, -1.0, 1.0)[order.places]
    gram, right = weighted_equations(order.ptr, order.users, weights[order.places], t, np.ascontiguousarray(x))
    return np.hstack([gram[:, *np.triu_indices(x.shape[1])], right])


def solved_items(noisy: Floats, d: int, ridge: Floats, unseen: Floats | float = 0.0) -> Floats:
    """Item vectors by the positive part of the noisy gram, `unseen` added, and a ridge per row and column."""
    half = d * (d + 1) // 2
    gram = positive_part(symmetric(noisy[:, :half], d))
    return ridge_solve(gram + unseen, noisy[:, half:], ridge)


def symmetric(halves: Floats, d: int) -> Floats:
    """Matrices from their upper halves."""
    gram = np.zeros((len(halves), d, d))
    gram[:, *np.triu_indices(d)] = halves
    return gram + np.triu(gram, 1).swapaxes(1, 2)


def positive_part(gram: Floats) -> Floats:
    """Without what negative eigenvalues make of it, which only noise can."""
    values, vectors = np.linalg.eigh(gram)
    return np.asarray(np.einsum("aip,ap,ajp->aij", vectors, np.maximum(values, 0.0), vectors))
