"""What a pipeline learned: two thin factors, and what to say about strangers.

    prediction(u, j) = clip( A_u . B_j )                 users and items that were in the table
                     = clip( value_uj )                  observed cells, where the method moves them off the factors
                     = item mean, user mean, overall     when the user, the item, or both are unknown

Biases are columns of the factors. Nothing here was computed from a raw rating.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from dpsr.arrays import AnyInts, Floats
from dpsr.types.coordinates import Census, Mask, Scale
from dpsr.types.personal import PersonalPrior

HARDLY = 1e-6
"""Below this the mask says an item is never met, and only the predicted rating decides."""


@dataclass(frozen=True, eq=False)
class Affinity:
    """How likely a user is to meet an item, users_u . items_j up to a factor: public, learned from the mask alone."""

    users: Floats
    items: Floats


@dataclass(frozen=True, eq=False)
class Model:
    """Predictions for every cell of an m x n matrix in O((m + n) d) numbers.

    `residual_variance` is how far, squared, the model believes a raw rating lies from its prediction; `user_mean` and
    `user_covariance` are what it expects of the factors of somebody new. `observed` (one
    value per rating of the mask, or None) overrides the factors on observed cells; the paper's Stage 3 ends that way
    when its last iterations are not followed by a projection. `personal` is what people's own ratings meet besides.
    """

    mask: Mask | Census
    scale: Scale
    user_factors: Floats
    item_factors: Floats
    user_means: Floats
    item_means: Floats
    overall: float
    residual_variance: float
    user_mean: Floats
    user_covariance: Floats
    observed: Floats | None = None
    affinity: Affinity | None = None
    personal: PersonalPrior | None = None

    @property
    def rank(self) -> int:
        return self.user_factors.shape[1]

    def predict(self, users: AnyInts, items: AnyInts) -> Floats:
        """Predictions for coded users and items; -1 stands for an unknown one."""
        u, j = np.broadcast_arrays(users, items)
        known_u, known_j = u >= 0, j >= 0
        raw = np.full(u.shape, self.overall)
        both = known_u & known_j
        raw[both] = np.einsum("rd,rd->r", self.user_factors[u[both]], self.item_factors[j[both]])
        if self.observed is not None:
            place = self._positions(u[both], j[both])
            raw[both] = np.where(place >= 0, self.observed[place], raw[both])
        raw[~known_u & known_j] = self.item_means[j[~known_u & known_j]]
        raw[known_u & ~known_j] = self.user_means[u[known_u & ~known_j]]
        return self.scale.clip(raw)

    def scores(self, user: int) -> Floats:
        """What to rank one coded user's items by (-1: a stranger)."""
        predicted = self.item_factors @ self.user_factors[user] if user >= 0 else self.item_means
        if self.affinity is None:
            return predicted
        reach = self.affinity.users[user] if user >= 0 else self.affinity.users.mean(axis=0)
        return self.liked(predicted, reach)

    def scores_of(self, users: AnyInts) -> Floats:
        """`scores` of a block of known users, one row each."""
        predicted = self.user_factors[users] @ self.item_factors.T
        return predicted if self.affinity is None else self.liked(predicted, self.affinity.users[users])

    def liked(self, predicted: Floats, reach: Floats) -> Floats:
        """Expected liked encounters, P(meets) P(likes), up to a factor: for somebody of affinity `reach`.

        By predicted rating alone, obscure items that hardly anybody meets would come first. Predictions are unclipped,
        since clipping would lose their order.
        """
        return predicted if self.affinity is None else self.weigh(predicted, reach @ self.affinity.items.T)

    def weigh(self, predicted: Floats, meets: Floats) -> Floats:
        """P(likes) from the prediction, times P(meets), which is never taken below `HARDLY`."""
        return np.maximum(meets, HARDLY) * ndtr((predicted - self.overall) / self.deviation)

    @property
    def deviation(self) -> float:
        """How far a raw rating lies from its prediction, as a standard deviation."""
        return float(np.sqrt(max(self.residual_variance, 1e-12)))

    @cached_property
    def _cells(self) -> npt.NDArray[np.int64]:
        assert isinstance(self.mask, Mask), "only a model with its mask overrides observed cells"
        return self.mask.users.astype(np.int64) * self.mask.n_items + self.mask.items

    def _positions(self, u: AnyInts, j: AnyInts) -> npt.NDArray[np.int64]:
        """Where each cell stands in the mask's order, -1 if it was not observed."""
        wanted = u.astype(np.int64) * self.mask.n_items + j
        place = np.searchsorted(self._cells, wanted)
        found = place < len(self._cells)
        found[found] = self._cells[place[found]] == wanted[found]
        return np.where(found, place, -1)


@dataclass(frozen=True, eq=False)
class PersonalModel(Model):
    """A model of people made from their own raw ratings: each row of users is for that person, and none is released."""
