"""Learners trained on one table, tested on people who are not in it: their own ratings meet what was learned of items.

A learner keeps its item side (biases, factors, neighbours) and the strengths it chose on its own table. Somebody new
then gets what the learner would have given them, with the items held fixed:

    b_u = sum_j (r_uj - mean - c_j) / (n_u + l_u),      P_u = ridge of what is left on Q,      neighbours' residuals.

So any table can be asked what it is worth: raw rows, a release's table, people who do not exist. Reads raw ratings of
the people it is tested on: **not private**.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import numpy.typing as npt

from dpsr.arrays import Floats, Ints
from dpsr.evaluate.baselines import ALS, Bias, ItemKNN
from dpsr.evaluate.baselines.als import solve_rows
from dpsr.evaluate.baselines.base import Clipped, Fitted
from dpsr.evaluate.baselines.item_knn import Neighbourhood
from dpsr.evaluate.downstream.learners import RatingTable, surprise_svd
from dpsr.evaluate.metrics.ranking import Predictor
from dpsr.linalg.compiled import kernel
from dpsr.types import Mask


class LearnedItems(Protocol):
    """What a learner knows about items."""

    def fold_in(self, own: RatingTable) -> Predictor:
        """Predictions for people from their own ratings, whose items have the codes of the table learned from."""


@dataclass(frozen=True, eq=False)
class BiasItems:
    """Mean and item biases, and the strength with which a person's own bias is shrunk."""

    fitted: Fitted
    user_strength: float

    def fold_in(self, own: RatingTable) -> Predictor:
        """Own biases at fixed item biases."""
        return Clipped(self.folded(own.mask, own.values), own.scale)

    def folded(self, mask: Mask, values: Floats) -> Fitted:
        """The same model with these people in it."""
        left = values - self.fitted.offset - self.fitted.item_bias[mask.items]
        bias = np.bincount(mask.users, left, mask.n_users) / (mask.user_counts + self.user_strength)
        rank = self.fitted.item_factors.shape[1]
        factors = np.zeros((mask.n_users, rank))
        return replace(self.fitted, user_bias=bias, user_factors=factors, user_seen=mask.user_counts > 0)


@dataclass(frozen=True, eq=False)
class FactorItems:
    """Biases and item factors with the ridge per rating that people's factors have."""

    bias: BiasItems
    ridge: float

    def fold_in(self, own: RatingTable) -> Predictor:
        """Own biases, then own factors on what they leave."""
        folded = self.bias.folded(own.mask, own.values)
        left = own.values - folded.predict(own.mask.users, own.mask.items)
        factors = np.zeros_like(folded.user_factors)
        solve_rows(own.mask.indptr, own.mask.items, left, folded.item_factors, self.ridge, factors)
        return Clipped(replace(folded, user_factors=factors), own.scale)


@dataclass(frozen=True, eq=False)
class NeighbourItems:
    """Biases, and for every item its neighbours with weights."""

    bias: BiasItems
    learned: Neighbourhood

    def fold_in(self, own: RatingTable) -> Predictor:
        """Residuals of people's own ratings at the neighbours of an item."""
        base = self.bias.folded(own.mask, own.values)
        left = own.values - base.predict(own.mask.users, own.mask.items)
        model = replace(self.learned, base=base.predict, mask=own.mask, residual=left)
        return Clipped(model, own.scale)


@dataclass(frozen=True, eq=False)
class DescentItems:
    """Biases and factors of a learner that goes down the gradient rating by rating, a few times and slowly."""

    fitted: Fitted

    def fold_in(self, own: RatingTable) -> Predictor:
        """The same steps for the person's own side, with the items held fixed."""
        mask, rank = own.mask, self.fitted.item_factors.shape[1]
        bias, factors = np.zeros(mask.n_users), np.zeros((mask.n_users, rank))
        left = own.values - self.fitted.offset - self.fitted.item_bias[mask.items]
        descend(mask.indptr, mask.items, left, self.fitted.item_factors, EPOCHS, RATE, RIDGE, bias, factors)
        seen = mask.user_counts > 0
        return Clipped(replace(self.fitted, user_bias=bias, user_factors=factors, user_seen=seen), own.scale)


EPOCHS, RATE, RIDGE = 20, 0.005, 0.02
"""Surprise's defaults."""


@kernel
def descend(
    indptr: Ints,
    items: npt.NDArray[np.int32],
    left: Floats,
    Q: Floats,
    epochs: int,
    rate: float,
    ridge: float,
    bias: Floats,
    P: Floats,
) -> None:
    """Own bias and factors, rating by rating, with Q held fixed; both are changed in place."""
    for u in range(len(indptr) - 1):
        for _ in range(epochs):
            for t in range(indptr[u], indptr[u + 1]):
                q = Q[items[t]]
                e = left[t] - bias[u] - (P[u] * q).sum()
                bias[u] += rate * (e - ridge * bias[u])
                P[u] += rate * (e * q - ridge * P[u])


def learn_surprise_svd(table: RatingTable, seed: int) -> DescentItems:
    """Surprise's SVD with its defaults; people who come later start from nothing."""
    predictor = surprise_svd(table, seed)
    assert isinstance(predictor, Clipped)
    assert isinstance(predictor.inner, Fitted)
    return DescentItems(predictor.inner)


def learn_bias(table: RatingTable, seed: int) -> BiasItems:
    """Biases with strengths chosen on the table."""
    model = Bias(random_state=seed).fit(table.mask, table.values, table.scale)
    return BiasItems(model.fitted_, model.chosen_[0])


def learn_als(table: RatingTable, seed: int) -> FactorItems:
    """Biases and factors by alternating least squares, rank and ridge chosen on the table."""
    bias = learn_bias(table, seed)
    model = ALS(random_state=seed).fit(table.mask, table.values, table.scale)
    left = table.values - bias.fitted.predict(table.mask.users, table.mask.items)
    _, strength = model.chosen_
    return FactorItems(replace(bias, fitted=model.fitted_), max(strength * float(left.std()), 1e-9))


def learn_item_knn(table: RatingTable, seed: int) -> NeighbourItems:
    """Neighbours of items, with shrinkage and damping chosen on the table."""
    return NeighbourItems(
        learn_bias(table, seed), ItemKNN(random_state=seed).fit(table.mask, table.values, table.scale)
    )


FOLDED: dict[str, Callable[[RatingTable, int], LearnedItems]] = {
    "bias": learn_bias,
    "als": learn_als,
    "item-knn": learn_item_knn,
    "surprise-svd": learn_surprise_svd,
}
"""Learners that can serve people who are not in their table."""
