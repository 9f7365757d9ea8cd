"""Learners trained on one table, tested on people who are not in it: their own ratings meet what was learned of items.

A learner keeps its item side and the strengths it chose on its own table. Somebody new then gets what the learner would
have given them, with the items held fixed:

    constant        nothing to fold in
    bias            b_u = sum_j (r_uj - mean - c_j) / (n_u + l_u)
    als             the same, and P_u = ridge of what is left on Q
    item-knn        the same, and residuals at the neighbours of an item
    surprise-svd    its own steps for b_u and P_u
    paper-mf        P_u = mean of the table's users + ridge of what is left on Q; the ridge is the one that predicts
                    held-back ratings of the table best, since the paper's training has none
    svd++           its own steps for b_u and P_u, beside what items say by having been rated
    neural-cf       its own steps for a person's embedding
    implicit-...    x_u = (Q'Q + Q_u' (C_u - 1) Q_u + l)^-1 Q_u' C_u 1 (Hu et al. 2008), for lists

So any table can be asked what it is worth: raw rows, a release's table, people who do not exist. Reads raw ratings of
the people it is tested on: **not private**.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from dpsr.arrays import Bools, Codes, Floats, Ints
from dpsr.evaluate.baselines import ALS, MF, Bias, Constant, ItemKNN, SVDpp
from dpsr.evaluate.baselines import svdpp as plus
from dpsr.evaluate.baselines.als import solve_rows
from dpsr.evaluate.baselines.base import Clipped, Fitted, Linear, hold_out
from dpsr.evaluate.baselines.factorisation import LARGE_BATCH
from dpsr.evaluate.baselines.item_knn import Neighbourhood
from dpsr.evaluate.downstream.learners import (
    LEARNERS,
    RatingTable,
    confidence_of_heights,
    confidence_of_liked,
    neural_cf,
    surprise_svd,
)
from dpsr.evaluate.metrics.ranking import Predictor
from dpsr.linalg.compiled import kernel
from dpsr.types import Mask

RIDGES = (0.03, 0.1, 0.3, 1.0, 3.0)
"""Per rating, that may be chosen for vectors whose training had none."""

IMPLICIT_RIDGE = 0.01
"""implicit's default."""

EPOCHS, RATE, RIDGE = 20, 0.005, 0.02
"""Surprise's defaults."""


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
        return _with_people(self.fitted, mask, bias=bias, seen=mask.user_counts > 0)


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
        folded = _with_people(self.fitted, mask, bias=bias, factors=factors, seen=mask.user_counts > 0)
        return Clipped(folded, own.scale)


@dataclass(frozen=True, eq=False)
class ConstantItems:
    """One number."""

    fitted: Fitted

    def fold_in(self, own: RatingTable) -> Predictor:
        """The same number."""
        return Clipped(_with_people(self.fitted, own.mask), own.scale)


@dataclass(frozen=True, eq=False)
class VectorItems:
    """Item vectors, the table's mean user, and a ridge per rating."""

    fitted: Fitted
    middle: Floats
    ridge: float

    def fold_in(self, own: RatingTable) -> Predictor:
        """The mean user, and a ridge on what that leaves."""
        return Clipped(self.folded(own.mask, own.values), own.scale)

    def folded(self, mask: Mask, values: Floats) -> Fitted:
        """The same model with these people in it."""
        Q = self.fitted.item_factors
        left, factors = values - self.fitted.offset - Q[mask.items] @ self.middle, np.zeros((mask.n_users, Q.shape[1]))
        solve_rows(mask.indptr, mask.items, left, Q, self.ridge, factors)
        return _with_people(self.fitted, mask, factors=factors + self.middle)


@dataclass(frozen=True, eq=False)
class ImplicitPartItems:
    """SVD++: everything about items, and how long and how strongly it was trained."""

    parts: plus.Parts
    epochs: int
    penalty: float

    def fold_in(self, own: RatingTable) -> Predictor:
        """Own bias and factors beside what the person's items say by having been rated."""
        mask, parts = own.mask, self.parts
        said = np.zeros((mask.n_users, parts.Q.shape[1]))
        np.add.at(said, mask.users, parts.Y[mask.items])
        said /= np.sqrt(np.maximum(mask.user_counts, 1))[:, None]
        y = (own.values - own.scale.midpoint) * (plus.WIDTH / own.scale.width)
        left = y - parts.mean - parts.c[mask.items] - np.einsum("rd,rd->r", said[mask.users], parts.Q[mask.items])
        b, P = np.zeros(mask.n_users), np.zeros_like(said)
        descend(mask.indptr, mask.items, left, parts.Q, self.epochs, plus.RATE, self.penalty, b, P)
        users = np.column_stack([b, np.ones(len(b)), P + said])
        items = np.column_stack([np.ones(len(parts.c)), parts.c, parts.Q])
        half = 2 / plus.WIDTH
        return Clipped(Linear(own.scale, half * parts.mean, half * users, items), own.scale)


