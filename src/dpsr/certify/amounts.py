"""Epsilon and delta as numbers: which may be asked for, exact sums, how they are written, and what they mean as odds.

**Exact.** Whoever writes 0.1 means one tenth; a float 0.1 that comes out of a computation is what it is, a little more.
So text and `Decimal` are read as decimals and floats as the binary fractions they are, sums are exact, and only what is
shown is rounded, to the side that promises less: prices and what is spent up, what is left down.

**As odds.** If a release is epsilon-private, a statement about the protected thing that had probability p before has
afterwards, by Bayes' rule and the definition, odds within a factor e^epsilon of p / (1 - p); so its probability lies
between

    1 / (1 + (1 - p) / p e^epsilon)      and      1 / (1 + (1 - p) / p e^-epsilon).

Where a delta is allowed, that holds but for a chance which is larger than delta, and is computed for normal noise
(`normal_price.chance_beyond`).

With k equally likely levels the best guess was right once in k times, and is right at most e^epsilon / (e^epsilon +
k-1) of the time after. k ratings of one person are protected together at k epsilon (group privacy).
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, InvalidOperation
from fractions import Fraction
from math import ceil, exp, floor, inf, isfinite, isinf, log, nextafter
from numbers import Rational, Real
from typing import TypeAlias

from dpsr.errors import PrivacyError

MAX_EPSILON, MAX_DELTA = 30.0, 0.1
"""Beyond these no promise worth the name is made."""

MIN_EPSILON = 1e-6
"""Every question has its noise from here on; below, some would need more of it than the exact samplers have."""

Amount: TypeAlias = float | str | Decimal | Fraction

LONGEST = 1300
"""Characters of an amount written as a fraction: enough for every float, and for decimals of 400 digits."""

_DIGITS = 6
_MOST_DIGITS = 400
"""No float has more decimal places before its first digit; more would only cost time."""
_LARGEST_PLACE = 100
_MOST_BITS = 4300
"""More would be longer than `LONGEST` characters, and Python refuses to write very many digits at all."""


def check_epsilon(epsilon: object) -> float:
    """A privacy budget is a finite positive number that means something."""
    if isinstance(epsilon, bool) or not isinstance(epsilon, Real) or not _within(epsilon, MIN_EPSILON, MAX_EPSILON):
        raise PrivacyError(
            f"epsilon must be a number above 0, from {MIN_EPSILON:.6f} to {MAX_EPSILON:g}, found {epsilon!r}. "
            "Common choices are 0.5 to 3; there is no value that means 'no noise'."
        )
    return float(epsilon)


def check_delta(delta: object) -> float:
    """A failure probability small enough to be one."""
    if isinstance(delta, bool) or not isinstance(delta, Real) or not _within(delta, 5e-324, nextafter(MAX_DELTA, 0)):
        raise PrivacyError(
            f"delta must be above 0 and below {MAX_DELTA:g}, found {delta!r}. Use less than one over the number of "
            "people, for example 1e-6."
        )
    return float(delta)


def _within(number: Real, least: float, most: float) -> bool:
    """From `least` to `most`; a whole number too large for a float is not."""
    try:
        return least <= float(number) <= most
    except OverflowError:
        return False


def exact(amount: Amount, what: str) -> Fraction:
    """`amount` as a fraction, not negative."""
    try:
        value = _fraction(amount)
    except (ValueError, InvalidOperation, TypeError, OverflowError):
        value = Fraction(-1)
    if not 0 <= value <= 10**_LARGEST_PLACE or not _can_be_kept(value):
        raise PrivacyError(
            f"{what} is a finite number, not negative, at most 1e{_LARGEST_PLACE} and of at most {_MOST_DIGITS} "
            f"digits, found {_shown(amount)}. Write it like 0.5."
        )
    return value


def as_written(number: float) -> Fraction:
    """The decimal a person wrote to get this float: 0.1 is one tenth."""
    return Fraction(repr(float(number)))


def float_below(amount: Fraction) -> float:
    """The largest float that is not above `amount`: what a mechanism may spend of it."""
    if amount > Fraction(sys.float_info.max):
        return sys.float_info.max
    nearest = float(amount)
    return nearest if Fraction(nearest) <= amount else nextafter(nearest, -inf)


def float_up(value: Fraction | Decimal) -> float:
    """The smallest float that is not below `value`."""
    nearest = float(value)
    return nearest if Fraction(nearest) >= Fraction(value) else nextafter(nearest, inf)


def sum_up(prices: Iterable[float]) -> float:
    """A sum of floats that is never understated: the exact rational sum, rounded up once."""
    prices = list(prices)
    return inf if inf in prices else float_up(sum((Fraction(price) for price in prices), Fraction(0)))


def written_up(amount: Fraction) -> str:
    """For people, never less than it is."""
    return _written(amount, ROUND_CEILING)


def written_down(amount: Fraction) -> str:
    """For people, never more than it is."""
    return _written(amount, ROUND_FLOOR)


def _fraction(amount: object) -> Fraction:
    """Exactly what was given: integers and fractions, decimals as written, floats as the binary fractions they are."""
    if isinstance(amount, bool):
        raise TypeError(amount)
    if isinstance(amount, Rational):
        return Fraction(int(amount.numerator), int(amount.denominator))
    if isinstance(amount, str | Decimal):
        decimal = Decimal(amount)
        if not decimal.is_finite() or max(abs(decimal.adjusted()), len(decimal.as_tuple().digits)) > _MOST_DIGITS:
            raise ValueError(amount)
        return Fraction(decimal)
    if not isinstance(amount, Real) or not isfinite(amount):
        raise ValueError(amount)
    return Fraction(float(amount))


def _can_be_kept(amount: Fraction) -> bool:
    """Whether it can be written as a fraction of `LONGEST` characters; the first test is for numbers without end."""
    bits = max(amount.numerator.bit_length(), amount.denominator.bit_length())
    return bits <= _MOST_BITS and len(str(amount)) <= LONGEST


def _shown(amount: object) -> str:
    """Enough of it to recognise it."""
    if isinstance(amount, int | Fraction) and not _can_be_kept(Fraction(amount)):
        return "a number without end"
    text = repr(amount)
    return text if len(text) <= 60 else text[:59] + "…"


def _written(amount: Fraction, rounding: str) -> str:
    """Six digits, as `%g` writes them; not by way of a float, which has fewer near its smallest value, and an end."""
    context = Context(prec=_DIGITS, rounding=rounding)
    value = context.divide(Decimal(amount.numerator), Decimal(amount.denominator)).normalize(context)
    place = value.adjusted()
    if not value or -5 < place < _DIGITS:
        return f"{value:f}"
    digits = "".join(str(digit) for digit in value.as_tuple().digits)
    mantissa = f"{digits[0]}.{digits[1:]}" if len(digits) > 1 else digits
    return f"{mantissa}e{place:+03d}"


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


def left_text(epsilon: float) -> str:
    """What is left to spend, in four digits, rounded down; a debt is nothing.

    >>> left_text(0.99999), left_text(2.0), left_text(-1e-9)
    ('0.9999', '2', '0')
    """
    rounded = Context(prec=4, rounding=ROUND_FLOOR).create_decimal(Decimal(repr(float(max(epsilon, 0.0)))))
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
