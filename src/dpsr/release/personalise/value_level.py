"""A model of some people from their own ratings, at the level of values: the release's, with their own coefficients.

    with rows in the release and here     their own posterior (`posterior`)
    in the release, without rows here     the release's own coefficients
    not in the release                    what `fold_in` finds for somebody new

User vectors are [x, c, f, 1, 0, t], item vectors [b, z, g, midpoint, k, K]: the release's, whose own taste over the
features k gives way to a taste t over the features K of a finer mask kernel. What is shared (kernel, choice) is found
once, from the release alone.
"""

from __future__ import annotations

from dataclasses import fields
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from dpsr.arrays import Floats
from dpsr.release.lists.fold_in import FoldedInUser
from dpsr.release.lists.ranking import ordered_dots
from dpsr.release.personalise.choice import choose
from dpsr.release.personalise.mask_kernel import mask_kernel
from dpsr.release.personalise.matching import OwnRatings
from dpsr.release.personalise.posterior import Choice, coefficients, without_own
from dpsr.release.personalise.released_side import People, ReleasedSide, required_prior
from dpsr.types import Affinity, Mask, Model, PersonalModel

if TYPE_CHECKING:
    from dpsr.release.release import Release


class ValueLevel:
    """What a value-level release gives to everybody who brings their own ratings."""

    def __init__(self, release: Release) -> None:
        self._release = release
        self.widths = required_prior(release.model).widths

    @cached_property
    def _shared(self) -> tuple[ReleasedSide, Choice, Floats]:
        """The item side, the choice, and item vectors in rating points with the kernel's features beside."""
        release = self._release
        kernel = mask_kernel(release.mask)
        side = ReleasedSide(release.model, release.noisy, kernel.features)
        choice = choose(side, release.mask, kernel.strength)
        features = kernel.features if choice.tau > 0 else kernel.features[:, :0]
        return side, choice, np.hstack([release.model.item_factors, release.scale.width / 2 * features])

    @property
    def choice(self) -> Choice:
        """What the release's noisy readings decided."""
        return self._shared[1]

    def model_of(self, own: OwnRatings) -> PersonalModel:
        """A model whose users are these people, each from their own ratings."""
        _, _, items = self._shared
        release = self._release.model
        mask = Mask(own.user_ids, release.mask.item_ids, own.rated_indptr, own.rated)
        users = self._vectors(own, items.shape[1])
        weight = release.mask.item_counts / max(int(release.mask.item_counts.sum()), 1)
        inherited = {field.name: getattr(release, field.name) for field in fields(Model)}
        return PersonalModel(
            **inherited
            | {
                "mask": mask,
                "user_factors": users,
                "item_factors": items,
                "user_means": ordered_dots(users, np.arange(len(users)), (weight @ items)[None], np.zeros(1, np.int64)),
                "affinity": self._affinity(own),
                "observed": None,
                "personal": None,
            }
        )

    def _vectors(self, own: OwnRatings, width: int) -> Floats:
        side, choice, _ = self._shared
        vectors, rank = np.zeros((len(own.users), width)), side.model.rank
        known = np.flatnonzero(own.users >= 0)
        vectors[known, :rank] = side.model.user_factors[own.users[known]]
        with_rows = known[own.counts[known] > 0]
        theta = self._own_coefficients(own.select(with_rows), side, choice)
        p, n_own = self.widths.user_features, self.widths.own
        vectors[with_rows, p : p + n_own] = theta[:, :n_own]
        vectors[with_rows, self.widths.rank : rank] = 0.0
        vectors[with_rows, rank:] = theta[:, n_own:]
        for stranger in np.flatnonzero(own.users < 0).tolist():
            vectors[stranger, :rank] = self._folded_in(own, stranger).factors
        return vectors

    def _own_coefficients(self, own: OwnRatings, side: ReleasedSide, choice: Choice) -> Floats:
        scale = side.model.scale
        people = People(own.users, own.indptr, own.items, own.places)
        y = (own.values - scale.midpoint) / (scale.width / 2)
        return coefficients(side, choice, people, without_own(side, people), y)

    def _affinity(self, own: OwnRatings) -> Affinity | None:
        """How likely these people are to meet an item: as the release says, for strangers by what they rated."""
        affinity = self._release.model.affinity
        if affinity is None:
            return None
        reach = affinity.users[np.maximum(own.users, 0)]
        for stranger in np.flatnonzero(own.users < 0).tolist():
            reach[stranger] = self._folded_in(own, stranger).reach
        return Affinity(reach, affinity.items)

    def _folded_in(self, own: OwnRatings, person: int) -> FoldedInUser:
        rows = slice(own.indptr[person], own.indptr[person + 1])
        return FoldedInUser.from_codes(self._release.model, own.items[rows].astype(np.int64), own.values[rows])