@dataclass(frozen=True, eq=False)
class NetworkItems:
    """A trained network."""

    trained: Any
    seed: int

    def fold_in(self, own: RatingTable) -> Predictor:
        """Own embeddings."""
        from dpsr.evaluate.downstream.neural import fold_in

        return fold_in(self.trained, own, self.seed)


@dataclass(frozen=True, eq=False)
class ConfidenceItems:
    """Item vectors for lists, and what a rating counts."""

    fitted: Fitted
    confidence: Callable[[RatingTable], Floats]

    def fold_in(self, own: RatingTable) -> Predictor:
        """Weighted least squares with everything not met counting a little against."""
        Q, mask, confidence = self.fitted.item_factors, own.mask, self.confidence(own)
        common = Q.T @ Q + IMPLICIT_RIDGE * np.eye(Q.shape[1])
        factors = np.zeros((mask.n_users, Q.shape[1]))
        for u in np.flatnonzero(mask.user_counts):
            rows = slice(int(mask.indptr[u]), int(mask.indptr[u + 1]))
            c, q = confidence[rows], Q[mask.items[rows]]
            q, c = q[c > 0], c[c > 0]
            factors[u] = np.linalg.solve(common + (q.T * (c - 1)) @ q, q.T @ c)
        return Clipped(_with_people(self.fitted, mask, factors=factors), own.scale)


def _with_people(
    fitted: Fitted, mask: Mask, *, bias: Floats | None = None, factors: Floats | None = None, seen: Bools | None = None
) -> Fitted:
    """The same items with the people of a mask: zeros where nothing is said of them, and all of them known."""
    m, rank = mask.n_users, fitted.item_factors.shape[1]
    return replace(
        fitted,
        user_bias=np.zeros(m) if bias is None else bias,
        user_factors=np.zeros((m, rank)) if factors is None else factors,
        user_seen=np.ones(m, dtype=np.bool_) if seen is None else seen,
    )


@kernel
def descend(
    indptr: Ints,
    items: Codes,
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


def _unclipped(predictor: Predictor) -> Fitted:
    """The factors behind a learner's predictions."""
    assert isinstance(predictor, Clipped)
    assert isinstance(predictor.inner, Fitted)
    return predictor.inner


def learn_surprise_svd(table: RatingTable, seed: int) -> DescentItems:
    """Surprise's SVD with its defaults; people who come later start from nothing."""
    return DescentItems(_unclipped(surprise_svd(table, seed)))


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


def learn_constant(table: RatingTable, _: int) -> ConstantItems:
    """The mean."""
    return ConstantItems(Constant().fit(table.mask, table.values, table.scale).fitted_)


def learn_papers_mf(table: RatingTable, seed: int) -> VectorItems:
    """The paper's factorisation, and a ridge for people to come."""
    fitted = MF(batch_size=LARGE_BATCH, random_state=seed).fit(table.mask, table.values, table.scale).fitted_
    middle = fitted.user_factors[fitted.user_seen].mean(axis=0)
    held = hold_out(table.mask, 0.1, seed)
    rest, users, items = table.mask.select(~held), table.mask.users[held], table.mask.items[held]

    def loss(ridge: float) -> float:
        model = VectorItems(fitted, middle, ridge).folded(rest, table.values[~held])
        return float(np.mean((table.values[held] - model.predict(users, items)) ** 2)) if held.any() else ridge

    return VectorItems(fitted, middle, min(RIDGES, key=loss))


def learn_svdpp(table: RatingTable, seed: int) -> ImplicitPartItems:
    """SVD++ with penalty and epochs chosen on the table."""
    model = SVDpp(random_state=seed)
    model.fit(table.mask, table.values, table.scale)
    penalty, epochs = model.chosen_
    return ImplicitPartItems(model.parts_, epochs, penalty)


def learn_neural_cf(table: RatingTable, seed: int) -> NetworkItems:
    """The network of the benchmark."""
    return NetworkItems(neural_cf(table, seed), seed)


def _learn_implicit(name: str, confidence: Callable[[RatingTable], Floats]) -> Callable[..., ConfidenceItems]:
    def learn(table: RatingTable, seed: int) -> ConfidenceItems:
        return ConfidenceItems(_unclipped(LEARNERS[name](table, seed)), confidence)

    return learn


FOLDED: dict[str, Callable[[RatingTable, int], LearnedItems]] = {
    "constant": learn_constant,
    "bias": learn_bias,
    "als": learn_als,
    "item-knn": learn_item_knn,
    "surprise-svd": learn_surprise_svd,
    "svd++": learn_svdpp,
    "paper-mf": learn_papers_mf,
    "neural-cf": learn_neural_cf,
    "implicit-confidence": _learn_implicit("implicit-confidence", confidence_of_heights),
    "implicit-liked": _learn_implicit("implicit-liked", confidence_of_liked),
}
"""Every learner of the benchmark, and its models without privacy that learn from ratings."""
