"""What a method of lists is: fitted on interactions, it scores all items for anybody who shows some.

Whoever is scored is folded in: known people show what they did in training, held-out people what is not hidden. So one
function serves both protocols, and nothing about a person is stored. Methods with a budget give joint DP: everybody
else sees (epsilon, delta)-private item sides, a person's list is made of that and of the person's own items.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, Self, TypeAlias

import numpy as np
import scipy.sparse as sp

from dpsr.arrays import Floats
from dpsr.data import Interactions
from dpsr.evaluate.contract import NO_PROTECTION, Budgeted, Protection
from dpsr.types import Mask

Baskets: TypeAlias = sp.csr_matrix
"""What some people show: one row each, one where the person met the item."""

PEOPLE_AT_ONCE = 512
"""Rows of scores that are held at a time."""


class ListModel(Protocol):
    """What makes lists: more is better; what people have already is left to the caller."""

    def scores_of(self, baskets: Baskets) -> Floats:
        """One row of scores for each person."""


def baskets_of(mask: Mask) -> Baskets:
    """Who met what, as a matrix of ones."""
    return sp.csr_matrix((np.ones(mask.n_ratings), mask.items, mask.indptr), shape=mask.shape)


class ListMethod(ABC):
    """Fit once, then score anybody."""

    protection: Protection
    model_: ListModel

    def fit(self, likes: Interactions) -> Self:
        """Learn from training interactions alone."""
        self.model_, self.protection = self._learn(likes)
        return self

    def scores_of(self, baskets: Baskets) -> Floats:
        """One row of scores for each person."""
        return self.model_.scores_of(baskets)

    @abstractmethod
    def _learn(self, likes: Interactions) -> tuple[ListModel, Protection]: ...


@dataclass
class ListsWithoutPrivacy(ListMethod):
    """A model fitted on raw interactions by `learn(likes, learner_seed)`."""

    learn: Callable[[Interactions, int], ListModel]
    learner_seed: int = 0

    def _learn(self, likes: Interactions) -> tuple[ListModel, Protection]:
        return self.learn(likes, self.learner_seed), NO_PROTECTION


@dataclass
class PrivateLists(Budgeted, ListMethod):
    """A method with a budget."""

    def fit(self, likes: Interactions) -> Self:
        """Learn from training interactions alone, within the budget."""
        self._check_budget()
        return super().fit(likes)


@dataclass(frozen=True, eq=False)
class SameForAll:
    """One list for everybody."""

    scores: Floats

    def scores_of(self, baskets: Baskets) -> Floats:
        """The same row for each person."""
        return np.tile(self.scores, (baskets.shape[0], 1))


@dataclass(frozen=True, eq=False)
class ItemToItem:
    """score_j = sum over the person's items of weights_ij, plus a part that is the same for all."""

    weights: Floats | sp.csr_matrix
    base: Floats | float = 0.0

    def scores_of(self, baskets: Baskets) -> Floats:
        """One row of scores for each person."""
        product = baskets @ self.weights
        return np.asarray(product.toarray() if sp.issparse(product) else product) + self.base
