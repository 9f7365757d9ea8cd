r"""What to expect of a division of the budget: squared error as a share of the variance of ratings, and its gradient.

Counts of items and of users are put into octaves, and a division is a table over pairs of octaves (a, b): of the
ratings there, `asked` (s) are asked one by one and weigh `light` in the sums, the others weigh one and are in the sums
alone; `item` (h) is the item's share of either weight. With m the share of ratings in each octave, a row of n + 1
ratings hears from the others

    A = n sum_b m_b h (1 - s + light s)         weight in its sum
    Q = n sum_b m_b h^2 (1 - s + light^2 s)     the same, squared: what scatters
    S = n sum_b m_b s                           ratings asked one by one

(users: 1 - h in the place of h), and knows

    K = (slope A)^2 / (noise + var Q) + S i,    i = 1 / (v + V (1 - rho) / rho)

rho is the share of variance that the optimal channel explains, v the residual, and V the variance around the prediction
from sums, which channels are tuned to. A fresh rating is then predicted with squared error

    v + sum over both sides of mean [ T / (1 + T K) + Ts / (1 + Ts S i / d) ]
      + Tw / (1 + Tw Kw) + Tp / (1 + Tp N s i / p)

T, Ts, Tw, Tp the variances of effects, slopes, public features and the p products of an item's with a user's features,
which all N s ratings asked one by one tell together. Counts of both sides are taken as independent.

All of it is compiled, because the rule asks a hundred times and the tables are small; what it takes and returns are
named tuples, which kernels understand.

Known gap: the gradient takes as constant how far a rating that is in both answers tells the same thing twice.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass, fields
from typing import NamedTuple

import numpy as np

from dpsr.arrays import Floats, Ints
from dpsr.errors import PrivacyError
from dpsr.linalg.compiled import kernel

OCTAVES = 20
"""Classes of counts: 1, 2 to 3, 4 to 7, and so on; the last one is open."""

WINDOW, SLOPE, _SPREAD = 0.8, 0.6, 0.45
"""Half-width in deviations, slope and Var/c^2 of a Gaussian clipped at 0.8 deviations."""

VARIANCE = _SPREAD * WINDOW**2 + SLOPE**2 * 0.1
"""Of a clipped rating around its mean; partners are known to a tenth."""

_FEATURES, _PRODUCTS, _DIMENSIONS = 30, 64, 6
_TINY = 1e-12


@dataclass(frozen=True)
class Components:
    """Shares of the variance of ratings: what is typical, unless the curator knows better. They add up to one."""

    residual: float = 0.5
    features: float = 0.06
    products: float = 0.02
    item: float = 0.14
    user: float = 0.15
    user_slopes: float = 0.065
    item_slopes: float = 0.065

    def __post_init__(self) -> None:
        shares = astuple(self)
        if not (min(shares) >= 0 and abs(sum(shares) - 1) <= 1e-6 and self.residual > 0):
            names = ", ".join(field.name for field in fields(self))
            raise PrivacyError(f"shares of variance ({names}) are not negative and add up to one, found {self}.")

    @property
    def shares(self) -> Shares:
        """As a kernel takes them."""
        return Shares(*astuple(self))


class Shares(NamedTuple):
    """The fields of `Components`."""

    residual: float
    features: float
    products: float
    item: float
    user: float
    user_slopes: float
    item_slopes: float


class Side(NamedTuple):
    """Items, or users, by octave of their counts."""

    rows: Floats
    mass: Floats
    other: Floats
    effect: float
    slopes: float

    @classmethod
    def of(cls, counts: Ints, effect: float, slopes: float) -> Side:
        """`other` is how many more ratings the rows of an octave have beside the one that is predicted."""
        some = counts[counts > 0]
        place = octaves(some)
        rows = np.bincount(place, minlength=OCTAVES).astype(np.float64)
        total = np.bincount(place, some, OCTAVES)
        return cls(rows, total / max(total.sum(), 1), np.maximum(total / np.maximum(rows, 1) - 1, 0.0), effect, slopes)


def octaves(counts: Ints) -> Ints:
    """floor(log2 count), exactly; zero where there is nothing."""
    return np.minimum(np.frexp(np.maximum(counts, 1).astype(np.float64))[1] - 1, OCTAVES - 1).astype(np.int64)


class ShareTables(NamedTuple):
    """A division as the rule sees it: tables over pairs of octaves (items, users).

    The item's share of a weight, and how many ratings are asked one by one.
    """

    item: Floats
    asked: Floats
    light: float


class Prices(NamedTuple):
    """What a budget buys: variance of the noise of a sum, in deviations, and rho of the channels."""

    noise: float
    rho: float


class Gains(NamedTuple):
    """By how much the error falls for one more unit of weight, a rating of each pair of octaves at a time."""

    to_item: Floats
    to_user: Floats
    in_sums: Floats
    one_by_one: Floats


@kernel
def expected_error(
    items: Side, users: Side, division: ShareTables, prices: Prices, parts: Shares
) -> tuple[float, Gains]:
    """The expected squared error, and the gradient of its fall."""
    item, asked, light = division
    turned = asked.T.copy()
    looks = (
        _look(items, users.mass, item, asked, light, prices),
        _look(users, items.mass, 1 - item.T.copy(), turned, light, prices),
    )
    left = parts.residual + parts.products + parts.item_slopes + parts.user_slopes
    for one in looks:
        left += np.sum(one.side.mass * one.side.effect / (1 + one.side.effect * one.sums))
    told = 0.0 if prices.rho <= 0 else 1 / (parts.residual + left * (1 - prices.rho) / prices.rho)
    error, shared, each = parts.residual, 0.0, parts.features / _FEATURES
    for one in looks:
        side, known = one.side, one.sums + one.asked * told
        error += np.sum(side.mass * side.effect / (1 + side.effect * known))
        error += np.sum(side.mass * side.slopes / (1 + side.slopes * one.asked * told / _DIMENSIONS))
        shared += np.sum(side.rows * known / (1 + side.effect * known))
    error += _FEATURES * each / (1 + each * shared)
    ratings = items.rows * (items.other + 1)
    all_asked, product = np.sum(ratings * (asked @ users.mass)), parts.products / _PRODUCTS
    error += parts.products / (1 + product * all_asked * told)
    pooled = parts.products * product / (1 + product * all_asked * told) ** 2
    tuning, heard = told**2 * (1 - prices.rho) / max(prices.rho, _TINY), pooled * all_asked
    for one in looks:
        known, slopes = _worth(one, told, each, shared)
        heard += np.sum((known + slopes) * one.asked)
    own = _gains(looks[0], asked, light, told, each, shared, tuning * heard)
    other = _gains(looks[1], turned, light, told, each, shared, tuning * heard)
    one_by_one = pooled * told * np.sum(ratings) + own.one_by_one + other.one_by_one.T
    return error, Gains(own.to_own, other.to_own.T.copy(), own.in_sums + other.in_sums.T, one_by_one)


class _Look(NamedTuple):
    """What one side hears: its weights (own octave first), the information of sums, and how many are asked."""

    side: Side
    weight: Floats
    sums: Floats
    asked: Floats
    slope: Floats
    scatter: Floats


@kernel
def _look(side: Side, mass: Floats, weight: Floats, s: Floats, light: float, prices: Prices) -> _Look:
    a = side.other * ((weight * (1 - s + light * s)) @ mass)
    twice = side.other * ((weight * light * s) @ mass) / np.maximum(a, _TINY)
    around = prices.noise + VARIANCE * side.other * ((weight**2 * (1 - s + light**2 * s)) @ mass) + _TINY
    fresh = 1 - prices.rho * twice
    return _Look(
        side,
        weight,
        fresh * (SLOPE * a) ** 2 / around,
        side.other * (s @ mass),
        fresh * 2 * SLOPE**2 * a / around,
        -fresh * (SLOPE * a) ** 2 * VARIANCE / around**2,
    )


@kernel
def _worth(one: _Look, told: float, each: float, shared: float) -> tuple[Floats, Floats]:
    """By how much the error falls with a row's information: about its effect (and the features), about its slopes."""
    side, known = one.side, one.sums + one.asked * told
    left = 1 / (1 + side.effect * known) ** 2
    features = _FEATURES * each**2 / (1 + each * shared) ** 2 * side.rows * left
    slopes = side.mass * side.slopes**2 / _DIMENSIONS / (1 + side.slopes * one.asked * told / _DIMENSIONS) ** 2
    return side.mass * side.effect**2 * left + features, slopes


class _OwnGains(NamedTuple):
    """What one side gains, its own octaves first."""

    to_own: Floats
    in_sums: Floats
    one_by_one: Floats


@kernel
def _gains(one: _Look, s: Floats, light: float, told: float, each: float, shared: float, tuned: float) -> _OwnGains:
    """Per rating: a row's worth over its share of ratings; `s` are the ratings asked one by one."""
    side, w = one.side, one.weight
    known, slopes = _worth(one, told, each, shared)
    ratings = side.other / np.maximum(side.mass, _TINY)
    through = ratings * (known + tuned * side.mass * side.effect**2 / (1 + side.effect * one.sums) ** 2)
    slope, scatter = (through * one.slope).reshape(-1, 1), (through * one.scatter).reshape(-1, 1)
    to_own = slope * (1 - s + light * s) + 2 * scatter * w * (1 - s + light**2 * s)
    asked = (ratings * (known + slopes) * told).reshape(-1, 1)
    return _OwnGains(to_own, slope * w + scatter * w**2, light * slope * w + light**2 * scatter * w**2 + asked)
