"""Budgets and prices as exact fractions, and how they are written for people.

Whoever writes 0.1 means one tenth; a float 0.1 that comes out of a computation is what it is, a little more. So text
and `Decimal` are read as decimals and floats as the binary fractions they are, sums are exact, and only what is shown
is rounded: prices and what is spent up, what is left down. Here too is which epsilon and delta may be asked for.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, InvalidOperation
from fractions import Fraction
from math import inf, isfinite, nextafter
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
