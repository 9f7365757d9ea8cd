"""What a method of lists is: fitted on interactions, it scores all items for anybody who shows some, by a list for all,
by weights from item to item or by factors.

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
from dpsr.evaluate.peers.least_squares import normal_equations, ridge_solve
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


@dataclass(frozen=True, eq=False)
class Factors:
    """Item vectors, and how people's own vectors follow from their items alone (Hu, Koren and Volinsky 2008).

    p_u = argmin  confidence sum_{j in u} (1 - p.v_j)^2 + unseen sum_{j not in u} (p.v_j)^2 + ridge |p|^2
        = (unseen V'V + (confidence - unseen) sum_{j in u} v v' + ridge)^-1 confidence sum_{j in u} v
    """

    items: Floats
    confidence: float
    unseen: float
    ridge: float

    def own_vectors(self, baskets: Baskets) -> Floats:
        """p_u of everybody."""
        indptr, columns = baskets.indptr.astype(np.int64), baskets.indices.astype(np.int32)
        ones = np.ones(len(columns))
        gram, right = normal_equations(indptr, columns, ones, np.ascontiguousarray(self.items))
        unseen = self.unseen * (self.items.T @ self.items)
        return ridge_solve(unseen + (self.confidence - self.unseen) * gram, self.confidence * right, self.ridge)

    def scores_of(self, baskets: Baskets) -> Floats:
        """One row of scores for each person."""
        return self.own_vectors(baskets) @ self.items.T
