"""More learners that meet people who are not in their table: those whose items are vectors, and networks.

    constant                nothing to fold in
    paper-mf                P_u = mean of the table's users + ridge of what is left on Q; the ridge is the one that
                            predicts held-back ratings of the table best, since the paper's training has none
    svd++                   its own steps for b_u and P_u, with c, Q and what items say by having been rated held fixed
    neural-cf               its own steps for a person's embedding, with items and perceptron held fixed
    implicit-...            x_u = (Q'Q + Q_u' (C_u - 1) Q_u + l)^-1 Q_u' C_u 1 (Hu et al. 2008), for lists

In every case items stay what the table taught, and only people's own ratings speak for them. **Not private.**
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpsr.arrays import Floats
from dpsr.evaluate.baselines import MF, Constant, SVDpp
from dpsr.evaluate.baselines import svdpp as plus
from dpsr.evaluate.baselines.als import solve_rows
from dpsr.evaluate.baselines.base import Clipped, Fitted, Linear, hold_out
from dpsr.evaluate.baselines.factorisation import LARGE_BATCH
from dpsr.evaluate.downstream.fold_in import FOLDED, LearnedItems, descend
from dpsr.evaluate.downstream.learners import (
    LEARNERS,
    RatingTable,
    confidence_of_heights,
    confidence_of_liked,
    neural_cf,
)
from dpsr.evaluate.metrics.ranking import Predictor
from dpsr.types import Mask

RIDGES = (0.03, 0.1, 0.3, 1.0, 3.0)
"""Per rating, that may be chosen for vectors whose training had none."""

IMPLICIT_RIDGE = 0.01
"""implicit's default."""


@dataclass(frozen=True, eq=False)
class ConstantItems:
    """One number."""

    fitted: Constant

    def fold_in(self, own: RatingTable) -> Predictor:
        """The same number."""
        inner, m = self.fitted.fitted_, own.mask.n_users
        bias, factors = np.zeros(m), np.zeros((m, inner.item_factors.shape[1]))
        seen = np.ones(m, dtype=np.bool_)
        return Clipped(replace(inner, user_bias=bias, user_factors=factors, user_seen=seen), own.scale)


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
        seen = np.ones(mask.n_users, dtype=np.bool_)
        bias = np.zeros(mask.n_users)
        return replace(self.fitted, user_bias=bias, user_factors=factors + self.middle, user_seen=seen)


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
        everyone, bias = np.ones(mask.n_users, dtype=np.bool_), np.zeros(mask.n_users)
        return Clipped(replace(self.fitted, user_bias=bias, user_factors=factors, user_seen=everyone), own.scale)


def learn_constant(table: RatingTable, _: int) -> ConstantItems:
    """The mean."""
    return ConstantItems(Constant().fit(table.mask, table.values, table.scale))


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
        predictor = LEARNERS[name](table, seed)
        assert isinstance(predictor, Clipped)
        assert isinstance(predictor.inner, Fitted)
        return ConfidenceItems(predictor.inner, confidence)

    return learn


ALL_FOLDED: dict[str, Callable[[RatingTable, int], LearnedItems]] = {
    "constant": learn_constant,
    **FOLDED,
    "svd++": learn_svdpp,
    "paper-mf": learn_papers_mf,
    "neural-cf": learn_neural_cf,
    "implicit-confidence": _learn_implicit("implicit-confidence", confidence_of_heights),
    "implicit-liked": _learn_implicit("implicit-liked", confidence_of_liked),
}
"""Every learner of the benchmark, and its models without privacy that learn from ratings."""
