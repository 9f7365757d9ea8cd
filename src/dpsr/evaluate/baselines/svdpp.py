"""SVD++ (Koren 2008): factors that also use who rated what.

    prediction(u, j) = mean + b_u + c_j + Q_j . ( P_u + |N_u|^-1/2 sum_{k in N_u} Y_k ),      N_u the items u rated,

by stochastic gradient descent on squared error with penalty reg (b^2 + c^2 + |P|^2 + |Q|^2 + |Y|^2) per rating. Y moves
once per user, with the gradients of all the user's ratings added up, as in Koren's own remarks on speed. Ratings are
first put on a scale of width 4, for which the customary learning rate 0.007 and rank 20 are meant; `reg` and the number
of epochs are those that predict held-back training ratings best.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dpsr.arrays import Floats, Ints
from dpsr.evaluate.baselines.base import Linear, hold_out
from dpsr.linalg.compiled import kernel
from dpsr.types import Mask, Scale

RANK, RATE, START = 20, 0.007, 0.03
REGULARISATIONS = (0.02, 0.06, 0.15)
EPOCHS = (10, 20, 40)
WIDTH = 4.0


class Parts(NamedTuple):
    """Mean, biases of users and items, factors of users and items, and what an item says by having been rated."""

    mean: float
    b: Floats
    c: Floats
    P: Floats
    Q: Floats
    Y: Floats


@dataclass
class SVDpp:
    """Not private. `fit` gives a linear model: the implicit part is folded into the user factors."""

    random_state: int = 0

    def fit(self, mask: Mask, values: Floats, scale: Scale) -> Linear:
        """Epochs and penalty on held-back training ratings, then all of them."""
        y = (values - scale.midpoint) * (WIDTH / scale.width)
        held = hold_out(mask, 0.1, self.random_state)
        reg, epochs = self.chosen_ = self._choose(mask, y, held) if held.any() else (REGULARISATIONS[-1], EPOCHS[0])
        self.parts_ = parts = self._train(mask, y, reg, (epochs,))[0]
        users, items = _folded(mask, *parts[1:])
        return Linear(scale, 2 / WIDTH * parts.mean, 2 / WIDTH * users, items)

    def _choose(self, mask: Mask, y: Floats, held: npt.NDArray[np.bool_]) -> tuple[float, int]:
        losses = {}
        for reg in REGULARISATIONS:
            models = self._train(mask.select(~held), y[~held], reg, EPOCHS)
            for epochs, parts in zip(EPOCHS, models, strict=True):
                mean, (users, items) = parts.mean, _folded(mask.select(~held), *parts[1:])
                product = np.einsum("rd,rd->r", users[mask.users[held]], items[mask.items[held]])
                losses[reg, epochs] = float(np.mean((y[held] - mean - product) ** 2))
        return min(losses, key=lambda setting: losses[setting])

    def _train(self, mask: Mask, y: Floats, reg: float, stops: tuple[int, ...]) -> list[Parts]:
        """The model after each number of epochs in `stops`."""
        rng, mean = np.random.default_rng(self.random_state), float(y.mean())
        b, c = np.zeros(mask.n_users), np.zeros(mask.n_items)
        P = rng.normal(0, START, (mask.n_users, RANK))
        Q, Y = (rng.normal(0, START, (mask.n_items, RANK)) for _ in range(2))
        models, done = [], 0
        for stop in stops:
            for _ in range(stop - done):
                _epoch(mask.indptr, mask.items, y - mean, rng.permutation(mask.n_users), b, c, P, Q, Y, RATE, reg)
            done = stop
            models.append(Parts(mean, *(one.copy() for one in (b, c, P, Q, Y))))
        return models


def _folded(mask: Mask, b: Floats, c: Floats, P: Floats, Q: Floats, Y: Floats) -> tuple[Floats, Floats]:
    """User rows (b_u, 1, P_u + implicit part) and item rows (1, c_j, Q_j); nothing for who has no rating."""
    sums = np.zeros_like(P)
    np.add.at(sums, mask.users, Y[mask.items])
    users = np.column_stack([b, np.ones(len(b)), P + sums / np.sqrt(np.maximum(mask.user_counts, 1))[:, None]])
    items = np.column_stack([np.ones(len(c)), c, Q])
    users[mask.user_counts == 0, 2:] = 0.0
    items[mask.item_counts == 0, 1:] = 0.0
    return users, items


@kernel
def _epoch(
    indptr: Ints,
    items: npt.NDArray[np.int32],
    y: Floats,
    order: Ints,
    b: Floats,
    c: Floats,
    P: Floats,
    Q: Floats,
    Y: Floats,
    rate: float,
    reg: float,
) -> None:
    """One pass over the users in the given order; everything is changed in place."""
    d = P.shape[1]
    implicit, moved = np.zeros(d), np.zeros(d)
    for u in order:
        n = indptr[u + 1] - indptr[u]
        if n == 0:
            continue
        weight = 1.0 / np.sqrt(n)
        implicit[:], moved[:] = 0.0, 0.0
        for t in range(indptr[u], indptr[u + 1]):
            for k in range(d):
                implicit[k] += weight * Y[items[t], k]
        for t in range(indptr[u], indptr[u + 1]):
            j = items[t]
            error = y[t] - b[u] - c[j]
            for k in range(d):
                error -= Q[j, k] * (P[u, k] + implicit[k])
            b[u] += rate * (error - reg * b[u])
            c[j] += rate * (error - reg * c[j])
            for k in range(d):
                p, q = P[u, k], Q[j, k]
                P[u, k] += rate * (error * q - reg * p)
                Q[j, k] += rate * (error * (p + implicit[k]) - reg * q)
                moved[k] += error * weight * q
        for t in range(indptr[u], indptr[u + 1]):
            for k in range(d):
                Y[items[t], k] += rate * (moved[k] - reg * Y[items[t], k])
