"""A release: everything that leaves the building, and what can be done with it.

It holds the public mask, private ratings, a model and a certificate. There is no way back to a raw rating.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dpsr.errors import ParameterError
from dpsr.types import Certificate, Mask, Model, Scale
from dpsr.types.mask import Ids

Floats = npt.NDArray[np.float64]


class Recommendations(NamedTuple):
    """Items for one user, best first, with their predicted ratings."""

    items: list[Any]
    scores: Floats


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
        """The `n` items with the highest predicted rating that `user` has not rated."""
        if n < 1:
            raise ParameterError(f"n must be at least 1, found {n}. Ask for the number of items you want to show.")
        code = int(self.mask.user_codes([user])[0])
        scores = self.model.scores(code).copy()
        if code >= 0:
            scores[self.mask.items[self.mask.indptr[code] : self.mask.indptr[code + 1]]] = -np.inf
        return self._best(scores, n)

    def _best(self, scores: Floats, n: int) -> Recommendations:
        open_items = int(np.isfinite(scores).sum())
        order = np.lexsort((np.arange(len(scores)), -scores))[: min(n, open_items)]
        return Recommendations(self.mask.item_ids.take(pa.array(order)).to_pylist(), self.scale.clip(scores[order]))

    def save(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write the release folder, whole or not at all."""
        from dpsr.release.folder import write_release

        return write_release(self, Path(path), overwrite=overwrite)

    def __repr__(self) -> str:
        m, n = self.mask.shape
        return f"Release({self.method}, {self.mask.n_ratings:,} ratings, {m:,} users, {n:,} items, {self.certificate})"
