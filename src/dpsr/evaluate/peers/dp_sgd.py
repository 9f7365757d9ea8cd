"""Private factorisation by gradient perturbation: DP-SGD (Abadi et al. 2016), and denoising what it has learned.

    y_uj ~ mean + b_u + c_j + p_u . q_j,     y in [-1, 1] around the public midpoint of the scale

Every step lets each rating in with probability q (Poisson), clips the gradient of that rating over all parameters,
(b_u, p_u, c_j, q_j), to length C, adds the gradients up and adds N(0, (z C)^2) to **every** coordinate of every user
and item, rated or not. Adding or removing one rating moves the sum by at most C, so the unit is the presence of a
rating and who rated what is protected too. A first release gives the mean and noisy counts (a rating adds 1 to a user,
1 to an item, 1 to the number of ratings and |y| <= 1 to their sum: sensitivity 2), from which each row gets a step of
its own,

    x_a <- x_a + 2 / (t + 2) (gradient_a - ridge_a x_a) / (n_a + ridge_a),
    ridge_a = (residual + noise^2 / n_a) / signal,

with the ridge its noise calls for and steps that average the noise over time. z is the smallest with which all releases
together cost (epsilon, delta), by the privacy loss distributions of dp-accounting.

**Denoised**, in the spirit of Liu et al. 2021: better estimates from what was already paid for. They improve privately
released answers by fitting a structured model to them; here the structure is that of the factorisation itself.

1. The rows of the last half of the steps are averaged: each carries fresh noise, the signal is the same.
2. Every column of biases and factors, x_a = signal + noise of variance v_a, known from the noise drawn and the noisy
   counts, is shrunk by empirical Bayes: x_a tau^2 / (tau^2 + v_a), tau^2 = mean(x^2 - v)+ weighted by 1 / v^2, so that
   a column in which nothing stands out from the noise vanishes.

It reads nothing but released values, so the price is that of DP-SGD.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpsr.arrays import Floats
from dpsr.engine.raw import RawRatings
from dpsr.evaluate.baselines.base import Linear
from dpsr.evaluate.contract import CATALOGUE, FLOATING, PrivateMethod, Protection
from dpsr.evaluate.metrics.ranking import Predictor
from dpsr.evaluate.peers.accounting import epsilon_of, sampled_multiplier
from dpsr.evaluate.peers.averages import shrunk_mean
from dpsr.evaluate.peers.floating import Price, gaussian_noise
from dpsr.evaluate.peers.least_squares import BIAS_SIGNAL, FACTOR_SIGNAL, RESIDUAL, unit_values
from dpsr.linalg.compiled import kernel
from dpsr.types import Mask

STEPS, SAMPLING, RANK, CLIP = 60, 0.3, 4, 0.5
START = 0.1
COUNT_SHARE = 0.1
"""Of the budget (in 1 / multiplier^2), what the mean and the counts take."""
COUNT_SENSITIVITY = 2.0


@dataclass(frozen=True, eq=False)
class Step:
    """Step sizes and ridges of the rows of one side."""

    rate: Floats
    ridge: Floats


@dataclass
class DPSGD(PrivateMethod):
    """Biased matrix factorisation by noisy clipped gradients of Poisson samples."""

    def _learn(self, ratings: RawRatings) -> tuple[Predictor, Protection]:
        mask, y, rng = ratings.mask, unit_values(ratings), self._noise()
        z = sampled_multiplier(self.epsilon, self.delta, ((1.0, SAMPLING, STEPS), (_count_multiplier(), 1.0, 1)))
        counts, price = gaussian_noise(
            counts_and_sum(mask, y), sensitivity=COUNT_SENSITIVITY, multiplier=z * _count_multiplier(), rng=rng
        )
        total = max(float(counts[-2]), 1.0)
        mean = shrunk_mean(float(counts[-1]), total, price.scale**2)
        step = _steps(believed_counts(counts[:-2], total, mask.shape, price.scale), _noise(z))
        rows, prices = self._train(mask, y - mean, step, z, rng)
        model = Linear(ratings.scale, mean, *split_rows(rows, mask.n_users))
        spent = epsilon_of([price, *prices], self.delta)
        return model, Protection("rating (add/remove)", spent, self.delta, CATALOGUE, FLOATING)

    def _train(
        self, mask: Mask, y: Floats, step: Step, z: float, rng: np.random.Generator
    ) -> tuple[Floats, list[Price]]:
        """Rows (bias, factors) of users, then items, and the receipts of the steps."""
        rows, prices, history = start_rows(mask, self._chance()), [], []
        for t in range(STEPS):
            chosen = np.flatnonzero(self._chance(1 + t).random(mask.n_ratings) < SAMPLING)
            gradient = clipped_gradient(mask.users[chosen], mask.items[chosen], y[chosen], rows, mask.n_users, CLIP)
            noisy, price = gaussian_noise(gradient, sensitivity=CLIP, multiplier=z, rng=rng, sampling=SAMPLING)
            rows = rows + 2 / (t + 2) * step.rate * (noisy / SAMPLING - step.ridge * rows)
            prices.append(price)
            history.append(rows)
        return self._finish(history, mask, step, _noise(z)), prices

    def _finish(self, history: list[Floats], mask: Mask, step: Step, noise: float) -> Floats:
        return history[-1]


@dataclass
class Denoised(DPSGD):
    """DP-SGD, then averaging and empirical-Bayes shrinkage."""

    def _finish(self, history: list[Floats], mask: Mask, step: Step, noise: float) -> Floats:
        rows = np.mean(history[len(history) // 2 :], axis=0)
        variance = (noise * step.rate) ** 2
        m = mask.n_users
        return np.vstack([shrink_columns(rows[:m], variance[:m]), shrink_columns(rows[m:], variance[m:])])


def shrink_columns(rows: Floats, variance: Floats) -> Floats:
    """Each column shrunk towards zero by the share of its variance that is noise."""
    weight = 1 / variance**2
    signal = np.maximum((weight * (rows**2 - variance)).sum(axis=0) / weight.sum(axis=0), 0.0)
    return rows * signal / (signal + variance)


def _noise(z: float) -> float:
    """Standard deviation of the noise in the sum of all gradients when every step weighs the same."""
    return float(z * CLIP / SAMPLING / np.sqrt(STEPS))


def _count_multiplier() -> float:
    """The noise multiplier of the counts in units of z, so that they take their share beside q^2 steps / z^2."""
    return float(1 / np.sqrt(COUNT_SHARE * SAMPLING**2 * STEPS))


def counts_and_sum(mask: Mask, y: Floats) -> Floats:
    """Ratings per user, per item and in all, and the sum of y: one rating moves it by at most 2."""
    return np.concatenate([mask.user_counts, mask.item_counts, [mask.n_ratings, y.sum()]]).astype(np.float64)


def start_rows(mask: Mask, rng: np.random.Generator) -> Floats:
    """Biases at zero, factors small and random."""
    rows = rng.normal(0, START, (sum(mask.shape), RANK + 1))
    rows[:, 0] = 0.0
    return rows


def split_rows(rows: Floats, n_users: int) -> tuple[Floats, Floats]:
    """Rows (bias, factors) as user rows (b, 1, p) and item rows (1, c, q)."""
    one = np.ones((len(rows), 1))
    users = np.hstack([rows[:n_users, :1], one[:n_users], rows[:n_users, 1:]])
    return users, np.hstack([one[n_users:], rows[n_users:, :1], rows[n_users:, 1:]])


def _steps(counts: Floats, noise: float) -> Step:
    """Step and ridge of every row. A factor's gradient weighs a rating with a factor squared."""
    n = counts[:, None]
    signal = np.array([BIAS_SIGNAL, *[FACTOR_SIGNAL] * RANK])
    weight = np.array([1.0, *[FACTOR_SIGNAL] * RANK])
    ridge = (RESIDUAL + noise**2 / (weight * n)) / signal
    return Step(1 / (n + ridge), ridge)


