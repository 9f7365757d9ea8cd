"""What a person's own ratings meet besides the factors of a model, and the rows of people as `personalise` opens them.

`PersonalPrior` and `NoisyRatings` are post-processing of private answers and lie in the release. `OwnRows` are raw:
they belong to the people they are about, and what is computed from one person's rows goes to that person alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import pyarrow as pa

from dpsr.arrays import Codes, Floats, Ints, Singles
from dpsr.types.coordinates import Mask, Scale


class Widths(NamedTuple):
    """How the factors of a model are made up: user vectors [x, c, f, 1, t], item vectors [b, z, g, midpoint, k].

    x and b have `user_features` columns, c and z have `item_features`, f and g have `factors`. t and k, a taste that
    the mask makes smooth, have what columns there are behind these, maybe none.
    """

    user_features: int
    item_features: int
    factors: int

    @property
    def rank(self) -> int:
        """Columns before t and k."""
        return sum(self) + 1

    @property
    def learned(self) -> int:
        """Coefficients of an item: (b, g)."""
        return self.user_features + self.factors

    @property
    def own(self) -> int:
        """Coefficients of a person: (c, f)."""
        return self.item_features + self.factors


@dataclass(frozen=True, eq=False)
class PersonalPrior:
    """How well items are known and what is expected of people, in half-widths of the scale.

    `item_covariance` has one row an item, the packed covariance of (b, g), or of b's constant alone where no noisy
    rating was bought. People's (c, f) are expected at `x @ weights` (the first coefficients; the others at zero) with
    `covariance`. `variance` is that of ratings; `spread` the variance of a rating around its mean, at evenly spaced
    `means`. `effect_chances`, where noisy ratings were not bought, are what the sums say about the variance of people's
    own effect: logarithms of variances, and of their weights.
    """

    widths: Widths
    item_covariance: Singles
    weights: Floats
    covariance: Floats
    variance: float
    means: Floats
    spread: Floats
    effect_chances: tuple[Floats, Floats] | None = None


class NoisyRatings(NamedTuple):
    """What the noise left of every rating, in rating points: a reading that is right on average, and its precision."""

    values: Singles
    weights: Singles


@dataclass(frozen=True, eq=False, repr=False)  # a generated repr would show values
class OwnRows:
    """The raw ratings of some people, person by person: `items` are codes of `item_ids`. Secret."""

    user_ids: pa.Array
    item_ids: pa.Array
    indptr: Ints
    items: Codes
    values: Floats


class OpensInteractions(Protocol):
    """Raw interactions that can be opened for the people they are about; `dpsr.Interactions` can."""

    @property
    def mask(self) -> Mask: ...

    def own_rows(self, start: int, stop: int) -> OwnRows:
        """The rows of the people with codes `start` to `stop`; their values are weights."""


class OpensOwnRows(Protocol):
    """Raw ratings that can be opened for the people they are about; `dpsr.Ratings` can."""

    @property
    def mask(self) -> Mask: ...

    @property
    def scale(self) -> Scale: ...

    def own_rows(self, start: int, stop: int) -> OwnRows:
        """The rows of the people with codes `start` to `stop`."""
