r"""What to expect of a division of the budget: squared error as a share of the variance of ratings, and its gradient.

Counts of items and of users are put into octaves, and a division is a table over pairs of octaves (a, b): of the
ratings there, `asked` (s) are asked one by one and weigh `light` in the sums, the others weigh one and are in the sums
alone; `pooled` (w) of either weight is in sums over all ratings, and `item` (h) is the item's share of the rest. With m
the share of ratings in each octave, a row of n + 1 ratings hears from the others

    A = n sum_b m_b (1 - w) h (1 - s + light s)             weight in its sum
    Q = n sum_b m_b (1 - w)^2 h^2 (1 - s + light^2 s)       the same, squared: what scatters
    S = n sum_b m_b s                                       ratings asked one by one

(users: 1 - h in the place of h), and knows

    K = (slope A)^2 / (noise + var Q) + S i,    i = 1 / (v + V (1 - rho) / rho)

rho is the share of variance that the optimal channel explains, v the residual, and V the variance around the prediction
from sums, which channels are tuned to. A fresh rating is then predicted with squared error

    v + sum over both sides of mean [ T / (1 + T K) + Ts / (1 + Ts S i / d) ]
      + Tw / (1 + Tw Kw) + Tp / (1 + (Tp / p) (N s i + P)) + Th (1 - Ri Ru)

T, Ts, Tw, Tp the variances of effects, slopes, public features and the p products of an item's with a user's features,
which all N s ratings asked one by one tell together, and the c sums over all ratings,

    P = (slope r w B / c)^2 / (noise + var w^2 Q / c),    B = N (1 - s + light s),  Q = N (1 - s + light^2 s),

r the mean of the largest feature of an item times that of a user, by which ratings are put into these sums. Counts of
both sides are taken as independent.

Th is the variance of tastes that who rated what does not show: each side is found as far as the other one is,

    Ri = mean [ x Ru / (1 + x Ru) ],  Ru = mean [ x Ri / (1 + x Ri) ],    x = Th S i / d,

the fixed point of state evolution (Montanari and Venkataramanan 2021): zero unless the product of both x exceeds one.
Because that is a threshold, the term is the mean of two: tastes half as large as is typical, and half as large again.

All of it is compiled, because the rule asks a hundred times and the tables are small; what it takes and returns are
named tuples, which kernels understand.

Known gap: the gradient takes as constant what sums over all ratings tell, how far a rating that is in both answers
tells the same thing twice, and what hidden tastes owe to each other.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dpsr.arrays import Floats
from dpsr.linalg.compiled import kernel
from dpsr.value.design import OCTAVES, Side
from dpsr.value.priors import Shares

WINDOW, SLOPE, _SPREAD = 0.8, 0.6, 0.45
"""Half-width in deviations, slope and Var/c^2 of a Gaussian clipped at 0.8 deviations."""

VARIANCE = _SPREAD * WINDOW**2 + SLOPE**2 * 0.1
"""Of a clipped rating around its mean; partners are known to a tenth."""

_FEATURES, _PRODUCTS, _DIMENSIONS = 30, 64, 6

_CONTRASTS, _REACH = 121, 3.0
"""Sums over all ratings, and what a rating adds there to the coefficient that its sum is about."""

_TINY = 1e-12

_SIZES = (0.5, 1.5)
"""Hidden tastes that are averaged over, in typical ones."""

_ROUNDS = 30
"""Of the fixed point of hidden tastes; it is slow only where next to nothing is found."""


class ShareTables(NamedTuple):
    """A division as the rule sees it: tables over pairs of octaves (items, users).

    The item's share of a weight, how many ratings are asked one by one, what of a weight those leave to the sums, and
    what of any weight is in sums over all ratings.
    """

    item: Floats
    asked: Floats
    light: float
    pooled: float


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
    n, light, own = OCTAVES, division.light, 1 - division.pooled
    heard_by_items, heard_by_users = np.zeros((n, 6)), np.zeros((n, 6))
    for a in range(n):
        for b in range(n):
            _hear(heard_by_items[a], users.mass[b], own * division.item[a, b], division.asked[a, b], light)
            _hear(heard_by_users[b], items.mass[a], own * (1 - division.item[a, b]), division.asked[a, b], light)
    left = parts.residual + parts.products + parts.item_slopes + parts.user_slopes + parts.hidden
    left += _know(items, heard_by_items, prices) + _know(users, heard_by_users, prices)
    told = 0.0 if prices.rho <= 0 else 1 / (parts.residual + left * (1 - prices.rho) / prices.rho)
    each, product = parts.features / _FEATURES, parts.products / _PRODUCTS
    off_items, shared_items = _error(items, heard_by_items, told)
    off_users, shared_users = _error(users, heard_by_users, told)
    shared = shared_items + shared_users
    ratings, all_asked = 0.0, 0.0
    for a in range(n):
        ratings += items.rows[a] * (items.other[a] + 1)
        for b in range(n):
            all_asked += items.rows[a] * (items.other[a] + 1) * division.asked[a, b] * users.mass[b]
    error = parts.residual + off_items + off_users
    known = all_asked * told + _pooled(ratings, all_asked, division, prices)
    error += parts.features / (1 + each * shared) + parts.products / (1 + product * known)
    pooled = parts.products * product / (1 + product * known) ** 2
    features = parts.features * each / (1 + each * shared) ** 2
    heard = pooled * all_asked
    heard += _worth(items, heard_by_items, told, features) + _worth(users, heard_by_users, told, features)
    for size in _SIZES:
        off, more = _hidden(items, heard_by_items, users, heard_by_users, size * parts.hidden, told)
        error, heard = error + off / len(_SIZES), heard + more
    tuned = told**2 * (1 - prices.rho) / max(prices.rho, _TINY) * heard
    _per_rating(items, heard_by_items, told, tuned)
    _per_rating(users, heard_by_users, told, tuned)
    return error, _gains(heard_by_items, heard_by_users, division, pooled * told * ratings)


@kernel
def _pooled(ratings: float, asked: float, division: ShareTables, prices: Prices) -> float:
    """P: how many ratings without noise the sums over all ratings are worth to products of features."""
    reach = division.pooled * (ratings - (1 - division.light) * asked) / _CONTRASTS
    scatter = division.pooled**2 * (ratings - (1 - division.light**2) * asked) / _CONTRASTS
    return (SLOPE * _REACH * reach) ** 2 / (prices.noise + VARIANCE * scatter + _TINY)


_SUMS, _ASKED, _SLOPE, _SCATTER, _KNOWN, _SLOPES = range(6)
"""What a row of each octave hears: from sums (A, then the information), symbols S, and what the two become."""


@kernel
def _hear(row: Floats, mass: float, weight: float, s: float, light: float) -> None:
    """Add the ratings of one octave of partners: A, S, the doubly heard part of A, and Q, all over n."""
    row[_SUMS] += mass * weight * (1 - s + light * s)
    row[_ASKED] += mass * s
    row[_SLOPE] += mass * weight * light * s
    row[_SCATTER] += mass * weight**2 * (1 - s + light**2 * s)


@kernel
def _know(side: Side, heard: Floats, prices: Prices) -> float:
    """From weights to the information of sums and its slopes in A and in Q; what effects the sums leave unknown."""
    left = 0.0
    for a in range(OCTAVES):
        row, n = heard[a], side.other[a]
        total, around = n * row[_SUMS], prices.noise + VARIANCE * n * row[_SCATTER] + _TINY
        fresh = 1 - prices.rho * n * row[_SLOPE] / max(total, _TINY)
        row[_SUMS], row[_ASKED] = fresh * (SLOPE * total) ** 2 / around, n * row[_ASKED]
        row[_SLOPE] = fresh * 2 * SLOPE**2 * total / around
        row[_SCATTER] = -row[_SUMS] * VARIANCE / around
        left += side.mass[a] * side.effect / (1 + side.effect * row[_SUMS])
    return left


@kernel
def _error(side: Side, heard: Floats, told: float) -> tuple[float, float]:
    """What is left of effects and slopes, and what rows tell together about public features."""
    error, shared = 0.0, 0.0
    for a in range(OCTAVES):
        known, mass = heard[a, _SUMS] + heard[a, _ASKED] * told, side.mass[a]
        error += mass * side.effect / (1 + side.effect * known)
        error += mass * side.slopes / (1 + side.slopes * heard[a, _ASKED] * told / _DIMENSIONS)
        shared += side.rows[a] * known / (1 + side.effect * known)
    return error, shared


@kernel
def _worth(side: Side, heard: Floats, told: float, features: float) -> float:
    """By how much the error falls with a row's information: about its effect (and the features), about its slopes.

    What all symbols are worth together.
    """
    total = 0.0
    for a in range(OCTAVES):
        row, mass = heard[a], side.mass[a]
        left = 1 / (1 + side.effect * (row[_SUMS] + row[_ASKED] * told)) ** 2
        row[_KNOWN] = (mass * side.effect**2 + features * side.rows[a]) * left
        row[_SLOPES] = mass * side.slopes**2 / _DIMENSIONS
        row[_SLOPES] /= (1 + side.slopes * row[_ASKED] * told / _DIMENSIONS) ** 2
        total += (row[_KNOWN] + row[_SLOPES]) * row[_ASKED]
    return total


@kernel
def _hidden(
    items: Side, by_items: Floats, users: Side, by_users: Floats, taste: float, told: float
) -> tuple[float, float]:
    """What hidden tastes of this variance leave open, and what all symbols are worth to them.

    What a row tells about them is added to the worth of its slopes.
    """
    of_items, of_users = 0.0, 1.0 if taste > 0 else 0.0
    for _ in range(_ROUNDS if taste > 0 else 0):
        of_items = _found(items, by_items, taste * told, of_users)
        of_users = _found(users, by_users, taste * told, of_items)
    more = _tell(items, by_items, taste, told, of_users) + _tell(users, by_users, taste, told, of_items)
    return taste * (1 - of_items * of_users), more


@kernel
def _found(side: Side, heard: Floats, taste_told: float, partners: float) -> float:
    """The share of a side's tastes that is found where this share of its partners' is."""
    total = 0.0
    for a in range(OCTAVES):
        known = taste_told * heard[a, _ASKED] / _DIMENSIONS * partners
        total += side.mass[a] * known / (1 + known)
    return total


@kernel
def _tell(side: Side, heard: Floats, taste: float, told: float, partners: float) -> float:
    total = 0.0
    for a in range(OCTAVES):
        known = taste * told * heard[a, _ASKED] / _DIMENSIONS * partners
        worth = side.mass[a] * (taste * partners / (1 + known)) ** 2 / _DIMENSIONS / len(_SIZES)
        heard[a, _SLOPES] += worth
        total += worth * heard[a, _ASKED]
    return total


@kernel
def _per_rating(side: Side, heard: Floats, told: float, tuned: float) -> None:
    """A row's worth over its share of ratings: of weight in its sum, of that squared, and of a symbol."""
    for a in range(OCTAVES):
        row, mass = heard[a], side.mass[a]
        each = side.other[a] / max(mass, _TINY)
        through = row[_KNOWN] + tuned * mass * side.effect**2 / (1 + side.effect * row[_SUMS]) ** 2
        row[_SLOPE] *= each * through
        row[_SCATTER] *= each * through
        row[_ASKED] = each * (row[_KNOWN] + row[_SLOPES]) * told


