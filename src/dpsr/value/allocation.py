r"""How epsilon is divided, and what accuracy to expect: functions of epsilon, the scale and public counts alone.

A histogram of levels comes first. Of what is left, every rating spends all, and which question it spends it on follows
from the counts of its item and its user (`expected.py`): ratings in the sums alone, with a weight divided between item
and user, and ratings asked one by one, which leave a light weight to the sums. `allocate` takes the division with the
least expected error, by multiplicative steps along its gradient from a few starts.

The mean itself is paid for too: its prior variance Tm, known from noise of variance p = _BINNED / (N eh)^2 when a
histogram is bought for eh, leaves Tm p / (Tm + p). Where one noisy sum of all ratings, with p = _PLAIN / (N e)^2, and
nothing else promises more, that is bought.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import nextafter, sqrt
from typing import NamedTuple

import numpy as np

from dpsr.arrays import Floats
from dpsr.certify.amounts import check_epsilon
from dpsr.engine.incidence import AT_ONCE, GRID, ITEM_SHARES, Division, Turns
from dpsr.linalg.compiled import kernel
from dpsr.privacy.channels.optimal import optimal_channel
from dpsr.types import Census, Mask, Scale
from dpsr.value.design import OCTAVES, Side, octaves
from dpsr.value.expected import WINDOW, Prices, ShareTables, expected_error
from dpsr.value.priors import Components, Shares

__all__ = ["Allocation", "Components", "Forecast", "allocate", "explained_share", "forecast"]

LEAST_LIGHT, _LIGHT, _MOST_LIGHT = 1 / GRID, 0.1, 0.2
"""What ratings asked one by one leave to the sums: a share of their budget, and at most so much. The expected error
hardly depends on it; but every row then has a sum of all its ratings, and channels and starts rest on those. Where
ratings are asked in turns, channels rest on what the first turns told, and the sums need nothing."""

_POOLED = (0.0, 1 / 32, 1 / 16)
"""Shares of every weight that sums over all ratings may have."""

_MOST_ASKED = 0.8
"""Where more ratings than these are to be asked one by one, all are: hardly a weight would be left in the sums, and
where tastes are hidden and larger than is typical, every symbol helps to find them."""

_STEPS, _LAST_STEPS, _STILL = 30, 60, 1e-6
"""Steps from every start, and from there with the best one, and a change of the error that is none."""

_PACE, _EDGE, _NEVER = 0.5, 7.0, 1 / (1 + np.exp(7.0))
"""How far a step goes, log-odds that count as never, and the share from which a step away from never sets out."""

_WORTH, _FEW = 0.016, 5_000
"""By so much less error ratings asked one by one must promise: what they say must be learned, variances and all, which
the expected error takes as known, it takes time, and `personalise`, which needs items alone, loses by them. Where
tastes are as large as is typical, they gain half a per cent to two of the error less than they promise (decision 87).
What sums of a few thousand ratings say must be learned as well: there, less is enough."""

_EVENLY = 0.4
"""Of the ratings asked one by one, this share of the share that is not asked is dealt evenly over all pairs of counts.
The expected error takes what is asked of a row for a sample of its ratings; where the division leaves whole classes of
partners out, slopes are learned on one kind of partner and used on another (decision 43)."""

_MEAN, _BINNED, _PLAIN = 0.8, 77.0, 62.0
"""Prior variance of the mean, and noise of the mean at N epsilon = 1 from four bins (10 half-widths squared) and from
one sum (8), where the variance of ratings, 0.13 half-widths squared, is one."""

_IN_TURNS, _ENOUGH, _CLEAR = Turns((20, 60, 176)), 20_000, 0.95
"""Turns in which many ratings are asked, how many these are, and a share of variance that is nearly all."""

_IN_TWO, _PLENTY = Turns((32, 224)), 2_000_000
"""Turns of so many that the first eighth alone tells nearly all there is to tell; every turn takes a few passes."""

_GRID = (0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 7.0, 10.0)


@dataclass(frozen=True, eq=False)
class Allocation:
    """Epsilon of the histogram, what is left for every rating, and how that is divided.

    Where there is no `division`, `histogram` buys the mean alone. Ratings that are asked one by one are asked in
    `turns`.
    """

    histogram: float
    rest: float
    division: Division | None
    turns: Turns = AT_ONCE

    @property
    def asks_ratings(self) -> bool:
        """Whether any rating is asked one by one."""
        return self.division is not None and bool(self.division.asked.any())


class Forecast(NamedTuple):
    """Expected squared error at `epsilon`, as a share of one constant's: what cannot be known, what too few ratings
    cost, and what privacy costs. They add up; `share` is the root of their sum."""

    epsilon: float
    unknowable: float
    learning: float
    noise: float

    @property
    def share(self) -> float:
        """Expected RMSE over the constant's RMSE."""
        return sqrt(self.unknowable + self.learning + self.noise)

    @property
    def without_noise(self) -> float:
        """The same if nothing were spent on privacy."""
        return sqrt(self.unknowable + self.learning)


