"""The contract every method of the comparison keeps, and the receipt it hands over.

A peer is built with its whole budget, fitted on training ratings alone and asked for ratings of coded users and items.
After `fit` its `protection` says what the method protects: the unit, the price and what it takes for public. A price is
never copied from the request: it is composed from the receipts of the noise that was really drawn.

**Joint DP** (`JOINT` in a note): what is shown to everybody else is private, while the predictions shown to a user are
computed from the shared part and from that user's own raw ratings (Kearns et al. 2014). It is a weaker promise than a
release that anyone may read.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import inf, isfinite
from typing import Literal, Protocol, Self, runtime_checkable

import numpy as np

from dpsr.arrays import Floats, Ints
from dpsr.errors import PrivacyError
from dpsr.evaluate.ranking import Predictor
from dpsr.types import Scale
from dpsr.types.raw import RawRatings

Unit = Literal["rating value", "rating (add/remove)", "user", "none"]

MASK = "users, items, who rated what, counts, scale"
"""What is public when the value of a rating is protected."""
CATALOGUE = "user ids, item ids, scale"
"""What is public when the presence of a rating, or of a whole user, is protected."""

SEEDED = "seeded noise"
FLOATING = "seeded floating-point noise"
JOINT = "joint DP: a user's own predictions use that user's own raw ratings"


@dataclass(frozen=True)
class Protection:
    """What one method protects. `epsilon` is exact or accounted, infinite where there is no promise.

    `unit` is "rating value", "rating (add/remove)", "user" or "none". `note` tells choices made kindly to the peer,
    floating-point noise and joint DP.
    """

    unit: Unit
    epsilon: float
    delta: float
    public: str
    note: str = ""

    @property
    def joint(self) -> bool:
        """Whether a user's own predictions are outside the promise to that user."""
        return JOINT in self.note


NO_PROTECTION = Protection("none", inf, 0.0, "everything")


@runtime_checkable
class Peer(Predictor, Protocol):
    """A method of the comparison; `protection` exists after `fit`."""

    name: str
    private: bool
    protection: Protection

    def fit(self, ratings: RawRatings, /) -> Self:
        """Learn from training ratings alone."""


class PeerModel(ABC):
    """What all peers share: fit once, then predict inside the scale and rank by unclipped scores."""

    name: str
    private: bool
    protection: Protection
    predictor_: Predictor
    scale_: Scale

    def fit(self, ratings: RawRatings) -> Self:
        """Learn from training ratings alone."""
        self.scale_ = ratings.scale
        self.predictor_, self.protection = self._learn(ratings)
        return self

    def predict(self, users: Ints, items: Ints) -> Floats:
        """One rating inside the scale for each pair of codes; -1 is a stranger."""
        return self.scale_.clip(self.predictor_.predict(np.asarray(users), np.asarray(items)))

    def scores(self, user: int) -> Floats:
        """One unclipped score per item, for ranking."""
        return self.predictor_.scores(user)

    @abstractmethod
    def _learn(self, ratings: RawRatings) -> tuple[Predictor, Protection]: ...


@dataclass
class PrivatePeer(PeerModel):
    """A peer with a budget. `random_state` makes the experiment repeatable, and so nothing here is for release."""

    epsilon: float
    delta: float = 1e-5
    random_state: int = 0

    private = True

    def fit(self, ratings: RawRatings) -> Self:
        """Learn from training ratings alone, within the budget."""
        if not (isfinite(self.epsilon) and self.epsilon > 0 and 0 < self.delta < 0.1):
            raise PrivacyError(
                f"a private method needs a finite epsilon above 0 and a delta between 0 and 0.1, found "
                f"{self.epsilon!r} and {self.delta!r}. A method without noise is another method: `als`, for example."
            )
        return super().fit(ratings)

    def _noise(self) -> np.random.Generator:
        """The stream of the noise."""
        return np.random.default_rng([self.random_state, 0])

    def _chance(self, step: int = 0) -> np.random.Generator:
        """Streams for starts and samples, one per step: what they draw never moves the noise, nor each other."""
        return np.random.default_rng([self.random_state, 1, step])
