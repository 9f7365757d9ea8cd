r"""How epsilon is shared, and what accuracy to expect: functions of epsilon, the scale and public counts alone.

The variance of ratings, taken as one, is shared between what can be learned and what cannot (`Components`). A fresh
rating of (u, j) is predicted with squared error

    v + Tw / (1 + Tw Iw) + Ti / (1 + Ti Ij) + Tu / (1 + Tu Iu) + Ts / (1 + Ts I'u / d) + Tt / (1 + Tt I'j / d)

averaged over ratings, each seen as if it were held out. Informations add up; from n other ratings of a row come

    sums       (o s n)^2 / (8 (c / es)^2 + o^2 n var)      o: the side's share of a rating's weight; s, c, var: window
    ratings    n rho(er) / v                               rho: share of variance the optimal channel explains

Slopes (I', d dimensions) see ratings only. The mean itself is paid for too: its prior variance Tm, known from noise of
variance p = _BINNED / (N eh)^2 when a histogram is bought for eh, leaves Tm p / (Tm + p). `allocate` takes the
(es, er, o) with the least predicted error, and buys one noisy sum of all ratings and nothing else, with
p = _PLAIN / (N e)^2, where that promises more.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass, fields
from functools import lru_cache
from math import nextafter

import numpy as np

from dpsr.certify.amounts import check_epsilon
from dpsr.errors import PrivacyError
from dpsr.privacy.channels.optimal import optimal_channel
from dpsr.types import Census, Mask, Scale

_WINDOW, _SLOPE, _SPREAD = 0.8, 0.6, 0.45
"""Half-width in deviations, slope and Var/c^2 of a Gaussian clipped at 0.8 deviations."""

_FEATURES, _DIMENSIONS = 30, 10
_SUMS = (0.2, 0.3, 0.45, 0.7, 1.0)
"""Budgets tried for the sums when ratings are bought too; less than 0.2 leaves nothing to tune channels to."""

_WEIGHTS = np.arange(5, 12) / 16
"""Item shares tried; beyond, one side's features would rest on a handful of rows."""

_MEAN, _BINNED, _PLAIN = 0.8, 77.0, 62.0
"""Prior variance of the mean, and noise of the mean at N epsilon = 1 from four bins (10 half-widths squared) and from
one sum (8), where the variance of ratings, 0.13 half-widths squared, is one."""

_GRID = (0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 7.0, 10.0)


@dataclass(frozen=True)
class Components:
    """Shares of the variance of ratings: what is typical, unless the curator knows better. They add up to one."""

    residual: float = 0.53
    features: float = 0.06
    item: float = 0.15
    user: float = 0.16
    user_slopes: float = 0.05
    item_slopes: float = 0.05

    def __post_init__(self) -> None:
        shares = astuple(self)
        if not (min(shares) >= 0 and abs(sum(shares) - 1) <= 1e-6 and self.residual > 0):
            names = ", ".join(field.name for field in fields(self))
            raise PrivacyError(f"shares of variance ({names}) are not negative and add up to one, found {self}.")


@dataclass(frozen=True)
class Allocation:
    """Epsilon of the three parts, and the item side's share of a rating's weight in the sums.

    Where sums and ratings get nothing, `histogram` buys the mean alone.
    """

    histogram: float
    sums: float
    ratings: float
    item_weight: float


@dataclass(frozen=True)
class Forecast:
    """Expected squared error as a share of the constant's, and what it is made of."""

    epsilon: float
    unknowable: float
    learning: float
    noise: float

    @property
    def share(self) -> float:
        """Expected RMSE over the constant's RMSE."""
        return float(np.sqrt(self.unknowable + self.learning + self.noise))