def allocate(mask: Mask | Census, scale: Scale, epsilon: float, components: Components | None = None) -> Allocation:
    """The rule: the histogram first, then the division with the least predicted error.

    The histogram must place the mean within about a hundredth of a deviation: 400 / N, at least 2 % of epsilon (or of
    one) and at most half of it. Where even so the mean costs more than everything else is expected to gain, all of
    epsilon buys the mean.
    """
    return _plan(mask, scale, epsilon, components or Components())[0]


def forecast(mask: Mask | Census, scale: Scale, epsilon: float, components: Components | None = None) -> Forecast:
    """What to expect at `epsilon`: what cannot be known, what too few ratings cost, and what privacy costs."""
    parts = components or Components()
    _, total = _plan(mask, scale, epsilon, parts)
    ones = np.ones((OCTAVES, OCTAVES))
    clear = _Setting(mask, parts).error(ShareTables(ones / 2, ones, 0.0, 0.0), Prices(0.0, 1.0))
    return Forecast(epsilon, parts.residual, clear - parts.residual, max(total - clear, 0.0))


def _plan(mask: Mask | Census, scale: Scale, epsilon: float, parts: Components) -> tuple[Allocation, float]:
    """The allocation and its expected error, the price of the mean included."""
    asked = check_epsilon(epsilon)
    histogram = float(np.clip(400 / max(mask.n_ratings, 1), 0.02 * min(asked, 1.0), 0.5 * asked))
    rest = nextafter(asked - histogram, 0.0)  # parts are floats and must not add up to more than was asked
    tables, error = best_tables(mask, scale, rest, parts)
    error += _mean_error(mask, _BINNED, histogram)
    alone = 1 + _mean_error(mask, _PLAIN, asked)
    if alone < error:
        return Allocation(asked, 0.0, None), alone
    asked_ratings = _Setting(mask, parts).mean(tables.asked) * mask.n_ratings
    return Allocation(histogram, rest, divide(mask, tables), turns_of(scale, rest, asked_ratings)), error


def turns_of(scale: Scale, epsilon: float, asked: float) -> Turns:
    """In which turns so many ratings are asked one by one: several where the first tell how to ask the others."""
    if asked < _ENOUGH or _clear(scale, epsilon):
        return AT_ONCE
    return _IN_TWO if asked >= _PLENTY else _IN_TURNS


def _clear(scale: Scale, epsilon: float) -> bool:
    """Whether channels hide hardly anything: nothing is gained by tuning them better."""
    return explained_share(scale, epsilon) > _CLEAR


def light_of(mask: Mask | Census, scale: Scale, epsilon: float) -> float:
    """What ratings asked one by one leave to the sums; next to nothing where the first turns tell what sums would."""
    if mask.n_ratings >= 1.5 * _ENOUGH and not _clear(scale, epsilon):
        return LEAST_LIGHT
    return min(_LIGHT, _MOST_LIGHT / epsilon)


def divide(mask: Mask | Census, tables: ShareTables) -> Division:
    """The division that tables of shares describe: the nearest of those that there are, classes by octave."""
    items, users = (octaves(counts).astype(np.uint8) for counts in (mask.item_counts, mask.user_counts))
    shares, asked = np.array(ITEM_SHARES), np.rint(GRID * tables.asked)
    item = shares[np.abs(GRID * tables.item[..., None] - shares).argmin(axis=-1)]
    light, pooled = max(int(GRID * tables.light), 1), round(GRID * tables.pooled)
    return Division(items, users, item, asked.astype(np.int64), light, pooled)


def best_tables(
    mask: Mask | Census, scale: Scale, epsilon: float, components: Components | None = None
) -> tuple[ShareTables, float]:
    """The tables with the least expected error at `epsilon`, and that error.

    Where most ratings are asked one by one, their light weights, if they have any to speak of, are divided as if there
    were nothing else: the error to expect does not depend on it, but the start of inference does.
    """
    setting, light = _Setting(mask, components or Components()), light_of(mask, scale, epsilon)
    sums, least = tables_in_sums(mask, epsilon, components)
    prices = Prices(_noise(epsilon), explained_share(scale, (1 - light) * epsilon))
    starts = (setting.improve(_even(asked, light, sums.pooled), prices, _STEPS) for asked in (0.1, 0.8))
    tables, _ = setting.improve(min(starts, key=lambda one: one[1])[0], prices, _LAST_STEPS)
    tables = setting.dealt(tables)
    if setting.mean(tables.asked) > _MOST_ASKED:
        tables = tables._replace(asked=np.ones_like(tables.asked), pooled=0.0)
    error = setting.error(tables, prices)
    if error > least - _WORTH * mask.n_ratings / (mask.n_ratings + _FEW):
        return sums, least
    if light == LEAST_LIGHT:
        return tables, error
    start, _ = setting.improve(_even(0.0, 0.0, 0.0), Prices(prices.noise / light**2, 0.0), _STEPS)
    return tables._replace(item=np.where(tables.asked > 0.5, start.item, tables.item)), error


