"""The contract all baselines keep, and the one form all of them take once fitted.

    prediction(u, j) = clip( offset + b_u + c_j + P_u . Q_j )     users and items with training ratings
                     = clip( fallback + b_u + c_j )               when either had none (its own terms are zero)

Whether a fitted baseline is private depends only on the values it was fitted on.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from dpsr.arrays import AnyInts, Floats
from dpsr.errors import ParameterError
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
        return self.fitted_.predict(np.array([user]), np.arange(len(self.fitted_.item_bias)))

    @abstractmethod
    def _learn(self, mask: Mask, values: Floats) -> Fitted: ...


def hold_out(mask: Mask, share: float, seed: int) -> npt.NDArray[np.bool_]:
    """The ratings kept back for choosing hyper-parameters: a random `share`, but never all of them."""
    held = np.random.default_rng(seed).random(mask.n_ratings) < share
    if held.all():
        held[0] = False
    return held
