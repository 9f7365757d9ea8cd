"""Everybody's lists from their own interactions and the released side, in blocks of people.

A person's answers are computed from their own rows and the release alone: not from anybody else's rows, and not
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
from dpsr.release.likes.model import OwnRows, model_of, own_rows
from dpsr.release.lists.batch import all_lists
from dpsr.release.lists.batch import table as lists_table
from dpsr.release.lists.ranking import Recommendations, best_items, score_pairs
from dpsr.release.personalise.files import check_file
from dpsr.release.personalise.statement import file_metadata, statement
from dpsr.types import Mask, PersonalModel
from dpsr.types.mask import Ids, codes_of
from dpsr.types.personal import OpensInteractions

if TYPE_CHECKING:
    from dpsr.release.likes.likes_release import LikesRelease

BLOCK = 4_096
"""People at a time: some fifty megabytes, whatever the number of people."""

Progress = Callable[[int, int], None]


class PersonalisedLikes:
    """Lists for people from their own raw interactions: each for its own person, and for nobody else.

    >>> personal = model.personalise(interactions)                                          # doctest: +SKIP
    >>> personal.recommend("ann", n=10)                                                     # doctest: +SKIP
    >>> personal.save("lists.parquet", n=10)                                                # doctest: +SKIP
    """

    def __init__(self, release: LikesRelease, interactions: OpensInteractions, *, block: int | None = None) -> None:
        if hasattr(interactions, "scale"):
            raise ParameterError(
                "this release was learned from interactions, and these are ratings. Pass Interactions: every rating "
                "as one with Interactions.read(...), or those that are liked with ratings.liked(at_least=4)."
            )
        if block is not None and block < 1:
            raise ParameterError(f"a block has at least one person, found {block}. Leave it out for the usual {BLOCK}.")
        self.release, self.block = release, block or BLOCK
        self._own = interactions

    @property
    def statement(self) -> str:
        """What is promised, and who may see what."""
        return statement(self.release.certificate)

    @property
    def n_people(self) -> int:
        return self._own.mask.n_users

    @property
    def notes(self) -> tuple[str, ...]:
        """What was left out, in words. Curator's side: the counts are of the raw rows."""
        words = "interactions are with items outside the declared catalogue: they were left out."
        return (f"{self.dropped:,} {words}",) if self.dropped else ()

    @cached_property
    def dropped(self) -> int:
        """Rows at items outside a declared catalogue: they are left out."""
        return int(self._own.mask.item_counts[self._cells < 0].sum())

    def brought_ratings(self, users: Ids) -> Bools:
        """Whether own interactions of each of these people were given."""
        mask = self._own.mask
        people = mask.user_codes(users)
        return np.asarray((people >= 0) & (mask.user_counts[people] > 0))

    def basis(self, users: Ids, items: Ids) -> Ints:
        """What each score rests on, as a place in `BASES`."""
        unknown = (self.release.index.cells_of(_ids(items)) < 0).astype(np.int64)
        return np.where(self.brought_ratings(users), unknown, 3 + 2 * unknown)

    def predict(self, users: Ids, items: Ids) -> Floats:
        """Scores of pairs: how popular an item is with somebody like the user; for strangers, its popularity."""
        u, j = np.broadcast_arrays(np.atleast_1d(np.asarray(users)), np.atleast_1d(np.asarray(items)))
        scores, side = self.release.predict(u, j), self.release.side
        people, cells = self._own.mask.user_codes(u), self.release.index.cells_of(_ids(j))
        for start in np.unique(people[people >= 0] // self.block) * self.block:
            here = np.flatnonzero((people >= start) & (people < start + self.block) & (cells >= 0))
            if len(here):
                wanted, places = np.unique(people[here], return_inverse=True)
                vectors = side.people(*self._rows(wanted))
                scores[here] = (vectors[places] * side.items(cells[here])).sum(axis=1)
        return scores

    def recommend(self, user: str | int, n: int = 10, *, exclude_rated: bool = True) -> Recommendations:
        """The `n` named items that suit `user` best, from what they did themselves: for `user` alone."""
        person = self._own.mask.user_codes([user])
        if person[0] < 0 or len(self.release.index.named) == 0:
            return self.release.popular(n)
        model = self._model(person)
        assert isinstance(model.mask, Mask)
        codes = np.arange(model.mask.n_items)
        scores = score_pairs(model, np.zeros(len(codes), dtype=np.int64), codes).scores
        done = model.mask.items if exclude_rated else model.mask.items[:0]
        return self.release.titled(best_items(model, scores, scores, done, n))

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
        mask = self._own.mask
        places = np.concatenate([np.arange(mask.indptr[p], mask.indptr[p + 1]) for p in people])
        codes, counts = self._named[mask.items[places]], mask.user_counts[people]
        owner = np.repeat(np.arange(len(people)), counts)
        named = codes >= 0
        indptr = np.concatenate([[0], np.cumsum(np.bincount(owner[named], minlength=len(people)))])
        ids = mask.user_ids.take(pa.array(people))
        done = codes[named]
        done = done[np.lexsort((done, owner[named]))]
        return model_of(self.release.side, self.release.index, ids, self._rows(people), (indptr, done))

    def _rows(self, people: Ints) -> OwnRows:
        """Own rows of consecutive or single people, opened for them alone."""
        mask = self._own.mask
        start, stop = int(people[0]), int(people[-1]) + 1
        opened = self._own.own_rows(start, stop)
        places = np.concatenate([np.arange(opened.indptr[p - start], opened.indptr[p - start + 1]) for p in people])
        indptr = np.concatenate([[0], np.cumsum(mask.user_counts[people])])
        return own_rows(indptr, self._cells[opened.items[places]], opened.values[places])

    @cached_property
    def _cells(self) -> Ints:
        return self.release.index.cells_of(self._own.mask.item_ids)

    @cached_property
    def _named(self) -> Ints:
        return codes_of(self._own.mask.item_ids, self.release.index.named)

    @cached_property
    def _schema(self) -> pa.Schema:
        ids = self._own.mask.user_ids.type, self.release.index.named.type
        kinds = [("user", ids[0]), ("rank", pa.int32()), ("item", ids[1]), ("score", pa.float64())]
        return pa.schema(kinds, metadata=file_metadata(self.release.certificate))

    def __repr__(self) -> str:  # never shows a value
        return f"PersonalisedLikes({self.n_people:,} people; {self.statement})"


def _ids(ids: Ids) -> pa.Array:
    return ids if isinstance(ids, pa.Array) else pa.array(np.asarray(ids).tolist())
