"""Personal answers where people are protected: the release knows nobody, so all that is personal is brought along."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dpsr.arrays import Floats, Ints
from dpsr.linalg.people_rows import PeopleRows
from dpsr.release.lists.ranking import Recommendations, best_items
from dpsr.release.people.knows_nobody import PersonalWithoutPeople
from dpsr.release.people.model import model_of, own_rows
from dpsr.types import Mask, PersonalModel

if TYPE_CHECKING:
    from dpsr.release.people.item_release import ItemRelease


class PersonalisedPeople(PersonalWithoutPeople["ItemRelease"]):
    """See `PersonalAnswers`; predictions are ratings."""

    release: ItemRelease
    left_out = "ratings are of items outside the declared catalogue: they were left out."

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
        return model_of(self.release.side, index, ids, self._rows(people), self._named_items(people))

    def _predicted(self, people: Ints, places: Ints, items: npt.NDArray[np.generic]) -> Floats:
        side, rows = self.release.side, self._rows(people)
        return side.predict(side.own_side(rows), places, self.release.index.cells_of(items))

    def _rows(self, people: Ints) -> PeopleRows:
        indptr, cells, values = self._opened(people)
        return own_rows(indptr, cells, self.release.scale, values)
