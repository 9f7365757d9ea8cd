"""What a table of integers costs: integers in, floats that err only on the private side out.

For a table w (rows: secrets, columns: outputs, every row sums to 2**bits):

    epsilon          = max over columns y of  log( max_x w[x, y] / min_x w[x, y] )
    delta(epsilon)   = max over pairs x, x' of  sum_y max(0, w[x, y] - e^epsilon w[x', y]) / 2**bits

Logarithms and exponentials are taken with 60 digits and rounded so that epsilon and delta are never understated.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import ROUND_FLOOR, Context, Decimal, localcontext
from fractions import Fraction
from itertools import permutations
from math import inf
from typing import TypeAlias

from dpsr.certify.amounts import float_up

Table: TypeAlias = Sequence[Sequence[int]]

_DIGITS = 60
_SLACK = Decimal(10) ** (3 - _DIGITS)
"""`Decimal.ln` and `Decimal.exp` are correctly rounded, so this covers them many times over."""


def log_up(ratio: Fraction) -> float:
    """log(ratio), rounded up to a float; zero stays exactly zero."""
    if ratio == 1:
        return 0.0
    with localcontext(Context(prec=_DIGITS)):
        log = (Decimal(ratio.numerator) / Decimal(ratio.denominator)).ln()
        return float_up(log + abs(log) * _SLACK + _SLACK)


def exp_down(epsilon: float) -> Fraction:
    """A rational just below e^epsilon: the side that overstates delta."""
    with localcontext(Context(prec=_DIGITS, rounding=ROUND_FLOOR)):
        return Fraction(Decimal(epsilon).exp() * (1 - _SLACK))


def worst_ratio(table: Table) -> Fraction | None:
    """The largest ratio of two cells of one column, exactly; None when a column mixes empty and full cells."""
    ends = [(max(column), min(column)) for column in zip(*table, strict=True) if any(column)]
    if any(low == 0 for _, low in ends):
        return None
    most, least = ends[0]
    for high, low in ends:
        if high * least > most * low:  # high / low > most / least, without a fraction for each column
            most, least = high, low
    return Fraction(most, least)


def epsilon_of(table: Table) -> float:
    """The exact price of pure differential privacy, rounded up; infinite if an output can rule a secret out."""
    ratio = worst_ratio(table)
    return inf if ratio is None else log_up(ratio)


def delta_of(table: Table, bits: int, epsilon: float, pairs: Iterable[tuple[int, int]] | None = None) -> float:
    """The exact delta at `epsilon`, rounded up: over all ordered pairs of rows, or over `pairs` known to attain it."""
    factor = exp_down(epsilon)
    found = (_hockey_stick(table[x], table[z], factor) for x, z in pairs or permutations(range(len(table)), 2))
    return float_up(max(found, default=Fraction(0)) / (1 << bits))


def _hockey_stick(row: Sequence[int], other: Sequence[int], factor: Fraction) -> Fraction:
    p, q = factor.numerator, factor.denominator
    return Fraction(sum(max(0, a * q - p * b) for a, b in zip(row, other, strict=True)), q)
