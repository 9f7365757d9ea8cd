"""What the variance of ratings is made of: typical shares, unless the curator knows better."""

from __future__ import annotations

from dataclasses import astuple, dataclass, fields, replace
from typing import NamedTuple

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
