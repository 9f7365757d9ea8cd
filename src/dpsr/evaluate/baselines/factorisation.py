"""The paper's matrix factorisation: prediction P_u . Q_j, squared error, Adam (Kingma and Ba 2015), 50 epochs.

    loss of a batch B = 1/|B| sum_(u,j) in B (P_u . Q_j + offset - r_uj)^2
    m <- b1 m + (1 - b1) g,   v <- b2 v + (1 - b2) g^2,   x <- x - rate (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + 1e-8)

with b1 = 0.9, b2 = 0.999. The moments of every row move at every step, as a framework's dense embedding does.
The paper gives d and the number of epochs; learning rate, batch size, start, offset and penalty are settings here.
There is no penalty unless asked for and no early stopping, so long training fits whatever noise the ratings carry.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from dpsr.arrays import Floats
from dpsr.evaluate.baselines.base import Baseline, Fitted
from dpsr.linalg.compiled import kernel
from dpsr.types import Mask

Start = Literal["normal", "positive"]


@dataclass
class MF(Baseline):
    """P_u . Q_j by Adam.

    `batch_size=None` takes all ratings in one step. `start="normal"` draws the factors from N(0, start_size^2),
    `"positive"` uniformly from [0, start_size]. `centred=True` takes the training mean off first (and adds it back).
    """

    rank: int = 8
    epochs: int = 50
    learning_rate: float = 0.01
    batch_size: int | None = 256
    start: Start = "normal"
    start_size: float = 0.1
    centred: bool = False
    penalty: float = 0.0
    random_state: int = 0

    def _learn(self, mask: Mask, values: Floats) -> Fitted:
        rng = np.random.default_rng(self.random_state)
        P, Q = (self._draw(rng, rows) for rows in mask.shape)
        mean = float(values.mean())
        offset = mean if self.centred else 0.0
        batch = min(self.batch_size or mask.n_ratings, mask.n_ratings)
        orders = self._orders(rng, mask.n_ratings, batch)
        adam(mask.users, mask.items, values - offset, orders, P, Q, self.learning_rate, batch, self.penalty)
        return _fitted(mask, offset, mean, P, Q)

    def _orders(self, rng: np.random.Generator, n: int, batch: int) -> npt.NDArray[np.int64]:
        """A new order of the ratings for every epoch; with a single batch the order makes no difference."""
        if batch == n:
            return np.tile(np.arange(n), (self.epochs, 1))
        return np.stack([rng.permutation(n) for _ in range(self.epochs)])

    def _draw(self, rng: np.random.Generator, rows: int) -> Floats:
        if self.start == "normal":
            return rng.normal(0, self.start_size, (rows, self.rank))
        return rng.uniform(0, self.start_size, (rows, self.rank))


@dataclass(frozen=True)
class TrainingChoice:
    """One way to fill in what the paper does not say about training its factorisation."""

    description: str
    factorisation: MF


TRAINING_CHOICES: dict[str, TrainingChoice] = {
    "positive_start": TrainingChoice(
        "one full-batch step per epoch, learning rate 0.009, factors drawn uniformly from [0, 0.001]; all factors grow "
        "alike, and 50 steps end about 1 below the level of the ratings. Chosen because it comes near the figures of "
        "Table 1",
        MF(learning_rate=0.009, batch_size=None, start="positive", start_size=0.001),
    ),
    "random_start": TrainingChoice(
        "one full-batch step per epoch, learning rate 0.0135, factors drawn from N(0, 0.1^2); their signs must agree "
        "before they can grow, and 50 steps end half-way. Chosen on these very seeds because DPSR beats the "
        "non-private model under it, so its p-values against that model prove nothing",
        MF(learning_rate=0.0135, batch_size=None, start="normal", start_size=0.1),
    ),
    "trained": TrainingChoice(
        "batches of 256, learning rate 0.01, factors drawn from N(0, 0.1^2); the training error is low at the end",
        MF(learning_rate=0.01, batch_size=256, start="normal", start_size=0.1),
    ),
}
"""The readings of the paper that its experiment is repeated under."""

LARGE_BATCH = 2048
"""The batch on large sets: the paper does not state its own, and 256 takes a minute on 100,000 ratings."""


def _fitted(mask: Mask, offset: float, mean: float, P: Floats, Q: Floats) -> Fitted:
    return Fitted(
        offset=offset,
        fallback=mean,
        user_bias=np.zeros(mask.n_users),
        item_bias=np.zeros(mask.n_items),
        user_factors=P,
        item_factors=Q,
        user_seen=mask.user_counts > 0,
        item_seen=mask.item_counts > 0,
    )


@kernel
def adam(
    users: npt.NDArray[np.int32],
    items: npt.NDArray[np.int32],
    values: Floats,
    orders: npt.NDArray[np.int64],
    P: Floats,
    Q: Floats,
    rate: float,
    batch: int,
    penalty: float,
) -> None:
    """One epoch per row of `orders`, a permutation of the ratings; P and Q are changed in place."""
    n = len(values)
    moments = (np.zeros_like(P), np.zeros_like(P), np.zeros_like(Q), np.zeros_like(Q))
    step = 0
    for epoch in range(len(orders)):
        for first in range(0, n, batch):
            step += 1
            chosen = orders[epoch, first : min(n, first + batch)]
            grad_p, grad_q = _gradients(users, items, values, chosen, P, Q, penalty)
            _move(P, grad_p, moments[0], moments[1], rate, step)
            _move(Q, grad_q, moments[2], moments[3], rate, step)


@kernel
def _gradients(
    users: npt.NDArray[np.int32],
    items: npt.NDArray[np.int32],
    values: Floats,
    chosen: npt.NDArray[np.int64],
    P: Floats,
    Q: Floats,
    penalty: float,
) -> tuple[Floats, Floats]:
    """Gradient of the mean squared error of the chosen ratings plus penalty / 2 (|P|^2 + |Q|^2)."""
    grad_p, grad_q = penalty * P, penalty * Q
    for place in chosen:
        u, j = users[place], items[place]
        error = -values[place]
        for k in range(P.shape[1]):
            error += P[u, k] * Q[j, k]
        error *= 2.0 / len(chosen)
        for k in range(P.shape[1]):
            grad_p[u, k] += error * Q[j, k]
            grad_q[j, k] += error * P[u, k]
    return grad_p, grad_q


@kernel
def _move(X: Floats, grad: Floats, first: Floats, second: Floats, rate: float, step: int) -> None:
    """One Adam step on X, with its two moments."""
    correct1, correct2 = 1 - 0.9**step, 1 - 0.999**step
    for a in range(X.shape[0]):
        for k in range(X.shape[1]):
            first[a, k] = 0.9 * first[a, k] + 0.1 * grad[a, k]
            second[a, k] = 0.999 * second[a, k] + 0.001 * grad[a, k] ** 2
            X[a, k] -= rate * (first[a, k] / correct1) / (np.sqrt(second[a, k] / correct2) + 1e-8)
