"""How a rating scale is used: the distribution of a rating given its mean, found from one noisy histogram.

**The family.** Ratings are put on y in [-1, 1], half the scale's width to the unit. With a base measure pi and a
curvature t2,

    P(y | m)  is proportional to  pi_y exp(t1(m) y + t2 y^2),     t1(m) solves E[y | m] = m.

pi carries what is peculiar to the use of a scale (half stars are rarer, tens are frequent); t2 alone sets how far
ratings scatter around their mean. Because t1 is the natural parameter,

    d/dm log P(y | m) = (y - m) / V(m),      V(m) = Var(y | m),

so for any observation o of the rating the score in m is (E[y | o, m] - m) / V(m): every Gaussian pseudo-observation
used by the default pipeline is a consequence of this line.

**The histogram.** Where the budget buys nothing but the mean, that is asked as one sum and the rest is what rating
scales typically show. Otherwise noisy bin counts are shrunk towards a Gaussian with the noisy mean and variance, count
by count (prior deviation 0.7 of what is expected plus 2 % of all). The mean and variance have wide priors themselves
(anything a rating scale can show), so that with hardly any ratings or budget the answer is the middle of the scale and
not noise.

**The window.** Sums of clip(y - centre, -c, c) cost in proportion to c. A scale is four to five standard deviations
wide; the useful window one to two. A narrow window loses slope (how much the clipped mean moves with the true one), a
wide one buys noise.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpsr.arrays import Floats
from dpsr.linalg.compiled import kernel

GRID = 61
"""Means at which the family is tabulated; between them everything is interpolated."""

_EDGE = 0.02
"""How far the outermost means stay from the ends of the scale, where a distribution has no width left."""

_MEANS = np.linspace(-1 + _EDGE, 1 - _EDGE, GRID)

_MOST_STEPS, _CLOSE = 60, 1e-12
"""Steps towards a mean, and how near to it is near enough, in half-widths of the scale."""

_MOST_HALVINGS, _NEAR = 16, 1e-5
"""Steps towards a curvature, and how near to the variance asked for is near enough, as a share of it."""

_LEAST = 1e-6
"""A variance that counts as none."""


@dataclass(frozen=True, eq=False)
class LevelFamily:
    """P(y | m) at `GRID` means: `table[g, x]` for level x, and its variance."""

    y: Floats
    means: Floats
    table: Floats
    variance: Floats

    @property
    def spacing(self) -> float:
        return float(self.means[1] - self.means[0])

    def nearest(self, m: Floats) -> npt.NDArray[np.int64]:
        """The grid point nearest to each mean."""
        return np.clip(np.rint((m - self.means[0]) / self.spacing), 0, GRID - 1).astype(np.int64)

    def between(self, m: Floats) -> tuple[npt.NDArray[np.int64], Floats]:
        """The grid point at or below each mean, and how far it is on the way to the next one."""
        at = np.clip((m - self.means[0]) / self.spacing, 0, GRID - 1)
        below = np.minimum(at.astype(np.int64), GRID - 2)
        return below, at - below

    def at(self, values: Floats, m: Floats) -> Floats:
        """A function tabulated on the means, interpolated linearly."""
        return np.interp(m, self.means, values)


def tabulate(y: Floats, log_base: Floats, curvature: float) -> LevelFamily:
    """The family with base measure exp(log_base) and the given curvature."""
    logit = log_base + curvature * y**2
    tilts, variance = _tilts(y, logit, _MEANS, _bound(y, log_base, curvature))
    logit = logit + tilts[:, None] * y
    table = np.exp(logit - logit.max(axis=1, keepdims=True))
    return LevelFamily(y, _MEANS, table / table.sum(axis=1, keepdims=True), variance)


def with_variance(y: Floats, log_base: Floats, variance: float, centres: Floats) -> LevelFamily:
    """The family whose variance, averaged over the means `centres`, is `variance`, as nearly as the scale allows."""
    at = np.clip((centres - _MEANS[0]) / (_MEANS[1] - _MEANS[0]), 0, GRID - 1)
    below = np.minimum(at.astype(np.int64), GRID - 2)
    share = np.bincount(below, below + 1 - at, GRID) + np.bincount(below + 1, at - below, GRID)
    return tabulate(y, log_base, _curvature(y, log_base, _MEANS, share / len(centres), variance))


@kernel
def _bound(y: Floats, log_base: Floats, curvature: float) -> float:
    """More than any tilt between the outermost means."""
    return float((20.0 + np.ptp(log_base)) / (y[1] - y[0]) + 4 * abs(curvature) + 20)


@kernel
def _tilts(y: Floats, logit: Floats, means: Floats, bound: float) -> tuple[Floats, Floats]:
    """t1 of every mean, ascending, and the variance there.

    Newton's method, whose derivative is the variance, from the mean before; bisection where it would leave the bracket.
    """
    tilts, variances, tilt = np.empty(len(means)), np.empty(len(means)), 0.0
    found, variance = _moments(y, logit, tilt)
    for g in range(len(means)):
        low, high = -bound, bound
        for _ in range(_MOST_STEPS):
            if abs(found - means[g]) < _CLOSE:
                break
            low, high = (tilt, high) if found < means[g] else (low, tilt)
            tilt += (means[g] - found) / max(variance, 1e-12)
            if not low < tilt < high:
                tilt = (low + high) / 2
            found, variance = _moments(y, logit, tilt)
        tilts[g], variances[g] = tilt, max(variance, _LEAST)
    return tilts, variances


@kernel
def _moments(y: Floats, logit: Floats, tilt: float) -> tuple[float, float]:
    """Mean and variance at a tilt."""
    most = (logit + tilt * y).max()
    total, first, second = 0.0, 0.0, 0.0
    for x in range(len(y)):
        p = np.exp(logit[x] + tilt * y[x] - most)
        total, first, second = total + p, first + p * y[x], second + p * y[x] ** 2
    mean = first / total
    return mean, second / total - mean * mean


@kernel
def _curvature(y: Floats, log_base: Floats, means: Floats, share: Floats, variance: float) -> float:
    """t2 at which the variances of all means, weighed by `share`, average to `variance`.

    A Gaussian's variance is 1 / (2 (a - t2)), so that (1 / found - 1 / variance) / 2 is the step that would be right
    for one; halving where that would leave the bracket, or a step did not halve what was missing.
    """
    low, high, t2, missing = -1.0 / variance - 10, 20.0, 0.0, np.inf
    for _ in range(_MOST_HALVINGS):
        _, variances = _tilts(y, log_base + t2 * y**2, means, _bound(y, log_base, t2))
        found = (share * variances).sum()
        before, missing = missing, abs(found - variance)
        if missing < _NEAR * variance:
            break
        low, high = (t2, high) if found < variance else (low, t2)
        t2 += (1 / found - 1 / variance) / 2
        if missing > before / 2 or not low < t2 < high:
            t2 = (low + high) / 2
    return t2


_MEAN_PRIOR = 0.1
"""Prior variance of the mean, in half-widths of the scale squared."""

_VARIANCE_PRIOR, _VARIANCE_SPREAD = 0.16, 0.04
"""Prior mean of the variance, and the variance of that belief."""

_MOST_BINS = 24


@dataclass(frozen=True, eq=False)
class Usage:
    """log pi over levels, the moments it implies, and how well the mean is known."""

    log_base: Floats
    mean: float
    mean_variance: float
    variance: float


def level_bins(n_levels: int, n_ratings: int, epsilon: float) -> npt.NDArray[np.int64]:
    """Neighbouring levels pooled until a bin's expected count is some fourteen deviations of its noise."""
    bins = int(np.clip(n_ratings * epsilon / 40, 4, _MOST_BINS)) if n_levels > 4 else n_levels
    return np.arange(n_levels) * min(bins, n_levels) // n_levels


