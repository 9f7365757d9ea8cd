"""What a release says about items and people, in half-widths of the scale, as the arithmetic of `personalise` reads it.

    eta_uj = b_j . x_u + g_j . f_u + c_u . z_j         (b_j, g_j) ~ N((B_j, G_j), C_j)  after the release
                                                       (c_u, f_u) ~ N((V' x_u, 0), L)   the learned prior of people

Everything is read off the released model, so that a loaded release and the fitted one give the same bits.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpsr.arrays import Bools, Codes, Floats, Ints
from dpsr.errors import ParameterError
from dpsr.release.lists.ranking import ordered_dots
from dpsr.release.personalise.kernels import ItemFeatures, ItemVectors, Readings
from dpsr.types import Model, NoisyRatings, PersonalPrior


@dataclass(frozen=True, eq=False)
class People:
    """Some people and the cells of their ratings: codes in the release, and the cells' places in its mask, or -1."""

    users: Ints
    indptr: Ints
    items: Codes
    places: Ints

    @property
    def rows(self) -> Codes:
        """The local person of every rating."""
        return np.repeat(np.arange(len(self.users), dtype=np.int32), np.diff(self.indptr))

    def only(self, some: Bools) -> People:
        """The same people with the chosen ratings alone."""
        kept = np.concatenate([[0], np.cumsum(some, dtype=np.int64)])
        return People(self.users, kept[self.indptr], self.items[some], self.places[some])


class ReleasedSide:
    """The released model by its parts; `kernel` are the features of the mask kernel."""

    def __init__(self, model: Model, noisy: NoisyRatings | None, kernel: Floats) -> None:
        self.model, self.noisy, self.prior = model, noisy, required_prior(model)
        half, (p, q, k) = model.scale.width / 2, self.prior.widths
        vectors = model.item_factors / half
        size = self.prior.item_covariance.shape[1]
        self.vectors = ItemVectors(
            np.ascontiguousarray(np.hstack([vectors[:, :p], vectors[:, p + q : p + q + k]])),
            self.prior.item_covariance,
            p,
            int((np.sqrt(8 * size + 1) - 1) // 2),
        )
        self.features = ItemFeatures(np.ascontiguousarray(vectors[:, p : p + q]), np.ascontiguousarray(kernel))
        self.residual = max(model.residual_variance / half**2, 1e-9)

    def taste(self, *, kernel: bool) -> ItemFeatures:
        """Features of items, with those of the kernel or without."""
        return self.features if kernel else ItemFeatures(self.features.public, self.features.kernel[:, :0].copy())

    def public_features(self, users: Ints) -> Floats:
        """x of some people."""
        return self.model.user_factors[users, : self.prior.widths.user_features]

    def features_and_factors(self, users: Ints) -> Floats:
        """(x, f) of some people, as the item side met them."""
        p, q, k = self.prior.widths
        rows = self.model.user_factors[users]
        return np.ascontiguousarray(np.hstack([rows[:, :p], rows[:, p + q : p + q + k]]))

    def readings(self, people: People) -> Readings:
        """The noisy readings of these people's ratings; of weight zero where the release has none."""
        N, middle, half = len(people.items), self.model.scale.midpoint, self.model.scale.width / 2
        if self.noisy is None:
            return Readings(np.zeros(N), np.zeros(N), np.zeros(N))
        there, at = people.places >= 0, np.maximum(people.places, 0)
        users = people.users[people.rows]
        met = slice(self.prior.widths.rank)  # the item side knows nothing of tastes that the mask makes smooth
        means = self.model.user_factors[:, met], users, self.model.item_factors[:, met], people.items
        mean = ordered_dots(*means)
        value = (self.noisy.values[at].astype(np.float64) - middle) / half
        weight = np.where(there, self.noisy.weights[at].astype(np.float64) * half**2, 0.0)
        return Readings((mean - middle) / half, value, weight)


def required_prior(model: Model) -> PersonalPrior:
    """What people's own ratings meet; not every release has it."""
    if model.personal is None:
        raise ParameterError(
            "this release does not say how well its items are known, so people's own ratings cannot be weighed against "
            "it: it was made by the paper's pipeline or by an earlier version. Release anew with the default method, "
            "or use fold_in, one person at a time."
        )
    return model.personal
