"""A release: everything that leaves the building, and what can be done with it.

It holds the public mask, private ratings, a model and a certificate. There is no way back to a raw rating.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dpsr.errors import ParameterError
from dpsr.release.guest import Guest
from dpsr.release.ranking import Recommendations, best_items
from dpsr.types import Certificate, Mask, Model, Scale
from dpsr.types.ids import Ids

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Release:
    """A model that predicts and recommends, the private rating table, and their certificate.

    `ratings` is the table to share: one private value per rating, in the order of the mask. `settings` says how it was
    made, in public terms only.
    """

    model: Model
    ratings: Floats
    certificate: Certificate
    method: str
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def mask(self) -> Mask:
        """Who rated what; a release in memory has it."""
        assert isinstance(self.model.mask, Mask)
        return self.model.mask

    @property
    def scale(self) -> Scale:
        return self.model.scale

    def predict(self, users: Ids, items: Ids) -> Floats:
        """Predicted ratings inside the scale; unknown users and items get the best that is known."""
        if np.shape(users) != np.shape(items) and 1 not in (np.size(users), np.size(items)):
            raise ParameterError(
                f"predict needs one item per user, found {np.size(users)} users and {np.size(items)} items. "
                "Pass two arrays of the same length, or a single user or item."
            )
        return self.model.predict(
            self.mask.user_codes(np.atleast_1d(users)), self.mask.item_codes(np.atleast_1d(items))
        )

    def recommend(self, user: str | int, n: int = 10) -> Recommendations:
        """The `n` items that `user` has not rated and is most likely to meet and like."""
        code = int(self.mask.user_codes([user])[0])
        rated = slice(self.mask.indptr[code], self.mask.indptr[code + 1]) if code >= 0 else slice(0)
        predicted = self.model.predict(np.array([code]), np.arange(self.mask.n_items))
        return best_items(self.model, self.model.scores(code), predicted, self.mask.items[rated], n)

    def fold_in(self, items: Ids, values: npt.ArrayLike, n: int = 10) -> Recommendations:
        """Recommendations for somebody new, from their own ratings and the released item side; nothing is stored."""
        return self.guest(items, values).recommend(n)

    def guest(self, items: Ids, values: npt.ArrayLike) -> Guest:
        """Somebody who is not in the release: predictions and recommendations from their own ratings alone."""
        return Guest.meet(self.model, items, values)

    def save(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write the release folder, whole or not at all."""
        from dpsr.release.folder import write_release

        return write_release(self, Path(path), overwrite=overwrite)

    def __repr__(self) -> str:
        m, n = self.mask.shape
        return f"Release({self.method}, {self.mask.n_ratings:,} ratings, {m:,} users, {n:,} items, {self.certificate})"
