"""The form in which most peers work: ratings in [-1, 1], least squares row by row, predictions mean + bias + factors.

    y = (r - midpoint) / (width / 2),    prediction of y_uj = mean + a_u . b_j

where a column of ones in a or b makes the other side's column a bias. The sufficient statistics of the rows of one side
given the other side x are sums over the ratings of a row,

    gram_a = sum_t x_t x_t',    right_a = sum_t y_t x_t.

Which of the two is secret depends on the unit: with a public mask and a public x only `right` is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpsr.arrays import Codes, Floats, Ints
from dpsr.linalg.compiled import kernel
from dpsr.types import Mask, Scale
from dpsr.types.raw import RawRatings

VALUE_SENSITIVITY = 2.0
"""How far one rating moves in [-1, 1] when its value changes."""


def unit_values(ratings: RawRatings) -> Floats:
    """The ratings in [-1, 1]. Secret."""
    return (ratings.values - ratings.scale.midpoint) / (ratings.scale.width / 2)


@dataclass(frozen=True, eq=False)
class ItemOrder:
    """Who rated what item by item: pointers, users, and where each rating stands user by user."""

    ptr: Ints
    users: Codes
    places: Ints


def by_items(mask: Mask) -> ItemOrder:
    """The ratings of a mask item by item, users ascending within an item."""
    places = np.argsort(mask.items, kind="stable")
    return ItemOrder(np.concatenate([[0], np.cumsum(mask.item_counts)]), mask.users[places], places)


@dataclass(frozen=True, eq=False)
class Linear:
    """mean + a_u . b_j in [-1, 1], put back on the scale. A stranger has a row of zeros."""

    scale: Scale
    mean: float
    users: Floats
    items: Floats

    def predict(self, users: Ints, items: Ints) -> Floats:
        """Unclipped ratings for coded users and items; -1 is a stranger."""
        u, j = np.broadcast_arrays(users, items)
        product = np.einsum("rd,rd->r", self.users[u], self.items[j])
        return self._rating(np.where((u >= 0) & (j >= 0), product, 0.0))

    def scores(self, user: int) -> Floats:
        """One unclipped rating per item."""
        return self._rating(self.items @ self.users[user] if user >= 0 else np.zeros(len(self.items)))

    def _rating(self, y: Floats) -> Floats:
        return self.scale.midpoint + self.scale.width / 2 * (self.mean + y)


@kernel
def normal_equations(indptr: Ints, columns: npt.NDArray[np.int32], y: Floats, x: Floats) -> tuple[Floats, Floats]:
    """gram (rows, d, d) and right (rows, d) of every row; `y` in the order of `columns`."""
    rows, d = len(indptr) - 1, x.shape[1]
    gram, right = np.zeros((rows, d, d)), np.zeros((rows, d))
    for a in range(rows):
        for t in range(indptr[a], indptr[a + 1]):
            other = x[columns[t]]
            for p in range(d):
                right[a, p] += y[t] * other[p]
                for q in range(d):
                    gram[a, p, q] += other[p] * other[q]
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
