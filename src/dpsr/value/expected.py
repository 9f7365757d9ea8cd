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
      + Tw / (1 + Tw Kw) + Tp / (1 + Tp N s i / p) + Th (1 - Ri Ru)

T, Ts, Tw, Tp the variances of effects, slopes, public features and the p products of an item's with a user's features,
which all N s ratings asked one by one tell together. Counts of both sides are taken as independent.

Th is the variance of tastes that who rated what does not show: each side is found as far as the other one is,

    Ri = mean [ x Ru / (1 + x Ru) ],  Ru = mean [ x Ri / (1 + x Ri) ],    x = Th S i / d,

the fixed point of state evolution (Montanari and Venkataramanan 2021): zero unless the product of both x exceeds one.
Because that is a threshold, the term is the mean of two: tastes half as large as is typical, and half as large again.

Known gap: the gradient takes as constant how far a rating that is in both answers tells the same thing twice, and what
hidden tastes owe to each other.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass, fields, replace

import numpy as np

from dpsr.arrays import Floats, Ints
from dpsr.errors import PrivacyError

OCTAVES = 20
"""Classes of counts: 1, 2 to 3, 4 to 7, and so on; the last one is open."""

WINDOW, SLOPE, _SPREAD = 0.8, 0.6, 0.45
"""Half-width in deviations, slope and Var/c^2 of a Gaussian clipped at 0.8 deviations."""

VARIANCE = _SPREAD * WINDOW**2 + SLOPE**2 * 0.1
"""Of a clipped rating around its mean; partners are known to a tenth."""

_FEATURES, _PRODUCTS, _DIMENSIONS = 30, 64, 6
_TINY = 1e-12

_SIZES = (0.5, 1.5)
"""Hidden tastes that are averaged over, in typical ones."""

_ROUNDS = 30
"""Of the fixed point of hidden tastes; it is slow only where next to nothing is found."""


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
    hidden: float = 0.0

    def with_structure(self, structure: float) -> Components:
        """The same tastes where the mask shows this share of them: the others are hidden."""
        shown = {name: structure * getattr(self, name) for name in ("products", "user_slopes", "item_slopes")}
        tastes = self.products + self.user_slopes + self.item_slopes
        return replace(self, **shown, hidden=self.hidden + (1 - structure) * tastes)

    def __post_init__(self) -> None:
        shares = astuple(self)
        if not (min(shares) >= 0 and abs(sum(shares) - 1) <= 1e-6 and self.residual > 0):
            names = ", ".join(field.name for field in fields(self))
            raise PrivacyError(f"shares of variance ({names}) are not negative and add up to one, found {self}.")


@dataclass(frozen=True, eq=False)
class Side:
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


@dataclass(frozen=True, eq=False)
class ShareTables:
    """A division as the rule sees it: tables over pairs of octaves (items, users).

    The item's share of a weight, and how many ratings are asked one by one.
    """

    item: Floats
    asked: Floats
    light: float


@dataclass(frozen=True)
class Prices:
    """What a budget buys: variance of the noise of a sum, in deviations, and rho of the channels."""

    noise: float
    rho: float


@dataclass(frozen=True, eq=False)
class Gains:
    """By how much the error falls for one more unit of weight, a rating of each pair of octaves at a time."""

    to_item: Floats
    to_user: Floats
    in_sums: Floats
    one_by_one: Floats


def expected_error(
    items: Side, users: Side, division: ShareTables, prices: Prices, parts: Components
) -> tuple[float, Gains]:
    """The expected squared error, and the gradient of its fall."""
    looks = [_look(items, users.mass, division.item, division, prices)]
    looks.append(_look(users, items.mass, 1 - division.item.T, division, prices, turned=True))
    left = parts.residual + parts.products + parts.item_slopes + parts.user_slopes + parts.hidden
    left += sum(float(np.sum(one.side.mass * one.side.effect / (1 + one.side.effect * one.sums))) for one in looks)
    told = 0.0 if prices.rho <= 0 else 1 / (parts.residual + left * (1 - prices.rho) / prices.rho)
    error, shared, each = parts.residual, 0.0, parts.features / _FEATURES
    for one in looks:
        side, known = one.side, one.sums + one.asked * told
        error += float(np.sum(side.mass * side.effect / (1 + side.effect * known)))
        error += float(np.sum(side.mass * side.slopes / (1 + side.slopes * one.asked * told / _DIMENSIONS)))
        shared += float(np.sum(side.rows * known / (1 + side.effect * known)))
    error += _FEATURES * each / (1 + each * shared)
    all_asked = float(np.sum(items.rows * (items.other + 1) * (division.asked @ users.mass)))
    product = parts.products / _PRODUCTS
    error += parts.products / (1 + product * all_asked * told)
    pooled = (
        parts.products * product * told / (1 + product * all_asked * told) ** 2 * float(items.rows @ (items.other + 1))
    )
    worth = [_worth(one, told, each, shared) for one in looks]
    for size in _SIZES if parts.hidden > 0 else ():
        error += _add_hidden(looks, worth, size * parts.hidden, told) / len(_SIZES)
    tuning = told**2 * (1 - prices.rho) / max(prices.rho, _TINY)
    heard = parts.products * product * all_asked / (1 + product * all_asked * told) ** 2
    for one, (known, slopes) in zip(looks, worth, strict=True):
        heard += float(np.sum((known + slopes) * one.asked))
    return error, _gains(looks, worth, told, tuning * heard, pooled, division)