def believed_counts(counts: Floats, total: float, shape: tuple[int, int], noise: float) -> Floats:
    """Noisy counts drawn towards the average of their side, as counts that spread like their average would be."""
    average = total / np.repeat(np.array(shape), shape)
    trust = average**2 / (average**2 + noise**2)
    return np.clip(average + trust * (counts - average), 0.1 * average, total)


@kernel
def clipped_gradient(
    users: npt.NDArray[np.int32],
    items: npt.NDArray[np.int32],
    y: Floats,
    rows: Floats,
    n_users: int,
    clip: float,
) -> Floats:
    """Descent direction of squared error / 2, the gradient of each rating clipped to length `clip`."""
    total = np.zeros_like(rows)
    d = rows.shape[1] - 1
    for t in range(len(y)):
        u, j = users[t], n_users + items[t]
        error, square = y[t] - rows[u, 0] - rows[j, 0], 2.0
        for k in range(1, d + 1):
            error -= rows[u, k] * rows[j, k]
            square += rows[u, k] ** 2 + rows[j, k] ** 2
        length = abs(error) * np.sqrt(square)
        if length > clip:
            error *= clip / length
        total[u, 0] += error
        total[j, 0] += error
        for k in range(1, d + 1):
            total[u, k] += error * rows[j, k]
            total[j, k] += error * rows[u, k]
    return total
