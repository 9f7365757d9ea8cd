"""Least squares, row by row, in the three ways the private methods use it. Ratings are in [-1, 1] (`baselines.base`).

The sufficient statistics of the rows of one side given the other side x are sums over the ratings of a row,

    gram_a = sum_t x_t x_t',    right_a = sum_t y_t x_t.

Which of the two is secret depends on the unit: with a public mask and a public x only `right` is.

**Perturbed.** For rows a with ratings y_t and given vectors x_t, |x_t| <= 1,

    w_a = argmin sum_t (y_t - x_t . w)^2 + w' L_a w + eta_a . w  =  (gram_a + L_a)^-1 (right_a - eta_a / 2).

A change of one rating moves one row of `right` by |change| |x_t|. Noise of density ~ exp(-epsilon |eta / 2| /
sensitivity) on every row makes all rows together epsilon-DP. L_a is diagonal and chosen for the noise that was drawn,
which is public: `noise_ridge`.

**Joint DP.** A shared item side and a user side that never leaves the user:

    y_uj ~ mean + alpha c_j + b_u + p_u . q_j,     item vectors v_j = (c_j, q_j),     x_u = (alpha, p_u), |x_u| <= 1

Users compute b_u and p_u by ridge regression of their own ratings on the shared (1, q_j). In what they contribute to
the item side p_u is clipped, and the constant is alpha for everyone, so that item biases mean the same to all.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dpsr.arrays import Floats, Ints
from dpsr.engine.raw import RawRatings
from dpsr.evaluate.baselines.base import Linear
from dpsr.evaluate.peers.floating import Measured, vector_laplace_noise
from dpsr.linalg.compiled import kernel
from dpsr.types import Mask, Scale

VALUE_SENSITIVITY = 2.0
"""How far one rating moves in [-1, 1] when its value changes."""

RESIDUAL, BIAS_SIGNAL, FACTOR_SIGNAL = 0.15, 0.05, 0.02
"""Variances in [-1, 1] of ratings around their expectation, of biases and of other coefficients: the spread of 5-star
ratings, as the synthetic generator has it."""

RANK, ALPHA = 2, 0.8
"""Factors of the joint model, and the length of its constant."""


def item_signal(rank: int = RANK) -> Floats:
    """Prior variances of an item vector."""
    return np.array([BIAS_SIGNAL, *[FACTOR_SIGNAL] * rank])


def item_weight(rank: int = RANK) -> Floats:
    """What one rating adds to the diagonal of an item's gram matrix, about."""
    return np.array([1.0, *[FACTOR_SIGNAL] * rank])


def own_ridge(rank: int = RANK) -> Floats:
    """What users' own coefficients are shrunk by; with less, users fit the noise in the shared factors."""
    return RESIDUAL / np.array([BIAS_SIGNAL, *[0.05] * rank])


def unit_values(ratings: RawRatings) -> Floats:
    """The ratings in [-1, 1]. Secret."""
    return (ratings.values - ratings.scale.midpoint) / (ratings.scale.width / 2)


def normal_equations(indptr: Ints, columns: npt.NDArray[np.int32], y: Floats, x: Floats) -> tuple[Floats, Floats]:
    """gram (rows, d, d) and right (rows, d) of every row; `y` in the order of `columns`."""
    return weighted_equations(indptr, columns, np.ones(len(columns)), y, x)


@kernel
def weighted_equations(
    indptr: Ints, columns: npt.NDArray[np.int32], weights: Floats, y: Floats, x: Floats
) -> tuple[Floats, Floats]:
    """The same, every term with its weight."""
    rows, d = len(indptr) - 1, x.shape[1]
    gram, right = np.zeros((rows, d, d)), np.zeros((rows, d))
    for a in range(rows):
        for t in range(indptr[a], indptr[a + 1]):
            other, w = x[columns[t]], weights[t]
            for p in range(d):
                right[a, p] += w * y[t] * other[p]
                for q in range(p + 1):
                    gram[a, p, q] += w * other[p] * other[q]
        for p in range(d):
            for q in range(p):
                gram[a, q, p] = gram[a, p, q]
    return gram, right


