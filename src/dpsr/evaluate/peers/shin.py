"""Local-DP factorisation in the manner of Shin, Kim, Shin and Xiao 2018, "Privacy enhanced matrix factorization".

Nobody is trusted: a user keeps ratings, bias and factors at home and in each of T rounds reports **one** number. With
x_u = (alpha, p_u) and the user's residuals e_uj, the gradient of the item vectors is e_uj x_u in the rows of the items
that u rated and zero elsewhere, so that what was rated is hidden too. It is projected from items to B buckets by public
random signs and clipped, one of its B (d+1) coordinates is drawn at random, and the number goes through a local
randomiser with epsilon / T (`floating.local_reports`), then is multiplied by B (d+1). Whatever the user's ratings are,
a report costs epsilon / T, so the unit is **the user** and the sensitivity needs no argument.

In the first round the number is the user's mean rating. Afterwards the server adds up the reports and moves the item
vectors, and users compute their own side from the item vectors and their own ratings. Shin et al. use the one-bit
randomiser; the better of it and the piecewise one is used, which is kinder at large epsilon / T. Steps and ridges
follow the known variance of the reports.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpsr.arrays import Floats
from dpsr.engine.raw import RawRatings
from dpsr.evaluate.contract import CATALOGUE, FLOATING, JOINT, PrivateMethod, Protection
from dpsr.evaluate.metrics.ranking import Predictor
from dpsr.evaluate.peers.accounting import epsilon_of
from dpsr.evaluate.peers.averages import shrunk_mean, user_means
from dpsr.evaluate.peers.floating import Measured, Price, local_reports, report_variance
from dpsr.evaluate.peers.least_squares import (
    ALPHA,
    RANK,
    RESIDUAL,
    features,
    item_signal,
    item_weight,
    joint_model,
    own_rows,
    shared_vectors,
    start_vectors,
    unit_values,
)
from dpsr.types import Mask

ROUNDS, BUCKETS, CLIP = 5, 32, 2.0
TYPICAL = 0.2
"""A user's clipped coordinate, as a share of CLIP: what sampling one coordinate adds to the variance."""
DECLARED = 50
"""Ratings a user is taken to have when steps are sized; the real number is private."""


@dataclass(frozen=True, eq=False)
class Projection:
    """Public random buckets and signs of the items."""

    bucket: npt.NDArray[np.int64]
    sign: Floats

    @classmethod
    def draw(cls, n_items: int, rng: np.random.Generator) -> Projection:
        """One bucket and one sign per item; a bucket of its own for everyone where they suffice."""
        if n_items <= BUCKETS:
            return cls(np.arange(n_items), np.ones(n_items))
        return cls(rng.integers(0, BUCKETS, n_items), rng.choice([-1.0, 1.0], n_items))


@dataclass
class LocalMF(PrivateMethod):
    """One randomised number per user and round."""

    def _learn(self, ratings: RawRatings) -> tuple[Predictor, Protection]:
        mask, y, rng = ratings.mask, unit_values(ratings), self._noise()
        mean, first = self._mean(user_means(mask, y), rng)
        y, v, prices = y - mean, start_vectors(mask.n_items, self._chance()), [first]
        for t in range(ROUNDS):
            projection = Projection.draw(mask.n_items, self._chance(2 * t + 1))
            gradients = user_gradients(mask, y, v, own_rows(mask, y, v), projection)
            total, price = self._reports(gradients, self._chance(2 * t + 2), rng)
            v = v + 2 / (t + 2) * move(total, projection, v, price, mask)
            prices.append(price)
        note = f"local DP, no trusted curator; {JOINT}; {FLOATING}"
        protection = Protection("user", epsilon_of(prices, self.delta), 0.0, CATALOGUE, note)
        return joint_model(ratings.scale, mean, mask, y, v), protection

    def _mean(self, own: Floats, rng: np.random.Generator) -> tuple[float, Price]:
        """The mean of the users' means, from one report of each."""
        reports, price = local_reports(own, epsilon=self.epsilon / (ROUNDS + 1), rng=rng)
        variance = len(own) * (report_variance(price.epsilon) + TYPICAL**2)
        return shrunk_mean(float(reports.sum()), len(own), variance), price

    def _reports(self, gradients: Floats, chance: np.random.Generator, rng: np.random.Generator) -> Measured:
        """The sum of all users' reports as an unbiased estimate of the projected gradient."""
        users, size = gradients.shape
        asked = chance.integers(0, size, users)
        answers = np.clip(gradients[np.arange(users), asked] / CLIP, -1, 1)
        reports, price = local_reports(answers, epsilon=self.epsilon / (ROUNDS + 1), rng=rng)
        total = np.bincount(asked, size * CLIP * reports, minlength=size).astype(np.float64)
        return Measured(total.reshape(BUCKETS, RANK + 1), price)


def user_gradients(mask: Mask, y: Floats, v: Floats, own: Floats, projection: Projection) -> Floats:
    """The projected gradient of every user, one row each; computed at the user's and never sent."""
    x = shared_vectors(own[:, 1:])
    expected = ALPHA * v[mask.items, 0] + np.einsum("rd,rd->r", features(v)[mask.items], own[mask.users])
    weights = (y - expected) * projection.sign[mask.items]
    cell = mask.users.astype(np.int64) * BUCKETS + projection.bucket[mask.items]
    sums = np.bincount(cell, weights, minlength=mask.n_users * BUCKETS).reshape(mask.n_users, BUCKETS)
    return (sums[:, :, None] * x[:, None, :]).reshape(mask.n_users, -1)


def move(total: Floats, projection: Projection, v: Floats, price: Price, mask: Mask) -> Floats:
    """A ridge step of the item vectors, the noise of the reports weighed in.

    A coordinate of the total has variance of about m size CLIP^2 (v + TYPICAL^2), size = B (d+1), v the randomiser's.
    """
    size = BUCKETS * (RANK + 1)
    noise = mask.n_users * size * CLIP**2 * (report_variance(price.epsilon) + TYPICAL**2)
    n = DECLARED * mask.n_users / mask.n_items
    ridge = (RESIDUAL + noise / (n * item_weight())) / item_signal()
    gradient = projection.sign[:, None] * total[projection.bucket]
    return (gradient - ridge * v) / (n + ridge)
