"""The price of one part of a certificate, recomputed from what the part itself shows.

    integer tables                  epsilon = worst log-ratio in a column of the dearest table; or, where the part
                                    allows a delta, the exact delta at the epsilon it states
    sensitivity D, noise scale b    discrete Laplace noise on integers: epsilon = D / b
    the paper's Stage 1             sup over all data sets, docs/published.md:
                                    max(log(1+a) + e0, e) + 2 a max(1, e0),   e0 = e / (1+a)

Whoever holds the certificate can do this; it needs no rating. Results are rounded up.
"""

from __future__ import annotations

from fractions import Fraction
from math import inf, log1p, nextafter
from typing import NamedTuple

from dpsr.certify.certificate import Part, Table
from dpsr.certify.exact import delta_of, epsilon_of, float_up
from dpsr.errors import PrivacyError

PUBLISHED = "calibrated laplace, as published, clipped"
_MOST_BITS = 62
_MOST_COMPARISONS = 20_000_000
"""Cells compared when a delta is recomputed: about a minute."""


class Price(NamedTuple):
    """Epsilon and delta, never understated."""

    epsilon: float
    delta: float = 0.0


def price_of(part: Part) -> Price:
    """What `part` costs by its own tables or numbers; an error says why that cannot be recomputed."""
    if part.tables:
        return _price_of_tables(part)
    if part.sensitivity is not None and part.noise_scale is not None:
        return Price(_laplace_price(part.sensitivity, part.noise_scale))
    if part.mechanism == PUBLISHED:
        return Price(published_price(*_published_settings(part)))
    if part.epsilon == inf:
        return Price(inf)
    raise PrivacyError(
        f"part {part.name!r} shows neither tables nor a sensitivity and its noise scale: its price cannot be recomputed"
    )


def published_price(nominal: float, alpha: float) -> float:
    """The true worst case of the paper's Stage 1 over all data sets, the moving mean included, rounded up."""
    base = nominal / (1 + alpha)
    price = max(log1p(alpha) + base, nominal) + 2 * alpha * max(1.0, base)
    return nextafter(nextafter(price, inf), inf)


def check_table(table: Table, bits: int | None) -> Table:
    """The table itself, once every row is known to be a distribution over 2**bits."""
    if bits is None or not 1 <= bits <= _MOST_BITS:
        raise PrivacyError(f"a table's rows sum to 2**bits with bits from 1 to {_MOST_BITS}, found bits = {bits}")
    if len(table) < 2 or len({len(row) for row in table}) != 1:
        raise PrivacyError(f"a table has at least two rows of one length, found {len(table)}")
    for x, row in enumerate(table):
        if min(row, default=0) < 0 or sum(row) != 1 << bits:
            raise PrivacyError(f"row {x} of a table is no distribution: its cells do not add up to 2**{bits}")
    return table


def _price_of_tables(part: Part) -> Price:
    tables = [check_table(table, part.bits) for table in part.tables]
    if part.delta == 0:
        return Price(max(map(epsilon_of, tables)))
    if any(len(table) ** 2 * len(table[0]) > _MOST_COMPARISONS for table in tables):
        raise PrivacyError(
            f"part {part.name!r} has a delta and a table too large to compare all pairs of its rows: its price cannot "
            "be recomputed here"
        )
    return Price(part.epsilon, max(delta_of(table, int(part.bits or 0), part.epsilon) for table in tables))


def _laplace_price(sensitivity: int, noise_scale: str) -> float:
    try:
        price = Fraction(sensitivity) / Fraction(noise_scale)
        if price > 0:
            return float_up(price)
    except (ValueError, ArithmeticError):
        pass
    raise PrivacyError(
        f"noise needs a positive whole sensitivity and a positive fraction as its scale, "
        f"found {str(sensitivity)[:20]} and {noise_scale[:20]!r}"
    )


def _published_settings(part: Part) -> tuple[float, float]:
    nominal, alpha = part.details.get("nominal"), part.details.get("alpha")
    if not (isinstance(nominal, int | float) and isinstance(alpha, int | float) and nominal > 0 and 0 <= alpha <= 1):
        raise PrivacyError(f"part {part.name!r} does not state the nominal epsilon and alpha its price is made of")
    return nominal, alpha
