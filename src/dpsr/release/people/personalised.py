"""Personal answers where people are protected: the release knows nobody, so all that is personal is brought along."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dpsr.arrays import Floats, Ints
from dpsr.linalg.rows import PeopleRows
from dpsr.release.lists.ranking import Recommendations, best_items
from dpsr.release.people.model import model_of, own_rows
from dpsr.release.personalise.base import PersonalAnswers
from dpsr.types import Mask, PersonalModel
from dpsr.types.mask import Ids, codes_of

if TYPE_CHECKING:
    from dpsr.release.people.item_release import ItemRelease


class PersonalisedPeople(PersonalAnswers["ItemRelease"]):
    """See `PersonalAnswers`; everybody's side is computed from their own rows and the item side alone."""

    release: ItemRelease

    @property
    def notes(self) -> tuple[str, ...]:
        words = "ratings are of items outside the declared catalogue: they were left out."
        return (f"{self.dropped:,} {words}",) if self.dropped else ()

    @cached_property
    def dropped(self) -> int:
        """Rows at items outside a declared catalogue: they are left out."""
        return int(self._ratings.mask.item_counts[self._cells < 0].sum())

    def basis(self, users: Ids, items: Ids) -> Ints:
        unknown = (self.release.index.cells_of(items) < 0).astype(np.int64)
        return np.where(self.brought_ratings(users), unknown, 3 + 2 * unknown)

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

    @property
    def _item_ids(self) -> pa.Array:
        return self.release.index.named

    def _model(self, people: Ints) -> PersonalModel:
        mask = self._ratings.mask
        codes, counts = self._named[self._items_of(people)], mask.user_counts[people]
        owner = np.repeat(np.arange(len(people)), counts)
        named = codes >= 0
        indptr = np.concatenate([[0], np.cumsum(np.bincount(owner[named], minlength=len(people)))])
        ids = mask.user_ids.take(pa.array(people))
        rows = self._rows(people)
        return model_of(self.release.side, self.release.index, ids, rows, (indptr, codes[named]))

    def _predicted(self, people: Ints, places: Ints, items: npt.NDArray[np.generic]) -> Floats:
        side, rows = self.release.side, self._rows(people)
        return side.predict(side.own_side(rows), places, self.release.index.cells_of(items))

    def _rows(self, people: Ints) -> PeopleRows:
        """Own rows of consecutive or single people, opened for them alone."""
        mask = self._ratings.mask
        start, stop = int(people[0]), int(people[-1]) + 1
        opened = self._ratings.own_rows(start, stop)
        places = np.concatenate([np.arange(opened.indptr[p - start], opened.indptr[p - start + 1]) for p in people])
        indptr = np.concatenate([[0], np.cumsum(mask.user_counts[people])])
        cells = self._cells[opened.items[places]]
        return own_rows(indptr, cells, self.release.scale, opened.values[places])

    def _items_of(self, people: Ints) -> Ints:
        mask = self._ratings.mask
        return np.concatenate([mask.items[mask.indptr[p] : mask.indptr[p + 1]] for p in people])

    @cached_property
    def _cells(self) -> Ints:
        return self.release.index.cells_of(self._ratings.mask.item_ids)

    @cached_property
    def _named(self) -> Ints:
        return codes_of(self._ratings.mask.item_ids, self.release.index.named)