@dataclass(frozen=True, eq=False)
class _Look:
    """What one side hears: its weights (own octave first), the information of sums, and how many are asked."""

    side: Side
    weight: Floats
    sums: Floats
    asked: Floats
    slope: Floats
    scatter: Floats


def _look(
    side: Side, mass: Floats, weight: Floats, division: ShareTables, prices: Prices, *, turned: bool = False
) -> _Look:
    s = division.asked.T if turned else division.asked
    light = division.light
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


def _add_hidden(looks: list[_Look], worth: list[tuple[Floats, Floats]], taste: float, told: float) -> float:
    """What hidden tastes of this variance leave open; what rows tell about them is added to the worth of slopes."""
    x = [taste * one.asked * told / _DIMENSIONS for one in looks]
    found = _found(x, [one.side.mass for one in looks])
    for one, (_, slopes), known, partners in zip(looks, worth, x, found[::-1], strict=True):
        slopes += one.side.mass * (taste * partners / (1 + known * partners)) ** 2 / _DIMENSIONS / len(_SIZES)
    return taste * (1 - found[0] * found[1])


def _found(x: list[Floats], mass: list[Floats]) -> tuple[float, float]:
    """Ri and Ru: shares of hidden tastes that are found on either side."""
    items = users = 1.0
    for _ in range(_ROUNDS):
        items = float(mass[0] @ (x[0] * users / (1 + x[0] * users)))
        users = float(mass[1] @ (x[1] * items / (1 + x[1] * items)))
    return items, users


def _worth(one: _Look, told: float, each: float, shared: float) -> tuple[Floats, Floats]:
    """By how much the error falls with a row's information: about its effect (and the features), about its slopes."""
    side, known = one.side, one.sums + one.asked * told
    left = 1 / (1 + side.effect * known) ** 2
    features = _FEATURES * each**2 / (1 + each * shared) ** 2 * side.rows * left
    slopes = side.mass * side.slopes**2 / _DIMENSIONS / (1 + side.slopes * one.asked * told / _DIMENSIONS) ** 2
    return side.mass * side.effect**2 * left + features, slopes


def _gains(
    looks: list[_Look],
    worth: list[tuple[Floats, Floats]],
    told: float,
    tuned: float,
    pooled: float,
    division: ShareTables,
) -> Gains:
    """Per rating: a row's worth over its share of ratings."""
    to: list[Floats] = []
    heavy: list[Floats] = []
    light: list[Floats] = []
    single = np.full_like(division.asked, pooled)
    for turned, (one, (known, slopes)) in enumerate(zip(looks, worth, strict=True)):
        side, w = one.side, one.weight
        each = side.other / np.maximum(side.mass, _TINY)
        s = division.asked.T if turned else division.asked
        through = known + tuned * side.mass * side.effect**2 / (1 + side.effect * one.sums) ** 2
        slope, scatter = (each * through * one.slope)[:, None], (each * through * one.scatter)[:, None]
        mean, square = 1 - s + division.light * s, 1 - s + division.light**2 * s
        found = (
            slope * mean + 2 * scatter * w * square,
            slope * w + scatter * w**2,
            division.light * slope * w + division.light**2 * scatter * w**2,
        )
        for kept, table in zip((to, heavy, light), found, strict=True):
            kept.append(table.T if turned else table)
        asked = np.broadcast_to((each * (known + slopes) * told)[:, None], s.shape)
        single = single + (asked.T if turned else asked)
    return Gains(to[0], to[1], heavy[0] + heavy[1], light[0] + light[1] + single)