def scale_usage(y: Floats, bins: npt.NDArray[np.int64], counts: Floats, noise_variance: float, n_ratings: int) -> Usage:
    """The base measure behind noisy `counts` of `bins`."""
    centre = np.bincount(bins, y) / np.bincount(bins)
    mean, mean_noise = _mean(centre, counts, noise_variance, n_ratings)
    variance = _variance(centre - mean, counts, noise_variance, n_ratings, most=1 - mean**2)
    gauss = np.exp(-((y - mean) ** 2) / (2 * variance)) + 1e-9  # no level is impossible
    gauss /= gauss.sum()
    expected = np.bincount(bins, gauss) * n_ratings
    prior = (0.7 * expected + 0.02 * n_ratings) ** 2 + 1
    shrunk = (counts * prior + expected * noise_variance) / (prior + noise_variance)
    shrunk = np.maximum(shrunk, 0.02 * expected + 1e-3 * n_ratings / len(expected))
    base = gauss * (shrunk / expected)[bins]
    base /= base.sum()
    mean = float(base @ y)
    return Usage(np.log(base), mean, mean_noise, float(base @ (y - mean) ** 2))


def mean_usage(y: Floats, total: float, noise_variance: float, n_ratings: int) -> Usage:
    """A Gaussian of typical width around the mean behind a noisy `total` of y over all ratings."""
    noise = noise_variance / n_ratings**2
    trust = _MEAN_PRIOR / (_MEAN_PRIOR + noise)
    mean = float(np.clip(total / n_ratings * trust, -0.9, 0.9))
    log_base = -((y - mean) ** 2) / (2 * _VARIANCE_PRIOR)
    base = np.exp(log_base) / np.exp(log_base).sum()
    return Usage(np.log(base), mean, noise * trust, float(base @ (y - base @ y) ** 2))


