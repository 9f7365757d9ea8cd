"""Somebody new: their own ratings meet the released item side, and nothing is stored.

A person's own ratings never leave that person when only their own recommendations are computed from them (joint
differential privacy), so they enter without noise. With a the guest's factors, B the items' and v the model's residual
variance,

    a ~ N(mean, C),   what the model expects of somebody new;    r_j = a . B_j + noise of variance v

and the posterior mean of a gives every prediction. Without ratings the guest is the average user.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpsr.arrays import Floats
from dpsr.errors import ParameterError, ScaleError
from dpsr.release.lists.ranking import Recommendations, best_items
from dpsr.types import Model, Scale
from dpsr.types.coordinates import Ids


@dataclass(frozen=True, eq=False)
class FoldedInUser:
    """Factors of somebody who is not in the release, and the items they have rated."""

    model: Model
    factors: Floats
    rated: npt.NDArray[np.int64]

    @classmethod
    def from_ratings(cls, model: Model, items: Ids, values: npt.ArrayLike) -> FoldedInUser:
        """Learn the guest's factors from their own ratings; items the release does not know are passed over."""
        ratings = np.atleast_1d(np.asarray(values, dtype=np.float64))
        codes = model.mask.item_codes(np.atleast_1d(items) if np.ndim(items) == 0 else items)
        if len(codes) != len(ratings):
            raise ParameterError(
                f"fold_in needs one rating per item, found {len(codes)} items, {len(ratings)} ratings."
            )
        _check_on_scale(ratings, model.scale)
        known = codes >= 0
        return cls.from_codes(model, codes[known], ratings[known])

    @classmethod
    def from_codes(cls, model: Model, items: npt.NDArray[np.int64], ratings: Floats) -> FoldedInUser:
        """The guest's factors from ratings at known items, given by their codes."""
        return cls(model, _posterior(model, items, ratings), items)

    def predict(self, items: Ids) -> Floats:
        """Predicted ratings inside the scale; an unknown item gets what the guest gives on average."""
        codes = self.model.mask.item_codes(items)
        scores = self.model.item_factors @ self.factors
        return self.model.scale.clip(np.where(codes >= 0, scores[codes], scores.mean()))

    def recommend(self, n: int = 10) -> Recommendations:
        """The `n` items the guest did not rate and is most likely to meet and like."""
        predicted = self.model.item_factors @ self.factors
        return best_items(self.model, self.model.liked(predicted, self.reach), predicted, self.rated, n)

    @property
    def reach(self) -> Floats:
        """The guest's affinity: the sum over rated items that gives a user's, for somebody who rated these."""
        if self.model.affinity is None:
            return np.empty(0)
        if not len(self.rated):
            return self.model.affinity.users.mean(axis=0)
        counts = self.model.mask.item_counts
        average = counts.sum() / max(np.count_nonzero(counts), 1)
        return (self.model.affinity.items[self.rated] / (counts[self.rated] + average)[:, None]).sum(axis=0)


def _check_on_scale(ratings: Floats, scale: Scale) -> None:
    """The release's scale is given: what is not on it is a slip of the person who rates."""
    _, on_scale = scale.locate(ratings)
    if not on_scale.all():
        raise ScaleError(
            f"the rating {ratings[int(np.argmin(on_scale))]:g} is not on this release's scale: from {scale.low:g} to "
            f"{scale.high:g} in steps of {scale.step:g}."
        )


def _posterior(model: Model, items: npt.NDArray[np.int64], ratings: Floats) -> Floats:
    """Posterior mean of the guest's factors: mean + C B' (B C B' + v)^-1 (r - B mean), one unknown per rating."""
    mean, covariance = model.user_mean, model.user_covariance
    B = model.item_factors[items]
    spread = B @ covariance @ B.T + max(model.residual_variance, 1e-6 * model.scale.width**2) * np.eye(len(items))
    return mean + covariance @ B.T @ np.linalg.solve(spread, ratings - B @ mean)
