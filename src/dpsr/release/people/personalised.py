"""Everybody's predictions and lists from their own ratings and the released item side, in blocks of people.

A person's answers are computed from their own rows and the item side alone: not from anybody else's rows, and not
differently in another block. Memory does not grow with the number of people. Nothing here has a way into a folder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from dpsr.arrays import Bools, Floats, Ints
from dpsr.errors import ParameterError
from dpsr.release.folder.atomic import atomic_table
from dpsr.release.lists.batch import all_lists
from dpsr.release.lists.batch import table as lists_table
from dpsr.release.lists.ranking import Recommendations, best_items
from dpsr.release.people.model import OwnRows, model_of, own_rows
from dpsr.release.personalise.files import check_file
from dpsr.release.personalise.personalised import BLOCK, check_scale
from dpsr.release.personalise.statement import file_metadata, statement
from dpsr.types import Mask, PersonalModel
from dpsr.types.mask import Ids, codes_of
from dpsr.types.personal import OpensOwnRows

if TYPE_CHECKING:
    from dpsr.release.people.item_release import ItemRelease

Progress = Callable[[int, int], None]


class PersonalisedPeople:
    """Predictions and lists for people from their own raw ratings: each for its own person, and for nobody else.

    >>> personal = model.personalise(ratings)                                               # doctest: +SKIP
    >>> personal.predict(["ann"], ["heat"]), personal.recommend("ann", n=10)                # doctest: +SKIP
    >>> personal.save("lists.parquet", n=10)                                                # doctest: +SKIP
    """

    def __init__(self, release: ItemRelease, ratings: OpensOwnRows, *, block: int | None = None) -> None:
        check_scale(release.scale, ratings.scale)
        if block is not None and block < 1:
            raise ParameterError(f"a block has at least one person, found {block}. Leave it out for the usual {BLOCK}.")
        self.release, self.block = release, block or BLOCK
        self._ratings = ratings

    @property
    def statement(self) -> str:
        """What is promised, and who may see what."""
        return statement(self.release.certificate)

    @property
    def n_people(self) -> int:
        return self._ratings.mask.n_users

    @property
    def notes(self) -> tuple[str, ...]:
        """What was left out, in words. Curator's side: the counts are of the raw rows."""
        words = "ratings are of items outside the declared catalogue: they were left out."
        return (f"{self.dropped:,} {words}",) if self.dropped else ()

    def brought_ratings(self, users: Ids) -> Bools:
        """Whether own ratings of each of these people were given."""
        mask = self._ratings.mask
        people = mask.user_codes(users)
        return np.asarray((people >= 0) & (mask.user_counts[people] > 0))

    def basis(self, users: Ids, items: Ids) -> Ints:
        """What each prediction rests on, as a place in `BASES`."""
        unknown = (self.release.index.cells_of(_ids(items)) < 0).astype(np.int64)
        return np.where(self.brought_ratings(users), unknown, 3 + 2 * unknown)

    @cached_property
    def dropped(self) -> int:
        """Rows at items outside a declared catalogue: they are left out."""
        mask = self._ratings.mask
        return int(mask.item_counts[self._cells < 0].sum())

    def predict(self, users: Ids, items: Ids) -> Floats:
        """Predicted ratings inside the scale; who brought no ratings gets what a stranger would."""
        u, j = np.broadcast_arrays(np.atleast_1d(np.asarray(users)), np.atleast_1d(np.asarray(items)))
        predicted, side = self.release.predict(u, j), self.release.side
        people, cells = self._ratings.mask.user_codes(u), self.release.index.cells_of(_ids(j))
        for start in np.unique(people[people >= 0] // self.block) * self.block:
            here = np.flatnonzero((people >= start) & (people < start + self.block))
            wanted, places = np.unique(people[here], return_inverse=True)
            rows = self._rows(wanted)
            predicted[here] = side.predict(side.own_side(*rows), places, cells[here])
        return predicted

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

    def save(self, path: str | Path, n: int = 10, *, overwrite: bool = False, progress: Progress | None = None) -> Path:
        """Write everybody's list (user, rank, item, score) as Parquet that says for whom it is. Whole or not at all."""
        where = Path(path)
        check_file(where, overwrite=overwrite)
        with atomic_table(where, self._schema, overwrite=overwrite) as rows:
            for done, lists in self._lists(n):
                rows.write_table(lists)
                if progress is not None:
                    progress(done, self.n_people)
        return where

    recommend_all = save

    def table(self, n: int = 10) -> pa.Table:
        """Everybody's list as one Arrow table, with the words about who may see it in its metadata."""
        return pa.concat_tables([lists for _, lists in self._lists(n)] or [self._schema.empty_table()])

    def model(self) -> PersonalModel:
        """One model of all people and the named items: for evaluation, where it fits in memory."""
        return self._model(np.arange(self.n_people))

    def _lists(self, n: int) -> Iterator[tuple[int, pa.Table]]:
        if len(self.release.index.named) == 0:
            return
        for start in range(0, self.n_people, self.block):
            stop = min(start + self.block, self.n_people)
            model = self._model(np.arange(start, stop))
            for lists in all_lists(model, n):
                yield stop, lists_table(model, lists, self._schema)

    def _model(self, people: Ints) -> PersonalModel:
        mask = self._ratings.mask
        codes, counts = self._named[self._items_of(people)], mask.user_counts[people]
        owner = np.repeat(np.arange(len(people)), counts)
        named = codes >= 0
        indptr = np.concatenate([[0], np.cumsum(np.bincount(owner[named], minlength=len(people)))])
        ids = mask.user_ids.take(pa.array(people))
        rows = self._rows(people)
        return model_of(self.release.side, self.release.index, ids, rows, (indptr, codes[named]))

    def _rows(self, people: Ints) -> OwnRows:
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

    @cached_property
    def _schema(self) -> pa.Schema:
        ids = self._ratings.mask.user_ids.type, self.release.index.named.type
        kinds = [("user", ids[0]), ("rank", pa.int32()), ("item", ids[1]), ("score", pa.float64())]
        return pa.schema(kinds, metadata=file_metadata(self.release.certificate))

    def __repr__(self) -> str:  # never shows a value
        return f"PersonalisedPeople({self.n_people:,} people; {self.statement})"


def _ids(ids: Ids) -> pa.Array:
    return ids if isinstance(ids, pa.Array) else pa.array(np.asarray(ids).tolist())