def _mean(centre: Floats, counts: Floats, noise_variance: float, n_ratings: int) -> tuple[float, float]:
    noise = noise_variance * float((centre**2).sum()) / n_ratings**2
    trust = _MEAN_PRIOR / (_MEAN_PRIOR + noise)
    return float(np.clip(counts @ centre / n_ratings * trust, -0.9, 0.9)), noise * trust


def _variance(deviation: Floats, counts: Floats, noise_variance: float, n_ratings: int, *, most: float) -> float:
    square = deviation**2
    noise = noise_variance * float((square**2).sum()) / n_ratings**2
    seen = counts @ square / n_ratings
    return float(np.clip((seen * _VARIANCE_SPREAD + _VARIANCE_PRIOR * noise) / (_VARIANCE_SPREAD + noise), 0.02, most))


_WIDEST = 2.0
"""The whole scale, in half-widths."""


def window_moments(family: LevelFamily, point: int, half_width: float) -> tuple[float, float, float]:
    """E[clipped], its slope in the mean, and Var[clipped], for a window centred at the grid mean `point`.

    The slope is the larger of two models': an exponential tilt of the levels, Cov(clipped, y) / V, exact for two
    levels; and a shift of the whole distribution, each level's mass spread over its step: the share of mass
    inside the window.
    """
    p, d = family.table[point], family.y - family.means[point]
    clipped = np.clip(d, -half_width, half_width)
    mean = float(p @ clipped)
    tilt = float(p @ (clipped * d)) / family.variance[point]
    half_step = (family.y[1] - family.y[0]) / 2
    inside = np.minimum(d + half_step, half_width) - np.maximum(d - half_step, -half_width)
    shift = float(p @ np.clip(inside, 0, None)) / (2 * half_step)
    return mean, max(tilt, shift), max(float(p @ clipped**2) - mean**2, 1e-9)


def shown_through(family: LevelFamily, centres: Floats, half_width: float) -> Floats:
    """The mean of a clipped rating, window by window, at every mean of the family.

    At a window's centre it rises by the slope of `window_moments`, of which a tilt of the levels may fall short.
    """
    shown = np.clip(family.y - centres[:, None], -half_width, half_width) @ family.table.T
    points, windows = family.nearest(centres), np.arange(len(centres))
    steepness = np.gradient(shown, family.spacing, axis=1)[windows, points]
    slope = np.array([window_moments(family, int(point), half_width)[1] for point in points])
    return np.asarray(shown + (slope - steepness)[:, None] * (family.means - centres[:, None]))


def choose_window(
    family: LevelFamily, point: int, epsilon: float, counts: Floats, effect_variance: float, *, least: float = 0.75
) -> float:
    """The half-width with the least predicted error of effects, from epsilon and public counts: `least` deviations or
    more.

    An effect behind n ratings is seen with error  e(c) = (2 (2c / epsilon)^2 / n^2 + Var / n) / slope^2  and keeps
    t e / (t + e) of its variance t.
    """
    n = counts[counts > 0]

    def loss(c: float) -> float:
        _, slope, spread = window_moments(family, point, c)
        error = (8 * (c / epsilon) ** 2 / n**2 + spread / n) / slope**2
        return float(np.sum(n * effect_variance * error / (effect_variance + error)))

    deviation = float(np.sqrt(family.variance[point]))
    return float(min(np.minimum(np.geomspace(least, 4.5, 10) * deviation, _WIDEST), key=loss))
