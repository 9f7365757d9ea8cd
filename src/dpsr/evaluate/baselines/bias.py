"""The simplest models: one constant, the most rated first, and a constant with user and item biases.

`Bias` minimises, by alternating exact solves for users and items,

    sum_(u,j) (r_uj - mu - b_u - c_j)^2 + l_u sum_u b_u^2 + l_j sum_j c_j^2,      mu = mean of the training ratings,

    c_j = sum_u (r_uj - mu - b_u) / (n_j + l_j),     b_u = sum_j (r_uj - mu - c_j) / (n_u + l_u).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
import numpy.typing as npt

from dpsr.arrays import Floats, Ints
from dpsr.evaluate.baselines.base import Baseline, Fitted, hold_out
from dpsr.types import Mask

SWEEPS = 15


@dataclass
class Constant(Baseline):
    """The mean of the training ratings, for everyone."""

    def _learn(self, mask: Mask, values: Floats) -> Fitted:
        return additive(mask, float(values.mean()), np.zeros(mask.n_users), np.zeros(mask.n_items))


@dataclass(frozen=True, eq=False)
class MostRatedFirst:
    """One rating for everything, and lists by how often an item was rated: what a list is worth without any value."""

    counts: Floats
    mean: float

    def predict(self, users: Ints, items: Ints) -> Floats:
        """The same everywhere."""
        return np.full(np.broadcast_shapes(np.shape(users), np.shape(items)), self.mean)

    def scores(self, user: int) -> Floats:
        """How often each item was rated, the same for everyone."""
        return self.counts


@dataclass
class OwnMean(Baseline):
    """Everybody's own mean, shrunk towards the mean of them: what people can know without anybody else's ratings.

    The strength is the one that predicts held-back training ratings best.
    """

    strengths: tuple[float, ...] = (0.5, 1, 2, 3, 5, 10, 50, 1000)
    validation: float = 0.1
    random_state: int = 0

    def _learn(self, mask: Mask, values: Floats) -> Fitted:
        held = hold_out(mask, self.validation, self.random_state)

        def loss(strength: float) -> float:
            level, own = _own_means(mask.users[~held], values[~held], mask.n_users, strength)
            return float(np.mean((values[held] - level - own[mask.users[held]]) ** 2))

        self.chosen_ = min(self.strengths, key=loss) if held.any() else self.strengths[0]
        level, own = _own_means(mask.users, values, mask.n_users, self.chosen_)
        return additive(mask, level, own, np.zeros(mask.n_items))


def _own_means(users: npt.NDArray[np.int32], values: Floats, n: int, strength: float) -> tuple[float, Floats]:
    """The mean of people's means, and how far each shrunk mean lies from it."""
    counts = np.bincount(users, minlength=n)
    means = np.bincount(users, values, minlength=n)[counts > 0] / counts[counts > 0]
    level = float(means.mean())
    return level, np.bincount(users, values - level, minlength=n) / (counts + strength)


@dataclass
class Bias(Baseline):
    """Mean + user bias + item bias. The strengths are the pair that predicts held-back training ratings best."""

    user_strengths: tuple[float, ...] = (1, 3, 10, 50, 1000)
    item_strengths: tuple[float, ...] = (1, 3, 10, 50, 1000)
    validation: float = 0.1
    random_state: int = 0

    def _learn(self, mask: Mask, values: Floats) -> Fitted:
        self.chosen_ = self._choose(mask, values)
        mean = float(values.mean())
        return additive(mask, mean, *solve_biases(mask.users, mask.items, values - mean, mask.shape, *self.chosen_))

    def _choose(self, mask: Mask, values: Floats) -> tuple[float, float]:
        held = hold_out(mask, self.validation, self.random_state)
        grid = list(product(self.user_strengths, self.item_strengths))
        if not held.any():
            return grid[0]
        u, j, mean = mask.users, mask.items, float(values[~held].mean())

        def loss(strengths: tuple[float, float]) -> float:
            b, c = solve_biases(u[~held], j[~held], values[~held] - mean, mask.shape, *strengths)
            return float(np.mean((values[held] - mean - b[u[held]] - c[j[held]]) ** 2))

        return min(grid, key=loss)


def solve_biases(
    users: npt.NDArray[np.int32],
    items: npt.NDArray[np.int32],
    residual: Floats,
    shape: tuple[int, int],
    user_strength: float,
    item_strength: float,
) -> tuple[Floats, Floats]:
    """The biases of ratings from which the mean has been taken off."""
    (m, n), b = shape, np.zeros(shape[0])
    user_weight = np.bincount(users, minlength=m) + user_strength
    item_weight = np.bincount(items, minlength=n) + item_strength
    for _ in range(SWEEPS):
        c = np.bincount(items, residual - b[users], n) / item_weight
        b = np.bincount(users, residual - c[items], m) / user_weight
    return b, c


def additive(mask: Mask, mean: float, user_bias: Floats, item_bias: Floats) -> Fitted:
    """A model without factors."""
    m, n = mask.shape
    return Fitted(
        offset=mean,
        fallback=mean,
        user_bias=user_bias,
        item_bias=item_bias,
        user_factors=np.zeros((m, 1)),
        item_factors=np.zeros((n, 1)),
        user_seen=mask.user_counts > 0,
        item_seen=mask.item_counts > 0,
    )
