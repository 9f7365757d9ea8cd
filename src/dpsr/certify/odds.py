"""Epsilon in words, computed once: odds, beliefs, guesses. Every figure is rounded to the side that promises less.

If a release is epsilon-private, a statement about the protected thing that had probability p before has afterwards, by
Bayes' rule and the definition, odds within a factor e^epsilon of p / (1 - p); so its probability lies between

    1 / (1 + (1 - p) / p e^epsilon)      and      1 / (1 + (1 - p) / p e^-epsilon).

Where a delta is allowed, that holds but for a chance which is larger than delta, and is computed for normal noise
(`normal_price.chance_beyond`).

With k equally likely levels the best guess was right once in k times, and is right at most e^epsilon / (e^epsilon +
k-1) of the time after. k ratings of one person are protected together at k epsilon (group privacy).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from math import ceil, exp, floor, inf, isinf, log, nextafter

from dpsr.certify.amounts import float_up

PRIORS = (0.01, 0.1, 0.5, 0.9)
_OVERFLOW = 700.0
"""e^epsilon no longer fits a float beyond this; certainty is then a matter of 300 decimals."""

_LARGEST_FACTOR = 1e6


def odds_factor(epsilon: float) -> float:
    """By how much the odds of anything about the protected thing can change, rounded up.

    >>> round(odds_factor(1.0), 3)
    2.718
    """
    return _up(exp(epsilon)) if epsilon < _OVERFLOW else inf


def belief_at_most(prior: float, epsilon: float) -> float:
    """The most that a belief of `prior` can become, rounded up.

    >>> f"{belief_at_most(0.5, 1.0):.2f} {belief_at_most(0.2, 1.0):.2f} {belief_at_most(0.5, 1e9):.2f}"
    '0.73 0.40 1.00'
    """
    return min(_up(prior / (prior + (1 - prior) * exp(-min(epsilon, _OVERFLOW)))), 1.0)


def belief_at_least(prior: float, epsilon: float) -> float:
    """The least that a belief of `prior` can become, rounded down.

    >>> f"{belief_at_least(0.5, 1.0):.4f} {belief_at_least(0.5, 1e9):.2f}"
    '0.2689 0.00'
    """
    return max(_down(1 / (1 + (1 - prior) / prior * exp(min(epsilon, _OVERFLOW)))), 0.0)


def guess_right(table: Sequence[Sequence[int]]) -> float:
    """How often the best guess of a level is right once a symbol is seen, all levels being equally likely; rounded up.

    Sum over symbols of the largest P[symbol | level], over the number of levels; rows are integer weights.

    >>> guess_right([[3, 1], [1, 3]])
    0.75
    """
    totals = [sum(row) for row in table]
    best = (
        max(Fraction(row[y], total) for row, total in zip(table, totals, strict=True)) for y in range(len(table[0]))
    )
    return float_up(sum(best, Fraction(0)) / len(table))


def percent_up(probability: float) -> str:
    """Per cent, rounded up; a finite epsilon never makes certain, so nothing rounds up to certainty.

    >>> percent_up(0.731058), percent_up(0.999999), percent_up(1e-7)
    ('73.11 %', '> 99.99 %', '0.01 %')
    """
    hundredths = ceil(probability * 10_000)
    return "> 99.99 %" if hundredths >= 10_000 else f"{hundredths / 100:.2f} %"


def percent_down(probability: float) -> str:
    """Per cent, rounded down."""
    return f"{floor(probability * 10_000) / 100:.2f} %"


def epsilon_text(epsilon: float, digits: int = 4) -> str:
    """A price in at most `digits` digits, rounded up from the shortest decimal that names the float.

    >>> epsilon_text(0.99999998), epsilon_text(0.02), epsilon_text(0.93911), epsilon_text(210), epsilon_text(123456.7)
    ('1', '0.02', '0.9392', '210', '123,457')
    >>> epsilon_text(float("inf"))
    'unbounded'
    """
    if isinf(epsilon):
        return "unbounded"
    if epsilon >= 10 ** (digits - 1):
        return f"{ceil(epsilon):,}"
    rounded = Context(prec=digits, rounding=ROUND_CEILING).create_decimal(Decimal(repr(float(epsilon))))
    return f"{float(rounded):g}" if rounded else "0"


def left_text(epsilon: float, digits: int = 4) -> str:
    """What is left to spend, rounded down; a debt is nothing.

    >>> left_text(0.99999), left_text(2.0), left_text(-1e-9)
    ('0.9999', '2', '0')
    """
    rounded = Context(prec=digits, rounding=ROUND_FLOOR).create_decimal(Decimal(repr(float(max(epsilon, 0.0)))))
    return f"{float(rounded):g}"


def factor_text(epsilon: float) -> str:
    """e^epsilon, rounded up.

    >>> factor_text(1.0), factor_text(30.0), factor_text(float("inf"))
    ('2.72', 'more than a million', 'without bound')
    """
    if epsilon == inf:
        return "without bound"
    grown = odds_factor(epsilon)
    return epsilon_text(grown, 3) if grown <= _LARGEST_FACTOR else "more than a million"


@dataclass(frozen=True)
class PersonOdds:
    """Somebody with `ratings` ratings: what all of them together cost, and what a fifty-fifty guess can become."""

    who: str
    ratings: int
    epsilon: str
    guess: str


def odds_of_person(together: float, who: str, n_ratings: int) -> PersonOdds:
    """What holds for all ratings of one person together, at the epsilon they cost `together`."""
    return PersonOdds(who, n_ratings, epsilon_text(together), percent_up(belief_at_most(0.5, together)))


def ratings_until(certainty: float, epsilon: float) -> int:
    """How many ratings of one person it takes until a fifty-fifty guess about all of them may exceed `certainty`."""
    return 1 if isinf(epsilon) else floor(log(certainty / (1 - certainty)) / epsilon) + 1


def _up(value: float) -> float:
    """Library functions are right to a few units in the last place; four of them cover that."""
    for _ in range(4):
        value = nextafter(value, inf)
    return value


def _down(value: float) -> float:
    for _ in range(4):
        value = nextafter(value, -inf)
    return value