def allocate(mask: Mask | Census, scale: Scale, epsilon: float, components: Components | None = None) -> Allocation:
    """The rule: the histogram first, then the shares and the weight with the least predicted error.

    The histogram must place the mean within about a hundredth of a deviation: 400 / N, at least 2 % of epsilon (or of
    one) and at most half of it. Ties go to the smaller budget for sums, which share sampling noise with the ratings.
    Where even so the mean costs more than everything else is expected to gain, all of epsilon buys the mean.
    """
    asked, parts = check_epsilon(epsilon), components or Components()
    histogram = float(np.clip(400 / max(mask.n_ratings, 1), 0.02 * min(asked, 1.0), 0.5 * asked))
    rest = nextafter(asked - histogram, 0.0)  # parts are floats and must not add up to more than was asked
    best, chosen = np.inf, (rest, 0.5)
    for sums in (*(s for s in _SUMS if s < rest - 0.2), rest):
        rho = explained_share(scale, rest - sums)
        error, weight = min((_error(mask, sums, rho, w, parts), float(w)) for w in _WEIGHTS)
        if error < best - 1e-4:
            best, chosen = error, (sums, weight)
    if _mean_error(mask, _PLAIN, asked) + 1 < best + _mean_error(mask, _BINNED, histogram):
        return Allocation(asked, 0.0, 0.0, 0.5)
    return Allocation(histogram, chosen[0], max(nextafter(rest - chosen[0], -1.0), 0.0), chosen[1])


def forecast(mask: Mask | Census, scale: Scale, epsilon: float, components: Components | None = None) -> Forecast:
    """What to expect at `epsilon`: what cannot be known, what too few ratings cost, and what privacy costs."""
    parts = components or Components()
    shares = allocate(mask, scale, epsilon, parts)
    total = _error(mask, shares.sums, explained_share(scale, shares.ratings), shares.item_weight, parts)
    total += _mean_error(mask, _BINNED if shares.sums else _PLAIN, shares.histogram)
    clear = _error(mask, 1e3, 1.0, 0.5, parts)
    return Forecast(epsilon, parts.residual, clear - parts.residual, max(total - clear, 0.0))


def explained_share(scale: Scale, epsilon: float) -> float:
    """rho of the optimal channel at epsilon for a typical rating, interpolated so that few programmes are solved."""
    if epsilon <= 0:
        return 0.0
    plain = Scale(0, scale.n_levels - 1)
    if epsilon < _GRID[0]:
        return _explained(plain, _GRID[0]) * (epsilon / _GRID[0]) ** 2
    return float(np.interp(epsilon, _GRID, [_explained(plain, g) for g in _GRID]))


@lru_cache(maxsize=512)
def _explained(scale: Scale, epsilon: float) -> float:
    y = np.linspace(-1, 1, scale.n_levels)
    spread = max(0.36, 1 / (scale.n_levels - 1))  # a typical deviation, never finer than half a step
    prior = np.exp(-((y - 0.3) ** 2) / (2 * spread**2))
    prior /= prior.sum()
    variance = prior @ (scale.values - prior @ scale.values) ** 2
    return float(1 - optimal_channel(scale, epsilon, prior).expected_error(prior, guess="posterior") ** 2 / variance)


def _mean_error(mask: Mask | Census, noise: float, epsilon: float) -> float:
    price = noise / (max(mask.n_ratings, 1) * epsilon) ** 2
    return _MEAN * price / (_MEAN + price)


def _error(mask: Mask | Census, sums: float, rho: float, item_weight: float, parts: Components) -> float:
    v, error, features = parts.residual, parts.residual, 0.0
    sides = (
        (mask.item_counts, item_weight, parts.item, parts.item_slopes),
        (mask.user_counts, 1 - item_weight, parts.user, parts.user_slopes),
    )
    for counts, weight, effect, slopes in sides:
        n, rows = np.unique(counts[counts > 0], return_counts=True)
        mass = n * rows / max(mask.n_ratings, 1)
        other = np.maximum(n - 1.0, 0)
        noise = 8 * (_WINDOW / sums) ** 2 if sums > 0 else np.inf
        around = weight**2 * other * (_SPREAD * _WINDOW**2 + _SLOPE**2 * 0.1) + 1e-12
        from_sums = (1 - rho) * (weight * _SLOPE * other) ** 2 / (noise + around)
        from_ratings = other * rho / (v + 0.1)
        known = from_sums + from_ratings
        error += float(np.sum(mass * effect / (1 + effect * known)))
        error += float(np.sum(mass * slopes / (1 + slopes * from_ratings / _DIMENSIONS)))
        features += float(np.sum(rows * known / (1 + effect * known)))
    each = parts.features / _FEATURES
    return error + _FEATURES * each / (1 + each * features)
