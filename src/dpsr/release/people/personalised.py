"""Personal answers where people are protected: the release knows nobody, so all that is personal is brought along."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dpsr.arrays import Floats, Ints
from dpsr.release.lists.ranking import Recommendations, best_items
from dpsr.release.people.knows_nobody import PersonalWithoutPeople
from dpsr.release.people.model import model_of, own_rows
from dpsr.types import Mask, OpensOwnRows, PersonalModel
from dpsr.types.item_side import OwnSide

if TYPE_CHECKING:
    from dpsr.release.people.item_release import ItemRelease


class PersonalisedPeople(PersonalWithoutPeople["ItemRelease"]):
    """See `PersonalAnswers`; predictions are ratings."""

    release: ItemRelease
    left_out = "ratings are of items outside the declared catalogue: they were left out."

    def __init__(
        self, release: ItemRelease, ratings: OpensOwnRows, *, block: int | None = None, new_people: bool = False
    ) -> None:
        super().__init__(release, ratings, block=block)
        self.new_people = new_people

    def recommend(self, user: str | int, n: int = 10, *, exclude_rated: bool = True) -> Recommendations:
        """The `n` named items that `user` is most likely to meet and like, from their own ratings: for `user` alone."""
        person = self._ratings.mask.user_codes([user])
        if person[0] < 0:
            return self.release.popular(n)
        model = self._model(person)
        assert isinstance(model.mask, Mask)
        rated = model.mask.items if exclude_rated else model.mask.items[:0]
        found = best_items(model, model.scores(0), model.item_factors @ model.user_factors[0], rated, n)
        return self.release.titled(found)

    def _model(self, people: Ints) -> PersonalModel:
        ids, index = self._ratings.mask.user_ids.take(pa.array(people)), self.release.index
        return model_of(self.release.side, index, ids, self._own_side(people), self._named_items(people))

    def _predicted(self, people: Ints, places: Ints, items: npt.NDArray[np.generic]) -> Floats:
        return self.release.side.predict(self._own_side(people), places, self.release.index.cells_of(items))

    def _own_side(self, people: Ints) -> OwnSide:
        indptr, cells, values = self._opened(people)
        rows, side = own_rows(indptr, cells, self.release.scale, values), self.release.side
        return side.own_side(rows) if self.new_people else side.own_side_of_fitted(rows)
