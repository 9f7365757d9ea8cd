"""Two questions that no table bears out: the paper's Stage 1 as printed, and ratings that are declared private.

published    the supremum over all data sets, docs/published.md,
             max(log(1+a) + e0, e) + 2 a max(1, e0),   e0 = e / (1+a)
declared     their owner says they are private already: nothing is known, epsilon is infinite
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import inf, log1p, nextafter
from typing import ClassVar

from dpsr.certify.parts import Price, PricedPart


@dataclass(frozen=True)
class PublishedPart(PricedPart):
    """The paper's Stage 1 exactly as printed. Its table depends on the exact mean of the ratings and is withheld."""

    kind: ClassVar[str] = "published"

    nominal: float
    alpha: float

    @cached_property
    def price(self) -> Price:
        return Price(published_price(self.nominal, self.alpha))

    @property
    def noise(self) -> str:
        return "calibrated Laplace, as published, clipped"


@dataclass(frozen=True)
class DeclaredPart(PricedPart):
    """Ratings that were declared private by whoever passed them in."""

    kind: ClassVar[str] = "declared"

    @cached_property
    def price(self) -> Price:
        return Price(inf)

    @property
    def noise(self) -> str:
        return "none drawn here: declared private by the caller"


def published_price(nominal: float, alpha: float) -> float:
    """The true worst case of the paper's Stage 1 over all data sets, the moving mean included, rounded up."""
    base = nominal / (1 + alpha)
    price = max(log1p(alpha) + base, nominal) + 2 * alpha * max(1.0, base)
    return nextafter(nextafter(price, inf), inf)
