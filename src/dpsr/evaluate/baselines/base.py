"""What models without noise of their own share: a contract, and the forms they take once fitted.

`Fitted`, of the baselines proper:

    prediction(u, j) = clip( offset + b_u + c_j + P_u . Q_j )     users and items with training ratings
                     = clip( fallback + b_u + c_j )               when either had none (its own terms are zero)

`Linear`, in which most private methods of the literature work too, with ratings put into [-1, 1]:

    y = (r - midpoint) / (width / 2),    prediction of y_uj = mean + a_u . b_j

where a column of ones in a or b makes the other side's column a bias. Whether a fitted model is private depends only
on the values it was fitted on.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from dpsr.arrays import AnyInts, Codes, Floats, Ints
from dpsr.errors import ParameterError
from dpsr.evaluate.metrics.ranking import Predictor
from dpsr.types import Mask, Scale


@dataclass(frozen=True, eq=False)
class Fitted:
    """Biases and factors, zero in the rows of users and items that had no rating."""

    offset: float
    fallback: float
    user_bias: Floats
    item_bias: Floats
    user_factors: Floats
    item_factors: Floats
    user_seen: npt.NDArray[np.bool_]
    item_seen: npt.NDArray[np.bool_]

    def predict(self, users: AnyInts, items: AnyInts) -> Floats:
        """Unclipped predictions; a code of -1 is a stranger."""
        u, j = np.broadcast_arrays(users, items)
        know_u, know_j = (u >= 0) & self.user_seen[u], (j >= 0) & self.item_seen[j]
        product = np.einsum("rd,rd->r", self.user_factors[u], self.item_factors[j])
        base = np.where(know_u & know_j, self.offset + product, self.fallback)
        return base + np.where(know_u, self.user_bias[u], 0) + np.where(know_j, self.item_bias[j], 0)

    def scores(self, user: int) -> Floats:
        """Unclipped scores of every item, for ranking."""
        return self.predict(np.array([user]), np.arange(len(self.item_bias)))


@dataclass(frozen=True, eq=False)
class Linear:
    """mean + a_u . b_j in [-1, 1], put back on the scale. A stranger has a row of zeros."""

    scale: Scale
    mean: float
    users: Floats
    items: Floats

    def predict(self, users: Ints, items: Ints) -> Floats:
        """Unclipped ratings for coded users and items; -1 is a stranger."""
        u, j = np.broadcast_arrays(users, items)
        product = np.einsum("rd,rd->r", self.users[u], self.items[j])
        return self._rating(np.where((u >= 0) & (j >= 0), product, 0.0))

    def scores(self, user: int) -> Floats:
        """One unclipped rating per item."""
        return self._rating(self.items @ self.users[user] if user >= 0 else np.zeros(len(self.items)))

    def _rating(self, y: Floats) -> Floats:
        return self.scale.midpoint + self.scale.width / 2 * (self.mean + y)


@dataclass(frozen=True, eq=False)
class Clipped:
    """A predictor kept inside the scale; its scores stay as they are."""

    inner: Predictor
    scale: Scale

    def predict(self, users: Ints, items: Ints) -> Floats:
        """Inside the scale."""
        return self.scale.clip(self.inner.predict(np.asarray(users), np.asarray(items)))

    def scores(self, user: int) -> Floats:
        """As the predictor has them."""
        return self.inner.scores(user)


class Baseline(ABC):
    """Fit on a mask and one value per rating; predict inside the scale."""

    fitted_: Fitted
    scale_: Scale

    def fit(self, mask: Mask, values: Floats, scale: Scale) -> Self:
        """Learn from `values`, in the order of the mask. They need not lie on the scale (Gaussian noise does not)."""
        if len(values) != mask.n_ratings or not len(values) or not np.isfinite(values).all():
            raise ParameterError(
                f"a baseline needs one finite value for each of at least one rating, found {len(values)} values for "
                f"{mask.n_ratings} ratings. Pass `ratings.mask` and `ratings.values` of the same table."
            )
        self.scale_ = scale
        self.fitted_ = self._learn(mask, np.asarray(values, dtype=np.float64))
        return self

    def predict(self, users: AnyInts, items: AnyInts) -> Floats:
        """Predictions inside the scale for coded users and items; a code of -1 is a stranger."""
        return self.scale_.clip(self.fitted_.predict(users, items))

    def scores(self, user: int) -> Floats:
        """Unclipped scores of every item, for ranking."""
        return self.fitted_.scores(user)

    @abstractmethod
    def _learn(self, mask: Mask, values: Floats) -> Fitted: ...


def hold_out(mask: Mask, share: float, seed: int) -> npt.NDArray[np.bool_]:
    """The ratings kept back for choosing hyper-parameters: a random `share`, but never all of them."""
    held = np.random.default_rng(seed).random(mask.n_ratings) < share
    if held.all():
        held[0] = False
    return held


@dataclass(frozen=True, eq=False)
class ItemOrder:
    """Who rated what item by item: pointers, users, and where each rating stands user by user."""

    ptr: Ints
    users: Codes
    places: Ints


def by_items(mask: Mask) -> ItemOrder:
    """The ratings of a mask item by item, users ascending within an item."""
    places = np.argsort(mask.items, kind="stable")
    return ItemOrder(np.concatenate([[0], np.cumsum(mask.item_counts)]), mask.users[places], places)
