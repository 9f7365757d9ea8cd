"""People as a whole: how many, how active, at which level and how widely they rate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpsr.arrays import Floats
from dpsr.synthesis import plausible_activity
from dpsr.types.item_side import ACTIVITY_BINS, CENTRE, SIZES

# Beliefs before anything is asked, in half-widths of the scale or as ratios; wide on purpose.
LEVEL_DEVIATION, LEVEL_STEP = 0.2, 0.06
SPREAD, SPREAD_LOG_DEVIATION = 0.4, 0.6
LEVEL_VARIANCE, LEVEL_VARIANCE_LOG_DEVIATION = 0.3, 1.0


@dataclass(frozen=True, eq=False)
class Totals:
    """Answers about all people, pooled over the times they were asked: values and noise of each."""

    values: Floats
    noise: float

    @classmethod
    def pool(cls, asked: Sequence[tuple[Floats, float]]) -> Totals:
        """The precision-weighted mean of (values, noise) pairs."""
        weights = np.array([noise**-2 for _, noise in asked])
        values = sum(w * v for w, (v, _) in zip(weights, asked, strict=True)) / weights.sum()
        return cls(np.asarray(values), float(weights.sum() ** -0.5))

    @property
    def people(self) -> float:
        return max(float(self.values[0]), 1.0)


@dataclass(frozen=True, eq=False)
class PeopleLevels:
    """What is believed of people as a whole.

    `counts` are people in each octave of activity and add up to `people`; `level` the mean own level there and `spread`
    the deviation of a rating around it, in half-widths; `variance` that of people's levels, in squared spreads.
    """

    people: float
    counts: Floats
    level: Floats
    spread: float
    variance: float

    @property
    def ratings(self) -> Floats:
        """Ratings in each octave."""
        return self.counts * SIZES

    @property
    def mean_level(self) -> float:
        """The level behind a rating drawn at random, in spreads."""
        return float(np.average(self.level, weights=self.ratings)) / self.spread

    def known_per_rating(self, known: float) -> float:
        """How much of a coefficient the person behind a rating knows, when people know `known` of it on average.

        Somebody with n ratings knows n c / (1 + n c); c follows from the average over people, and the average over
        ratings from c.
        """
        low, high = 1e-6, 1e6
        for _ in range(60):
            c = np.sqrt(low * high)
            enough = (self.counts * SIZES * c / (1 + SIZES * c)).sum() >= known * self.counts.sum()
            low, high = (low, c) if enough else (c, high)
        return float((self.ratings * SIZES * c / (1 + SIZES * c)).sum() / self.ratings.sum())


@dataclass(frozen=True, eq=False)
class Weights:
    """How ratings weigh when a person's vector has length one at most.

    `mean` weight of a rating; `kappa` = E[w^2] / E[w], so that the sampling variance of an effect is kappa over the
    weighted count; `most` the largest weighted count an item can have: everybody rated it. `by_activity` is the weight
    of a rating of somebody in each octave.
    """

    mean: float
    kappa: float
    most: float
    by_activity: Floats

    @classmethod
    def of(cls, levels: PeopleLevels, size: float, floor: float) -> Weights:
        """`size` is what a rating adds to its person's squared length; below `floor` vectors are not scaled up."""
        w, ratings = 1 / np.sqrt(np.maximum(SIZES * size, floor)), levels.ratings
        return cls(
            float((ratings * w).sum() / ratings.sum()),
            float((ratings * w**2).sum() / (ratings * w).sum()),
            float((levels.counts * w).sum()),
            w,
        )


def read_levels(totals: Totals, table: Floats, table_noise: float) -> PeopleLevels:
    """The posterior from pooled totals (1, a, a^2, nu v, nu) and the noisy table of counts and sums of a by activity.

    The overall level, N(0, LEVEL_DEVIATION^2) around CENTRE, meets sum a / people; levels of octaves are a random walk
    around it; spread and variance are log-normal beliefs that meet a ratio with its error. People whom noise alone puts
    at thousands of ratings are not believed in: a handful of them would be most ratings, and what all ratings add up
    to, and how much one of them weighs, follows from the counts.
    """
    people, noise = totals.people, totals.noise
    _, a_sum, a_square, spread, nu = totals.values
    counts = plausible_activity(_shown_counts(table[:, 0], table_noise, people))
    s2, s2_log = _positive_ratio(spread, nu, noise, SPREAD**2, SPREAD_LOG_DEVIATION)
    between = LEVEL_VARIANCE * s2
    level, share = np.zeros(ACTIVITY_BINS), LEVEL_VARIANCE
    for _ in range(2):
        prior, error = LEVEL_DEVIATION**2, (noise**2 + people * (between + s2)) / people**2
        overall, deviation = a_sum / people * prior / (prior + error), np.sqrt(prior * error / (prior + error))
        mix = counts / counts.sum()
        weight = counts**2 / (table_noise**2 + counts * (between + s2 / SIZES) + 1e-12)
        right = weight * table[:, 1] / np.maximum(counts, 1e-9) + mix * overall / deviation**2
        level = np.linalg.solve(_random_walk() + np.diag(weight) + np.outer(mix, mix) / deviation**2, right)
        inverse = float((mix / SIZES).sum())
        raw = a_square / people - (mix * level**2).sum() - s2 * inverse
        of_means = np.sqrt(2 * float((mix * (between + s2 / SIZES) ** 2).sum()) / people)
        errors = (noise / people, of_means, 2 * abs(overall) * deviation, s2 * s2_log * inverse)
        share, _ = _log_posterior(
            raw / s2, float(np.linalg.norm(errors)) / s2, LEVEL_VARIANCE, LEVEL_VARIANCE_LOG_DEVIATION
        )
        between = share * s2
    return PeopleLevels(people, counts, level + CENTRE, float(np.sqrt(s2)), share)


def _shown_counts(counts: Floats, noise: float, people: float) -> Floats:
    """People by activity: what is below the noise fades; where all is drowned, a broad log-normal law."""
    shown = np.where(counts > 2 * noise, counts, 0.5 * np.maximum(counts, 0) ** 2 / noise)
    if shown.sum() < 0.3 * people:
        shown = shown + np.exp(-0.5 * ((np.arange(ACTIVITY_BINS) - 4) / 2) ** 2) * 0.2 * people
    return np.asarray(shown * people / shown.sum())


def _random_walk() -> Floats:
    Q = np.zeros((ACTIVITY_BINS, ACTIVITY_BINS))
    for k in range(ACTIVITY_BINS - 1):
        Q[k : k + 2, k : k + 2] += np.array([[1, -1], [-1, 1]]) / LEVEL_STEP**2
    return Q


def _positive_ratio(top: float, bottom: float, noise: float, belief: float, log_dev: float) -> tuple[float, float]:
    if bottom <= 0:
        return belief, log_dev
    value = max(top / bottom, 1e-3)
    return _log_posterior(value, noise / bottom * float(np.sqrt(1 + value**2)), belief, log_dev)


def _log_posterior(value: float, error: float, belief: float, log_dev: float) -> tuple[float, float]:
    """exp of the posterior mean of log x, and its deviation.

    log x ~ N(log belief, log_dev^2), and x was measured as `value` with an `error`.
    """
    x = np.log(belief) + log_dev * np.linspace(-4, 4, 401)
    log_p = -0.5 * ((x - np.log(belief)) / log_dev) ** 2 - 0.5 * ((np.exp(x) - value) / max(error, 1e-9)) ** 2
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    mean = float((p * x).sum())
    return float(np.exp(mean)), float(np.sqrt((p * (x - mean) ** 2).sum()))