def ridge_solve(gram: Floats, right: Floats, ridge: Floats | float) -> Floats:
    """(gram_a + ridge_a)^-1 right_a for every row; the diagonal `ridge` is a number, per column, or per row."""
    penalty = np.broadcast_to(np.asarray(ridge, dtype=np.float64), right.shape)[:, :, None] * np.eye(right.shape[1])
    return np.asarray(np.linalg.solve(gram + penalty, right[:, :, None])[:, :, 0], dtype=np.float64)


def noise_ridge(gram: Floats, residual: float, signal: Floats | float, noise: float) -> Floats:
    """The ridge that a coefficient of variance `signal` calls for when right carries noise of variance `noise`.

        ridge = (residual + noise / (trace(gram) / d)) / signal

    since noise in `right` weighs like so much more residual variance per rating; rows without ratings get a wall.
    """
    average = np.maximum(np.trace(gram, axis1=1, axis2=2) / gram.shape[1], 1e-9)
    return (residual + noise / average)[:, None] / np.broadcast_to(signal, gram.shape[1:2])


def clip_rows(x: Floats, bound: float) -> Floats:
    """Every row scaled down to Euclidean length `bound` at most."""
    length = np.linalg.norm(x, axis=1, keepdims=True)
    return x * np.minimum(1.0, bound / np.maximum(length, 1e-300))


def local_rows(mask: Mask, y: Floats, items: Floats, ridge: Floats | float) -> Floats:
    """Each user's coefficients on the shared item side, from that user's own raw ratings alone (joint DP)."""
    gram, right = normal_equations(mask.indptr, mask.items, y, np.ascontiguousarray(items))
    return ridge_solve(gram, right, ridge)


def perturbed_rows(
    indptr: npt.NDArray[np.int64],
    columns: npt.NDArray[np.int32],
    y: Floats,
    x: Floats,
    epsilon: float,
    rng: np.random.Generator,
    *,
    signal: Floats,
    sensitivity: float = VALUE_SENSITIVITY,
) -> Measured:
    """The minimisers of all rows, with the price of the noise; `y` moves by at most `sensitivity` in one place."""
    gram, right = normal_equations(indptr, columns, y, x)
    noisy, price = vector_laplace_noise(right, sensitivity=sensitivity, epsilon=epsilon, rng=rng)
    variance = (x.shape[1] + 1) * price.scale**2  # of a coordinate: the squared length is d (d + 1) b^2 on average
    return Measured(ridge_solve(gram, noisy, noise_ridge(gram, RESIDUAL, signal, variance)), price)


def signal_of(d: int, bias: float = BIAS_SIGNAL) -> Floats:
    """Prior variances of a bias followed by d - 1 other coefficients."""
    return np.array([bias, *[FACTOR_SIGNAL] * (d - 1)])


def start_vectors(n_items: int, chance: np.random.Generator, rank: int = RANK) -> Floats:
    """No biases, small random factors."""
    return np.column_stack([np.zeros(n_items), chance.normal(0, np.sqrt(FACTOR_SIGNAL), (n_items, rank))])


def features(v: Floats) -> Floats:
    """What users regress their own ratings on: a constant and the item factors."""
    return np.column_stack([np.ones(len(v)), v[:, 1:]])


def own_rows(mask: Mask, y: Floats, v: Floats) -> Floats:
    """(b_u, p_u) of every user, each from that user's own ratings and the shared item side."""
    return local_rows(mask, y - ALPHA * v[mask.items, 0], features(v), own_ridge(v.shape[1] - 1))


def shared_vectors(p: Floats) -> Floats:
    """x_u, of length one at most."""
    return np.column_stack([np.full(len(p), ALPHA), clip_rows(p, np.sqrt(1 - ALPHA**2))])


def joint_model(scale: Scale, mean: float, mask: Mask, y: Floats, v: Floats) -> Linear:
    """Predictions from the item side and every user's own side; `y` is without the mean."""
    users = np.column_stack([own_rows(mask, y, v), np.full(mask.n_users, ALPHA)])
    return Linear(scale, mean, users, np.column_stack([features(v), v[:, 0]]))
