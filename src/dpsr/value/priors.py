"""What is believed before anything was asked: typical shares of the variance of ratings.

They are constants, the same for every data set, chosen while looking at one split of two public rating sets
(`docs/method.md` says so beside the figures). Evidence from the private answers moves all of them; they decide only
where there is none.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass, fields, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dpsr.errors import PrivacyError


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
    hidden: float


EFFECT = 0.12
"""Share of an item's, or a user's, own effect."""

SLOPES = 0.03
"""Share of all slopes on the other side's features together."""

FACTORS = 0.4
"""Share given to all free factors together at the start: large, so that they are not switched off unseen."""

COEFFICIENT = np.array([np.nan, 0.002, 0.002, 0.002, 0.002, 0.00003, 1e-9, 0.0003, 0.0002, 0.0001])
"""Share of one coefficient of W by group (`Design.weight_groups`), and of Q, the last; the constant is set from the
noisy mean. Places of items are not believed to go with features of users: coefficients that nothing tells of would cost
more (decision 74). Of all products those with an item's count and those of one embedding show most (decision 86)."""

OWN_PRODUCTS = len(COEFFICIENT) - 1
"""The group of products of an item's own features."""

_CAUTION = 0.2
"""A group of W is believed to be a fifth of the typical until it shows."""


def cautious_ridge(ridge: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The ridge that evidence is weighed against: the constant as it is, every other group with caution."""
    return np.r_[ridge[:1], ridge[1:] / _CAUTION]


def ridge(variance: float, mean_variance: float) -> npt.NDArray[np.float64]:
    """Prior precision of W's entries by group, for ratings of this variance and a mean known that well."""
    precision = 1 / (variance * COEFFICIENT)
    precision[0] = 1 / (mean_variance + 1e-4 * variance)
    return precision
