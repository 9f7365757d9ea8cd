"""Popularity and taste with their certificate: nothing about anybody, and enough for lists from one's own doings."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dpsr.arrays import Floats, Ints
from dpsr.certify import Certificate
from dpsr.errors import ParameterError
from dpsr.release.likes.model import UNCLIPPED, model_of, own_rows
from dpsr.release.likes.personalised import PersonalisedLikes
from dpsr.release.lists.ranking import Recommendations, best_items, score_pairs
from dpsr.types import Catalogue, Scale
from dpsr.types.item_side import ItemIndex
from dpsr.types.likes_side import LikesSide
from dpsr.types.mask import Ids, codes_of
from dpsr.types.personal import OpensInteractions

NO_PEOPLE = (
    "a release that protects people knows nobody, so it has no list for a user. Pass people's own interactions: "
    "personalise(interactions).recommend(user), or fold_in(items) for one person."
)


@dataclass(frozen=True, eq=False)
class LikesRelease:
    """What may be shown to everybody where interactions are protected.

    `side` is what is known about cells of items, `index` says which cell an item has and which items may be named.
    """

    side: LikesSide
    index: ItemIndex
    certificate: Certificate
    method: str = "likes"
    settings: dict[str, Any] = field(default_factory=dict)
    titles: list[str | None] | None = None
    """What the named items are called, where it is known."""

    def with_titles(self, catalogue: Catalogue) -> LikesRelease:
        """The same release whose lists and card name items by their titles, where the catalogue has one."""
        return replace(self, titles=catalogue.titles_of(self.index.named))

    def titled(self, found: Recommendations) -> Recommendations:
        """A list with titles, if there are any."""
        if self.titles is None:
            return found
        return replace(found, titles=[self.titles[code] for code in self._named(found.items).tolist()])

    @property
    def scale(self) -> Scale:
        """Scores have none: wider than any of them."""
        return UNCLIPPED

    @property
    def contents(self) -> LikesRelease:
        """What its folder holds."""
        return self

    def predict(self, users: Ids, items: Ids) -> Floats:
        """Popularity of these items: the release knows nobody, so `users` only set the shape; 0 for unknown items."""
        _, j = np.broadcast_arrays(np.atleast_1d(np.asarray(users)), np.atleast_1d(np.asarray(items)))
        cells = self.index.cells_of(as_ids(j.ravel()))
        return np.where(cells >= 0, self.side.popularity[np.maximum(cells, 0)], 0.0).reshape(j.shape)

    def recommend(self, user: Any, n: int = 10, **_: Any) -> Recommendations:
        """Refused: there are no users in this release."""
        raise ParameterError(NO_PEOPLE)

    def recommend_all(self, path: str | Path, n: int = 10, **_: Any) -> Path:
        """Refused: there are no users in this release."""
        raise ParameterError(NO_PEOPLE)

    def popular(self, n: int = 10) -> Recommendations:
        """The `n` named items that are most popular."""
        return self.fold_in([], n=n)

    def fold_in(self, items: Ids, weights: npt.ArrayLike | None = None, n: int = 10) -> Recommendations:
        """A list for one person from what they did themselves, perhaps with a weight for each; nothing is stored."""
        ids = as_ids(items)
        given = np.ones(len(ids)) if weights is None else np.atleast_1d(np.asarray(weights, dtype=np.float64))
        if len(given) != len(ids) or not np.isfinite(given).all() or not (given > 0).all():
            raise ParameterError("there is one weight per item, a finite number above 0; leave weights out if none.")
        if len(self.index.named) == 0:
            if n < 1:
                raise ParameterError(f"n must be at least 1, found {n}. Ask for the number of items you want to show.")
            return Recommendations([], np.zeros(0))
        rows = own_rows(np.array([0, len(ids)]), self.index.cells_of(ids), given)
        model = model_of(self.side, self.index, pa.array(["you"]), rows)
        codes = np.arange(len(self.index.named))
        scores = score_pairs(model, np.zeros(len(codes), dtype=np.int64), codes).scores
        known = self._named(ids)
        return self.titled(best_items(model, scores, scores, known[known >= 0], n))

    def personalise(self, interactions: OpensInteractions, *, block: int | None = None) -> PersonalisedLikes:
        """Lists for each person from their own raw interactions and the release: for that person alone.

        `block` is how many people are served at a time; it bounds memory and changes no list.
        """
        return PersonalisedLikes(self, interactions, block=block)

    def save(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write the release folder, whole or not at all."""
        from dpsr.release.folder.files import write_release

        return write_release(self, Path(path), overwrite=overwrite)

    def _named(self, items: Ids) -> Ints:
        return codes_of(as_ids(items), self.index.named)

    def __repr__(self) -> str:
        named = f"{len(self.index.named):,} items by name" if self.index.declared is None else "a declared catalogue"
        return f"LikesRelease({self.side.method}, {named}, {self.certificate})"


def as_ids(ids: Ids) -> pa.Array:
    """Ids as an Arrow array; nothing at all is an array of text."""
    if isinstance(ids, pa.Array):
        return ids
    listed = list(ids) if not isinstance(ids, np.ndarray) else ids.tolist()
    return pa.array(listed) if listed else pa.array([], type=pa.string())