def tables_in_sums(
    mask: Mask | Census, epsilon: float, components: Components | None = None
) -> tuple[ShareTables, float]:
    """The best of those in which nobody is asked one by one, and its error."""
    setting, prices = _Setting(mask, components or Components()), Prices(_noise(epsilon), 0.0)
    found = (setting.improve(_even(0.0, 0.0, pooled), prices, _STEPS) for pooled in _POOLED)
    return min(found, key=lambda one: one[1])


def _noise(epsilon: float) -> float:
    """Variance of the noise of a sum, in deviations."""
    return 8 * (WINDOW / epsilon) ** 2


def _even(asked: float, light: float, pooled: float) -> ShareTables:
    return ShareTables(np.full((OCTAVES, OCTAVES), 0.5), np.full((OCTAVES, OCTAVES), asked), light, pooled)


class _Setting:
    """One data set's public counts, and typical shares of variance."""

    def __init__(self, mask: Mask | Census, parts: Components) -> None:
        self._items = Side.of(mask.item_counts, parts.item, parts.item_slopes)
        self._users = Side.of(mask.user_counts, parts.user, parts.user_slopes)
        self._shares = parts.shares

    def error(self, division: ShareTables, prices: Prices) -> float:
        return self.improve(division, prices, 1)[1]  # the best of one step is where it starts

    def mean(self, table: Floats) -> float:
        """Over ratings, of a table over pairs of octaves."""
        return float(self._items.mass @ table @ self._users.mass)

    def dealt(self, tables: ShareTables) -> ShareTables:
        """The same number of ratings asked one by one, some of them whatever their counts (`_EVENLY`)."""
        mean = self.mean(tables.asked)
        evenly = _EVENLY * (1 - mean)
        return tables._replace(asked=(1 - evenly) * tables.asked + evenly * mean)

    def improve(self, division: ShareTables, prices: Prices, steps: int) -> tuple[ShareTables, float]:
        """The best of so many multiplicative steps; what is never asked one by one stays so."""
        item, asked, least = remembered_steps(
            _Question(self._items, self._users, division, prices, self._shares, steps)
        )
        return division._replace(item=item, asked=asked), least


class _Question:
    """What steps are taken with, known by its bytes: every plan, fit and card of one mask asks the same few dozen."""

    def __init__(self, items: Side, users: Side, division: ShareTables, prices: Prices, parts: Shares, steps: int):
        self.arguments = items, users, division, prices, parts, steps
        numbers = (*items, *users, *division, *prices, *parts, steps)
        self._bytes = b"".join(np.asarray(one).tobytes() for one in numbers)

    def __hash__(self) -> int:
        return hash(self._bytes)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Question) and self._bytes == other._bytes


@lru_cache(maxsize=256)
def remembered_steps(question: _Question) -> tuple[Floats, Floats, float]:
    """The answer of `_improve`, remembered; nobody writes into it."""
    return _improve(*question.arguments)


@kernel
def _improve(
    items: Side, users: Side, division: ShareTables, prices: Prices, parts: Shares, steps: int
) -> tuple[Floats, Floats, float]:
    best, least, before = division, np.inf, np.inf
    for _ in range(steps):
        error, gains = expected_error(items, users, division, prices, parts)
        if error < least:
            best, least = division, error
        if abs(error - before) < _STILL:
            break
        before, item, asked = error, division.item.copy(), division.asked.copy()
        for a in range(OCTAVES):
            for b in range(OCTAVES):
                item[a, b] = _step(item[a, b], gains.to_item[a, b], gains.to_user[a, b])
                if prices.rho > 0:
                    asked[a, b] = _step(asked[a, b], gains.one_by_one[a, b], gains.in_sums[a, b])
        division = ShareTables(item, asked, division.light, division.pooled)
    return best.item, best.asked, least


@kernel
def _step(share: float, yes: float, no: float) -> float:
    """A share after one step towards what gains more, in log-odds."""
    clipped = min(max(share, _NEVER), 1 - _NEVER)
    step = _PACE * (yes - no) / max(share * yes + (1 - share) * no, 1e-30)
    log_odds = np.log(clipped / (1 - clipped)) + min(max(step, -2.0), 2.0)
    if abs(log_odds) >= _EDGE:
        return 0.0 if log_odds < 0 else 1.0
    return float(1 / (1 + np.exp(-log_odds)))


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
