"""Popularity and taste with their certificate: nothing about anybody, and enough for lists from one's own doings."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dpsr.arrays import Floats
from dpsr.errors import ParameterError
from dpsr.release.likes.personalised import UNCLIPPED, PersonalisedLikes, model_of, own_rows
from dpsr.release.lists.ranking import Recommendations, best_items, score_pairs
from dpsr.release.people.item_release import ReleaseOfItems, item_names
from dpsr.synthesis.people import MadeUpLikes, make_up_likes
from dpsr.types import Scale
from dpsr.types.item_side import Crowd
from dpsr.types.likes_side import LikesSide
from dpsr.types.mask import Ids, id_array
from dpsr.types.personal import OpensInteractions


@dataclass(frozen=True, eq=False, repr=False)
class LikesRelease(ReleaseOfItems[LikesSide]):
    """See `ReleaseOfItems`; nobody rates, and interactions are protected."""

    method: str = "likes"

    nobody = (
        "a release that protects people knows nobody, so it has no list for a user. Pass people's own interactions: "
        "personalise(interactions).recommend(user), or fold_in(items) for one person "
        "(on the command line: dpsr personalise, or --liked ITEM)."
    )

    @property
    def crowd(self) -> Crowd:
        """See `ReleaseOfItems`."""
        assert self.side.crowd is not None, "a likes side is released after all questions"
        return self.side.crowd

    @cached_property
    def made_up(self) -> MadeUpLikes | None:
        """The made-up people that the folder holds."""
        return None if self.synthetic is None else make_up_likes(self.side, self.synthetic)

    @property
    def synthetic_rows(self) -> pa.Table | None:
        """What they did: user, item."""
        if self.made_up is None:
            return None
        return pa.table({"user": self.made_up.owners + 1, "item": item_names(self.index, self.made_up.cells)})

    @property
    def scale(self) -> Scale:
        """Scores have none: wider than any of them."""
        return UNCLIPPED

    def predict(self, users: Ids, items: Ids) -> Floats:
        """Popularity of these items: the release knows nobody, so `users` only set the shape; 0 for unknown items."""
        _, j = np.broadcast_arrays(np.atleast_1d(np.asarray(users)), np.atleast_1d(np.asarray(items)))
        cells = self.index.cells_of(id_array(j.ravel()))
        return np.where(cells >= 0, self.side.popularity[np.maximum(cells, 0)], 0.0).reshape(j.shape)

    def popular(self, n: int = 10) -> Recommendations:
        """The `n` named items that are most popular."""
        return self.fold_in([], n=n)

    def fold_in(self, items: Ids, weights: npt.ArrayLike | None = None, n: int = 10) -> Recommendations:
        """A list for one person from what they did themselves, perhaps with a weight for each; nothing is stored."""
        ids = id_array(items)
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
