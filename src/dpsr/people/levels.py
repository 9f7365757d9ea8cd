"""People as a whole: how many, how active, at which level and how widely they rate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from dpsr.arrays import Floats
from dpsr.certify.one_rating import LEVELS_RAMP, PER_RATING, SECOND_ORDER
from dpsr.synthesis import plausible_activity
from dpsr.types.item_side import ACTIVITY_BINS, CENTRE, SIZES

# Beliefs before anything is asked, in half-widths of the scale or as ratios; wide on purpose.
LEVEL_DEVIATION, LEVEL_STEP = 0.2, 0.06
SPREAD, SPREAD_LOG_DEVIATION = 0.4, 0.6
LEVEL_VARIANCE, LEVEL_VARIANCE_LOG_DEVIATION = 0.3, 1.0
_ACTIVITY_WIDTH, _WIDTH_DEVIATION = 1.6, 0.5

_MISFIT, _UNEXPECTED = 0.05, 0.1
"""Relative error of sums over octaves, in which numbers of ratings have not quite a density ~ 1/n; and how large a part
of all people, or of all ratings, may be in an octave where a log-normal law has nobody."""

_RATINGS = np.array([(1 << k) / (1 / np.arange(1 << k, 2 << k)).sum() for k in range(ACTIVITY_BINS)])
"""The mean of whole numbers in an octave, for a density ~ 1/n."""


Asked = tuple[Floats, float]
"""Noisy numbers, and the noise in each."""


@dataclass(frozen=True, eq=False)
class Totals:
    """Answers about all people, pooled over the times they were asked: values and noise of each.

    Sums over people of c, c a, c a^2, d v and d: a the own mean less CENTRE, v the own variance; somebody with n
    ratings counts c = 1 and d = (n - 1) / (n + 1), or c = n / (n + k) and d = (n - 1) / (n + k) where ratings are the
    unit. There `ratings` is how many of them there are, and its noise.
    """

    values: Floats
    noise: Floats
    ramp: float = 0.0
    ratings: tuple[float, float] | None = None

    @classmethod
    def of_people(cls, asked: Sequence[Asked]) -> Totals:
        """At the unit `user`."""
        values, noise = pooled(asked)
        return cls(values, np.full(5, noise))

    @classmethod
    def of_ratings(cls, asked: Sequence[Asked]) -> Totals:
        """At the unit `rating`, out of their weights in the answer."""
        values, noise = pooled(asked)
        second = LEVELS_RAMP * float(SECOND_ORDER)
        scale = np.array([LEVELS_RAMP, LEVELS_RAMP, second, second, second, float(PER_RATING)])
        values, errors = values / scale, noise / scale
        return cls(values[:5], errors[:5], LEVELS_RAMP, (float(values[5]), float(errors[5])))

    @property
    def weight(self) -> float:
        """The sum of c: how many people, or what they count."""
        return max(float(self.values[0]), 1.0)

    @property
    def level_error(self) -> float:
        """What noise leaves unknown of the overall level, in half-widths."""
        return float(self.noise[1]) / self.weight


def pooled(asked: Sequence[Asked]) -> tuple[Floats, float]:
    """The precision-weighted mean of answers to one question, and its noise."""
    weights = np.array([noise**-2 for _, noise in asked])
    values = np.array([values for values, _ in asked])
    return weights @ values / weights.sum(), float(weights.sum() ** -0.5)


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
    """The posterior from pooled totals and the noisy table of counts and sums of a by activity.

    The overall level, N(0, LEVEL_DEVIATION^2) around CENTRE, meets sum c a / sum c; levels of octaves are a random walk
    around it; spread and variance are log-normal beliefs that meet a ratio with its error.
    """
    total, noise = totals.weight, totals.noise
    _, a_sum, a_square, spread, known = totals.values
    counts = read_counts(totals, table[:, 0], table_noise)
    c = _octave_means(totals.ramp)
    mix, squares = counts * c / (counts * c).sum(), float((counts * c * c).sum())
    s2, s2_log = _positive_ratio(spread, known, float(noise[3]), SPREAD**2, SPREAD_LOG_DEVIATION)
    between = LEVEL_VARIANCE * s2
    level, share = np.zeros(ACTIVITY_BINS), LEVEL_VARIANCE
    for _ in range(2):
        prior, error = LEVEL_DEVIATION**2, (noise[1] ** 2 + squares * (between + s2)) / total**2
        overall, deviation = a_sum / total * prior / (prior + error), np.sqrt(prior * error / (prior + error))
        weight = counts**2 / (table_noise**2 + counts * (between + s2 / SIZES) + 1e-12)
        right = weight * table[:, 1] / np.maximum(counts, 1e-9) + mix * overall / deviation**2
        level = np.linalg.solve(_random_walk() + np.diag(weight) + np.outer(mix, mix) / deviation**2, right)
        inverse = float((mix / SIZES).sum())
        raw = a_square / total - (mix * level**2).sum() - s2 * inverse
        of_means = np.sqrt(2 * float((mix * c * (between + s2 / SIZES) ** 2).sum()) / total)
        errors = (noise[2] / total, of_means, 2 * abs(overall) * deviation, s2 * s2_log * inverse)
        share, _ = _log_posterior(
            raw / s2, float(np.linalg.norm(errors)) / s2, LEVEL_VARIANCE, LEVEL_VARIANCE_LOG_DEVIATION
        )
        between = share * s2
    return PeopleLevels(float(counts.sum()), counts, level + CENTRE, float(np.sqrt(s2)), share)


def read_counts(totals: Totals, counts: Floats, noise: float) -> Floats:
    """People by activity, from what they count in all and noisy numbers of people in every octave.

    Where the number of ratings is known, a log-normal law that fits it and what people count is believed, with a
    deviation of its own size; the numbers, what people count and the number of ratings are measurements of one normal
    posterior. Otherwise people whom noise alone puts at thousands of ratings are not believed in: a handful of them
    would be most ratings, and what all ratings add up to, and how much one of them weighs, follows from the counts.
    """
    if totals.ratings is None:
        return plausible_activity(_shown_counts(counts, noise, totals.weight))
    believed, (ratings, error) = _fitted_counts(totals, *totals.ratings), totals.ratings
    deviation = believed + _UNEXPECTED * np.minimum(believed.sum(), max(ratings, believed.sum()) / SIZES)
    sums = np.array([_octave_means(totals.ramp), _octave_means(totals.ramp, 1.0), _RATINGS])
    known = np.array([totals.weight, totals.values[4], ratings])
    errors = np.array([totals.noise[0], totals.noise[4], error]) + _MISFIT * np.abs(known)
    precision = np.diag(deviation**-2 + noise**-2) + sums.T @ np.diag(errors**-2) @ sums
    right = believed / deviation**2 + counts / noise**2 + sums.T @ (known / errors**2)
    found = np.maximum(np.linalg.solve(precision, right), 0.0)
    return np.asarray(found * totals.weight / (found @ sums[0]))


def _shown_counts(counts: Floats, noise: float, people: float) -> Floats:
    """People by activity: what is below the noise fades; where all is drowned, a broad log-normal law."""
    shown = np.where(counts > 2 * noise, counts, 0.5 * np.maximum(counts, 0) ** 2 / noise)
    if shown.sum() < 0.3 * people:
        shown = shown + np.exp(-0.5 * ((np.arange(ACTIVITY_BINS) - 4) / 2) ** 2) * 0.2 * people
    return np.asarray(shown * people / shown.sum())


def _fitted_counts(totals: Totals, ratings: float, noise: float) -> Floats:
    """The mean over log-normal laws of activity, each as far as sums of d and of ratings speak for it."""
    octaves, widths = np.arange(ACTIVITY_BINS), _ACTIVITY_WIDTH + _WIDTH_DEVIATION * np.linspace(-2, 2, 9)
    centres, widths = (one.ravel() for one in np.meshgrid(np.linspace(0, ACTIVITY_BINS - 2, 49), widths))
    law = np.exp(-0.5 * ((octaves - centres[:, None]) / widths[:, None]) ** 2)
    law *= totals.weight / (law @ _octave_means(totals.ramp))[:, None]
    known, of_weight = float(totals.values[4]), float(totals.noise[0]) / totals.weight + _MISFIT
    misfit = (known - law @ _octave_means(totals.ramp, 1.0)) ** 2 / (
        totals.noise[4] ** 2 + (of_weight * totals.weight) ** 2
    )
    misfit += (ratings - law @ _RATINGS) ** 2 / (noise**2 + (of_weight * ratings) ** 2)
    misfit += ((widths - _ACTIVITY_WIDTH) / _WIDTH_DEVIATION) ** 2
    chance = np.exp(-0.5 * (misfit - misfit.min()))
    return np.asarray(chance @ law / chance.sum())


@cache
def _octave_means(ramp: float, less: float = 0.0) -> Floats:
    """The mean of (n - less) / (n + ramp) in every octave of n, for a density ~ 1/n."""
    numbers = (np.arange(1 << k, 2 << k) for k in range(ACTIVITY_BINS))
    return np.array([((1 - less / n) / (n + ramp)).sum() / (1 / n).sum() for n in numbers])


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
