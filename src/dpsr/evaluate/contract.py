"""What a method of the comparison is, what it protects, and the receipt it hands over.

A `Method` is an entry of the registry: what it protects and how it is priced are known before anything is run. It
builds a `Recommender`, with its whole budget, which is fitted on training ratings alone and asked for ratings of coded
users and items. After `fit` its `protection` says what it protects: the unit, the price and what it takes for public.
A price is never copied from the request: it is composed from the receipts of the noise that was really drawn.

**Joint DP** (`JOINT` in a note): what is shown to everybody else is private, while the predictions shown to a user are
computed from the shared part and from that user's own raw ratings (Kearns et al. 2014). It is a weaker promise than a
release that anyone may read.

Two streams of chance: `noise_seed` for the noise, `learner_seed` for starts and held-back parts of what learns from
noisy or raw ratings. Both are seeds, so **nothing here is private**.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from math import inf, isfinite
from typing import Generic, Literal, Protocol, Self, TypeVar, runtime_checkable

import numpy as np

from dpsr.arrays import Floats, Ints
from dpsr.engine.raw import RawRatings
from dpsr.errors import PrivacyError
from dpsr.evaluate.metrics.ranking import Predictor
from dpsr.types import Scale

Unit = Literal["rating value", "rating (add/remove)", "user", "none"]
"""What neighbouring tables differ in: the value of a rating, its presence, a whole user; or nothing is promised."""

UNITS: tuple[Unit, ...] = ("rating value", "rating (add/remove)", "user", "none")
"""In the order in which tables show them. An epsilon of one unit says nothing about another."""

OUR_UNIT: Unit = "rating value"

Price = Literal["pure", "with delta", "not kept", "none"]
"""epsilon alone; epsilon and delta; more than the epsilon asked for; no promise."""

MASK = "users, items, who rated what, counts, scale"
"""What is public when the value of a rating is protected."""
CATALOGUE = "user ids, item ids, scale"
"""What is public when the presence of a rating, or of a whole user, is protected."""

SCALE_ALONE = "scale"
"""What is public where our own pipeline protects people and no list of items was declared."""

ITEMS_AND_SCALE = "item ids, scale"
"""The same where it was."""

SEEDED = "seeded noise"
FLOATING = "seeded floating-point noise"
JOINT = "joint DP: a user's own predictions use that user's own raw ratings"


@dataclass(frozen=True)
class Protection:
    """What one fitted method protects. `epsilon` is exact or accounted, infinite where there is no promise.

    `note` tells choices made kindly to the method, floating-point noise and joint DP.
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
class Recommender(Predictor, Protocol):
    """A method that was built; `protection` exists after `fit`."""

    protection: Protection

    def fit(self, ratings: RawRatings, /) -> Self:
        """Learn from training ratings alone."""


R = TypeVar("R")


@dataclass(frozen=True)
class Method(Generic[R]):
    """An entry of a registry: of recommenders of ratings, or of lists (`evaluate.likes`).

    `unit` and `price` are what its protection will say; `budgeted` whether it takes an epsilon, and so is run once per
    epsilon, or once; `joint` whether it gives joint DP; `variant_of` names the method of which it is an ablation.
    `build(epsilon, delta, noise_seed, learner_seed)` makes a recommender; epsilon is None without a budget.
    """

    name: str
    build: Callable[[float | None, float, int, int], R]
    unit: Unit = "none"
    price: Price = "none"
    budgeted: bool = True
    joint: bool = False
    variant_of: str | None = None


class FittedRecommender(ABC):
    """What all methods here share: fit once, then predict inside the scale and rank by unclipped scores."""

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
class WithoutPrivacy(FittedRecommender):
    """A model fitted on raw ratings by `learn(ratings, learner_seed)`."""

    learn: Callable[[RawRatings, int], Predictor]
    learner_seed: int = 0

    def _learn(self, ratings: RawRatings) -> tuple[Predictor, Protection]:
        return self.learn(ratings, self.learner_seed), NO_PROTECTION


@dataclass
class Budgeted:
    """A budget and two seeds, which make the experiment repeatable, and so nothing here is for release."""

    epsilon: float
    delta: float = 1e-5
    noise_seed: int = 0
    learner_seed: int = 0

    def _check_budget(self) -> None:
        if not (isfinite(self.epsilon) and self.epsilon > 0 and 0 < self.delta < 0.1):
            raise PrivacyError(
                f"a private method needs a finite epsilon above 0 and a delta between 0 and 0.1, found "
                f"{self.epsilon!r} and {self.delta!r}. A method without noise is another method: `als`, for example."
            )

    def _noise(self) -> np.random.Generator:
        """The stream of the noise."""
        return np.random.default_rng([self.noise_seed, 0])

    def _chance(self, step: int = 0) -> np.random.Generator:
        """Streams for starts and samples, one per step: what they draw never moves the noise, nor each other."""
        return np.random.default_rng([self.noise_seed, 1, step])


@dataclass
class PrivateMethod(Budgeted, FittedRecommender):
    """A method with a budget."""

    def fit(self, ratings: RawRatings) -> Self:
        """Learn from training ratings alone, within the budget."""
        self._check_budget()
        return super().fit(ratings)
