r"""DP-ALS in its published form with right sensitivities, its settings chosen on held-back ratings.

Chien et al. 2021 and Krichene et al. 2023: no biases, one ridge for all rows, users' vectors cut at a bound. Ratings y
in [-1, 1] less a noisy mean of the users' means, weights c of `adaptive` (sum_j c_uj^2 = 1, exponent -1/4),

    p_u = argmin sum_j (y_uj - p.v_j)^2 + lambda / h^2 |p|^2        from u's own ratings
    x_u = p_u cut to length Gamma
    v_j = (PSD part of the noisy gram + lambda / sqrt(B))^-1 noisy right,      sums of c x x' and of c clamp(y) x.

lambda is stated as in the reference, whose ratings are stars (h = 2.25 of them are half of its scale) and whose weights
have sum c^2 = B = 100. Sensitivities are those of `dp_als`: Gamma^2 and Gamma, charged in full, with y clamped.

The settings that were published for ML-10M span d 8 to 32, 2 to 4 rounds, lambda 40 to 60 and Gamma 0.2 to 0.5. They
were chosen on a validation part whose use nobody charged. Here too, **in its favour**: the choice costs nothing, sees a
tenth of the raw training ratings, and is made with the noise that the fit will have. The form with biases and ridges
that follow the noise, which nobody published, is `dp_als`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpsr.arrays import Floats
from dpsr.engine.raw import RawRatings
from dpsr.evaluate.baselines.base import Linear, hold_out
from dpsr.evaluate.contract import PrivateMethod, Protection
from dpsr.evaluate.metrics.accuracy import rmse
from dpsr.evaluate.metrics.ranking import Predictor
from dpsr.evaluate.peers.adaptive import STATISTIC_SENSITIVITY, item_statistics, solved_items
from dpsr.evaluate.peers.dp_als import COUNT_SHARE, DPALS, MEAN_SHARE
from dpsr.evaluate.peers.floating import Price
from dpsr.evaluate.peers.least_squares import clip_rows, local_rows
from dpsr.types import Mask, Scale

HALF_WIDTH, ROOT_BUDGET = 2.25, 10.0
"""Of the reference's scale, in stars; the root of a user's budget B there."""

RANKS, ROUNDS, RIDGES, BOUNDS = (8, 16, 32), (2, 3, 4), (50.0, 25.0, 100.0), (0.3, 0.2, 0.5)
"""What was published, of lambda more than that; the first of each is tried first."""

VALIDATION = 0.1
CHOSEN = "settings chosen on held-back raw ratings, not charged"


@dataclass
class PublishedDPALS(DPALS):
    """One of the published settings. `rank` is d."""

    rank: int = RANKS[0]
    rounds: int = ROUNDS[0]
    ridge: float = RIDGES[0]
    bound: float = BOUNDS[0]

    def _item_side(
        self, mask: Mask, y: Floats, weights: Floats, usual: float, rng: np.random.Generator
    ) -> tuple[Floats, list[Price]]:
        """Item vectors after so many rounds; of a first vector the first entry is one, so that levels are seen."""
        v, prices = self._chance().normal(0.0, 1.0, (mask.n_items, self.rank)), list[Price]()
        v[:, 0] = 1.0
        share = (1 - MEAN_SHARE - COUNT_SHARE) / self.rounds
        for _ in range(self.rounds):
            x = clip_rows(self._own(mask, y, v), self.bound) / self.bound
            noisy, price = self._noisy(item_statistics(mask, weights, y, x), STATISTIC_SENSITIVITY, share, rng)
            ridge = np.full((mask.n_items, self.rank), self.ridge / ROOT_BUDGET / self.bound**2)
            v = solved_items(noisy, self.rank, ridge) / self.bound
            prices.append(price)
        return v, prices

    def _own(self, mask: Mask, y: Floats, v: Floats) -> Floats:
        return local_rows(mask, y, v, self.ridge / HALF_WIDTH**2)

    def _model(self, scale: Scale, mean: float, mask: Mask, y: Floats, v: Floats) -> Linear:
        """Users' own vectors are cut only where others see them."""
        return Linear(scale, mean, self._own(mask, y, v), v)


@dataclass
class TunedDPALS(PrivateMethod):
    """The best of the published settings on held-back ratings."""

    def _learn(self, ratings: RawRatings) -> tuple[Predictor, Protection]:
        self.chosen_ = chosen(ratings, self._budget(), self.learner_seed)
        predictor, protection = self.chosen_._learn(ratings)
        return predictor, replace(protection, note=f"{protection.note}; {CHOSEN}")

    def _budget(self) -> tuple[float, float, int]:
        return self.epsilon, self.delta, self.noise_seed


def chosen(ratings: RawRatings, budget: tuple[float, float, int], seed: int) -> PublishedDPALS:
    """The best published setting, looked for one setting at a time."""
    held = hold_out(ratings.mask, VALIDATION, seed)
    if not held.any():
        return PublishedDPALS(*budget)
    rest, test = (RawRatings(ratings.mask.select(rows), ratings.levels[rows], ratings.scale) for rows in (~held, held))
    best = PublishedDPALS(*budget)
    least = _error(best, rest, test)
    for change in _changes():
        candidate = replace(best, **change)
        error = _error(candidate, rest, test)
        if error < least:
            best, least = candidate, error
    return best


def _changes() -> Iterator[dict[str, Any]]:
    """One setting at a time, from the one tried first."""
    for name, values in {"rank": RANKS, "bound": BOUNDS, "rounds": ROUNDS, "ridge": RIDGES}.items():
        yield from ({name: value} for value in values[1:])


def _error(candidate: DPALS, rest: RawRatings, test: RawRatings) -> float:
    """RMSE on the held-back ratings."""
    predictor, _ = candidate._learn(rest)
    users, items = test.mask.users.astype(np.int64), test.mask.items.astype(np.int64)
    return rmse(test.values, rest.scale.clip(predictor.predict(users, items)))
