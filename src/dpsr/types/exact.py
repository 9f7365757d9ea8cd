"""Exact arithmetic for privacy prices: integers in, floats that err only on the private side out.

For an integer table w (rows: secrets, columns: outputs, every row sums to 2**bits):

    epsilon          = max over columns y of  log( max_x w[x, y] / min_x w[x, y] )
    delta(epsilon)   = max over pairs x, x' of  sum_y max(0, w[x, y] - e^epsilon w[x', y]) / 2**bits

Logarithms and exponentials are taken with 60 digits and rounded so that epsilon and delta are never understated.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, localcontext
from fractions import Fraction
from math import exp, inf, nextafter

import numpy as np
import numpy.typing as npt

Table = npt.NDArray[np.uint64]

_DIGITS = 60
_SLACK = Decimal(10) ** (3 - _DIGITS)
"""`Decimal.ln` and `Decimal.exp` are correctly rounded, so this covers them many times over."""


def float_up(value: Fraction | Decimal) -> float:
    """The smallest float that is not below `value`."""
    nearest = float(value)
    return nearest if Fraction(nearest) >= Fraction(value) else nextafter(nearest, inf)


def sum_up(prices: Iterable[float]) -> float:
    """A sum of floats that is never understated: the exact rational sum, rounded up once."""
    prices = list(prices)
    return inf if inf in prices else float_up(sum((Fraction(price) for price in prices), Fraction(0)))


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


def exp_up(epsilon: float) -> Fraction:
    """A rational just above e^epsilon."""
    with localcontext(Context(prec=_DIGITS, rounding=ROUND_CEILING)):
        return Fraction(Decimal(epsilon).exp() * (1 + _SLACK))


def worst_ratio(table: Table) -> Fraction | None:
    """The largest ratio of two cells of one column, exactly; None when a column mixes empty and full cells."""
    highest, lowest = table.max(axis=0), table.min(axis=0)
    used = highest > 0
    if (lowest[used] == 0).any():
        return None
    return max(Fraction(int(a), int(b)) for a, b in zip(highest[used], lowest[used], strict=True))


def epsilon_of(table: Table) -> float:
    """The exact price of pure differential privacy, rounded up; infinite if an output can rule a secret out."""
    ratio = worst_ratio(table)
    return inf if ratio is None else log_up(ratio)


def delta_of(table: Table, bits: int, epsilon: float) -> float:
    """The exact delta at `epsilon`, rounded up."""
    factor = exp_down(epsilon)
    pairs = _candidate_pairs(table, bits, epsilon)
    return float_up(max((_hockey_stick(table[x], table[z], factor, bits) for x, z in pairs), default=Fraction(0)))


def _hockey_stick(row: npt.NDArray[np.uint64], other: npt.NDArray[np.uint64], factor: Fraction, bits: int) -> Fraction:
    p, q = factor.numerator, factor.denominator
    excess = sum(max(0, int(a) * q - p * int(b)) for a, b in zip(row, other, strict=True))
    return Fraction(excess, q << bits)


def _candidate_pairs(table: Table, bits: int, epsilon: float) -> list[tuple[int, int]]:
    """Pairs that can attain the maximum, found in floating point with a margin far above its error.

    Exact arithmetic over all k^2 pairs is slow for fine scales and needed only for the winners.
    """
    probability = table.astype(np.float64) / 2.0**bits
    shrunk = exp(epsilon) * probability
    scores = np.array([np.maximum(row - shrunk, 0).sum(axis=1) for row in probability])
    np.fill_diagonal(scores, -1)
    margin = 1e-9 * max(float(scores.max()), 0.0) + 1e-14 * table.shape[1]
    close = [(int(x), int(z)) for x, z in zip(*np.nonzero(scores >= scores.max() - margin), strict=True)]
    close.sort(key=lambda pair: -scores[pair])
    return close if scores.max() > margin else close[:_ALL_TIED]


_ALL_TIED = 64
"""When every delta is below the noise of floating point, this many of the best pairs are evaluated exactly."""
