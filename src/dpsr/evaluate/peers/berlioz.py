"""Berlioz, Friedman, Kaafar, Boreli and Berkovsky 2015, "Applying differential privacy to matrix factorization".

Both variants start from noisy averages (`averages`) and work on what these leave over, clamped: e in [-B, B], which one
value moves by at most 2B.

    berlioz-input   e~ = clamp(e + Lap(2B / epsilon_4)), then an ordinary factorisation of e~
    berlioz-als     T sweeps of alternating least squares, each half-sweep perturbed (`least_squares`): the vectors
                    of one side are scaled to length one at most, so one value moves one row of the linear term by 2B,
                    and each half-sweep costs epsilon_4 / 2T

Budget: 2 % mean, 34 % items, 34 % users, 30 % factors. Kindly: averages get much of it, which pays at every epsilon;
the value of a rating is the unit, so counts are free; the factorisation of e~ is the tuned ALS of the comparison, which
chooses rank and ridge on held-back noisy values and no factors if none help; ridges follow the noise.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpsr.arrays import Codes, Floats, Ints
from dpsr.engine.raw import RawRatings
from dpsr.evaluate.baselines import ALS
from dpsr.evaluate.baselines.base import Linear, by_items
from dpsr.evaluate.contract import FLOATING, MASK, PrivateMethod, Protection
from dpsr.evaluate.metrics.ranking import Predictor
from dpsr.evaluate.peers.accounting import epsilon_of
from dpsr.evaluate.peers.averages import Averages, noisy_averages
from dpsr.evaluate.peers.floating import Measured, Price, laplace_noise
from dpsr.evaluate.peers.least_squares import perturbed_rows, unit_values
from dpsr.types import Mask

SHARES = (0.02, 0.34, 0.34, 0.30)
CLAMP = 0.5
"""B, in half-widths of the scale: one star of five."""
RANK = 3
SIGNAL = 0.05
"""Prior variance of a coefficient on vectors of length one at most."""


@dataclass
class Berlioz(PrivateMethod):
    """Noise on the residuals, then an ordinary factorisation; or on every half-sweep (`sweeps`)."""

    sweeps: bool = False

    def _learn(self, ratings: RawRatings) -> tuple[Predictor, Protection]:
        mask, y, rng = ratings.mask, unit_values(ratings), self._noise()
        a, b, c, rest = (share * self.epsilon for share in SHARES)
        averages = noisy_averages(mask, y, (a, b, c), rng)
        left = clamped(mask, y, averages)
        factorise = self._als if self.sweeps else self._input
        mean, users, items, prices = factorise(mask, left, rest, rng)
        model = Linear(
            ratings.scale,
            averages.mean + mean,
            np.column_stack([averages.users, np.ones(mask.n_users), users]),
            np.column_stack([np.ones(mask.n_items), averages.items, items]),
        )
        spent = epsilon_of([*averages.prices, *prices], self.delta)
        return model, Protection("rating value", spent, 0.0, MASK, FLOATING)

    def _input(
        self, mask: Mask, left: Floats, epsilon: float, rng: np.random.Generator
    ) -> tuple[float, Floats, Floats, list[Price]]:
        noisy, price = noisy_residuals(left, epsilon, rng)
        fit = ALS(random_state=self.learner_seed)._learn(mask, noisy)
        users = np.column_stack([fit.user_bias, np.ones(mask.n_users), fit.user_factors])
        return fit.offset, users, np.column_stack([np.ones(mask.n_items), fit.item_bias, fit.item_factors]), [price]

    def _als(
        self, mask: Mask, left: Floats, epsilon: float, rng: np.random.Generator
    ) -> tuple[float, Floats, Floats, list[Price]]:
        by_item, prices = by_items(mask), []
        Q = unit_rows(self._chance().standard_normal((mask.n_items, RANK)))
        sweeps = sweeps_for(self.epsilon)
        each = epsilon / (2 * sweeps)
        for _ in range(sweeps):
            P, price = self._half(mask.indptr, mask.items, left, Q, each, rng)
            prices.append(price)
            P = unit_rows(P)
            Q, price = self._half(by_item.ptr, by_item.users, left[by_item.places], P, each, rng)
            prices.append(price)
            Q, last = unit_rows(Q), Q
        return 0.0, P, last, prices

    def _half(
        self, indptr: Ints, columns: Codes, left: Floats, x: Floats, epsilon: float, rng: np.random.Generator
    ) -> Measured:
        """One side given the other; one value moves one row by 2B |x| <= 2B."""
        return perturbed_rows(
            indptr, columns, left, x, epsilon, rng, signal=np.full(RANK, SIGNAL), sensitivity=2 * CLAMP
        )


def sweeps_for(epsilon: float) -> int:
    """Two sweeps while noise decides, up to ten where it does not: read from the budget alone."""
    return int(np.clip(round(epsilon / 5), 2, 10))


def clamped(mask: Mask, y: Floats, averages: Averages) -> Floats:
    """What the averages leave over, in [-B, B]: a change of one value moves one entry by at most 2B."""
    return np.clip(y - averages.at(mask), -CLAMP, CLAMP)


def noisy_residuals(left: Floats, epsilon: float, rng: np.random.Generator) -> Measured:
    """Laplace noise on every residual, clamped again afterwards."""
    noisy, price = laplace_noise(left, sensitivity=2 * CLAMP, epsilon=epsilon, rng=rng)
    return Measured(np.clip(noisy, -CLAMP, CLAMP), price)


def unit_rows(rows: Floats) -> Floats:
    """All rows divided by the length of the longest; the other side makes up for it."""
    return rows / max(float(np.linalg.norm(rows, axis=1).max(initial=0.0)), 1e-300)