@kernel
def _gains(items: Floats, users: Floats, division: ShareTables, pooled: float) -> Gains:
    """Both sides' worth, pair by pair of octaves; `pooled` is what one more symbol tells about products."""
    n, light, own = OCTAVES, division.light, 1 - division.pooled
    to_item, to_user, in_sums, one_by_one = np.empty((n, n)), np.empty((n, n)), np.empty((n, n)), np.empty((n, n))
    for a in range(n):
        for b in range(n):
            s, to_items, to_users = division.asked[a, b], own * division.item[a, b], own * (1 - division.item[a, b])
            mean, square = 1 - s + light * s, 1 - s + light**2 * s
            line, slope = items[a, _SLOPE], items[a, _SCATTER]
            other, other_slope = users[b, _SLOPE], users[b, _SCATTER]
            to_item[a, b] = own * (line * mean + 2 * slope * to_items * square)
            to_user[a, b] = own * (other * mean + 2 * other_slope * to_users * square)
            first = line * to_items + other * to_users
            second = slope * to_items**2 + other_slope * to_users**2
            in_sums[a, b] = first + second
            one_by_one[a, b] = pooled + light * first + light**2 * second + items[a, _ASKED] + users[b, _ASKED]
    return Gains(to_item, to_user, in_sums, one_by_one)
