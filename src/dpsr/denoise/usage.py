"""How the scale is used: a smooth base measure over levels from one noisy histogram.

Where the budget buys nothing but the mean, that is asked as one sum and the rest is what rating scales typically show.
Otherwise noisy bin counts are shrunk towards a Gaussian with the noisy mean and variance, count by count (prior
deviation 0.7 of what is expected plus 2 % of all). The mean and variance have wide priors themselves (anything a rating
scale can show), so that with hardly any ratings or budget the answer is the middle of the scale and not noise.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

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
