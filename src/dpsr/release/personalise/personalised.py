"""Everybody's predictions and lists from their own ratings and the release, in blocks of people.

A block of people becomes a small model of these people (`model_of`), which predicts and ranks like any other; then it
is forgotten. So memory does not grow with the number of people, and a person's answers do not depend on the block they
are in, nor on anybody else's rows. There is no way from here into a release folder: `Contents` refuses the models made
here, and files say for whom they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np
import pyarrow as pa

from dpsr.arrays import Bools, Floats, Ints
from dpsr.errors import ParameterError, ScaleError
from dpsr.release.folder.atomic import atomic_table
from dpsr.release.lists.batch import all_lists
from dpsr.release.lists.batch import table as lists_table
from dpsr.release.lists.ranking import Recommendations, best_items, ordered_dots, score_pairs
from dpsr.release.personalise.files import check_file
from dpsr.release.personalise.matching import OwnRatings, ReleaseCodes, matched
from dpsr.release.personalise.statement import file_metadata, statement
from dpsr.release.personalise.value_level import ValueLevel
from dpsr.types import OpensOwnRows, PersonalModel, Scale
from dpsr.types.mask import Ids

if TYPE_CHECKING:
    from dpsr.release.release import Release

BLOCK = 4_096
"""People at a time: some fifty megabytes, whatever the number of people."""

Progress = Callable[[int, int], None]


class ServesPeople(Protocol):
    """What a level of protection gives: a model of some people from their own ratings."""

    def model_of(self, own: OwnRatings) -> PersonalModel:
        """A model whose users are these people, each from their own ratings and what was released."""


class Personalised:
    """Predictions and lists for people from their own raw ratings: each for its own person, and for nobody else.

    >>> personal = model.personalise(ratings)                                               # doctest: +SKIP
    >>> personal.predict(["ann"], ["heat"]), personal.recommend("ann", n=10)                # doctest: +SKIP
    >>> personal.save("lists.parquet", n=10)                                                # doctest: +SKIP
    """

    def __init__(self, release: Release, ratings: OpensOwnRows, *, block: int | None = None) -> None:
        check_scale(release.scale, ratings.scale)
        if block is not None and block < 1:
            raise ParameterError(f"a block has at least one person, found {block}. Leave it out for the usual {BLOCK}.")
        self.release, self.block = release, block or BLOCK
        self._ratings = ratings
        self._level: ServesPeople = ValueLevel(release)

    @property
    def statement(self) -> str:
        """What is promised, and who may see what."""
        return statement(self.release.certificate)

    @property
    def n_people(self) -> int:
        return self._ratings.mask.n_users

    @property
    def notes(self) -> tuple[str, ...]:
        """What was left out or done otherwise, in words. Curator's side: the counts are of the raw rows."""
        notes = (
            (self.dropped, "ratings are of items that the release does not know: they were left out."),
            (self.strangers, "people are not in the release: their ratings were folded in as a stranger's."),
        )
        return tuple(f"{count:,} {words}" for count, words in notes if count)

    @cached_property
    def dropped(self) -> int:
        """Ratings of items that the release does not know."""
        return int(self._ratings.mask.item_counts[self._codes.items < 0].sum())

    @cached_property
    def strangers(self) -> int:
        """People whom the release does not know."""
        return int(np.count_nonzero(self._codes.users < 0))

    def brought_ratings(self, users: Ids) -> Bools:
        """Whether own ratings of each of these people were given."""
        mask = self._ratings.mask
        people = mask.user_codes(users)
        return np.asarray((people >= 0) & (mask.user_counts[people] > 0))

    def basis(self, users: Ids, items: Ids) -> Ints:
        """What each prediction rests on, as a place in `files.BASES`."""
        mask = self.release.mask
        unknown = mask.item_codes(items) < 0
        of_release = (mask.user_codes(users) < 0) + 2 * unknown
        return np.where(self.brought_ratings(users), unknown.astype(np.int64), 2 + of_release)

    def predict(self, users: Ids, items: Ids) -> Floats:
        """Predicted ratings inside the scale; who brought no ratings gets what the release predicts for them."""
        u, j = np.broadcast_arrays(np.atleast_1d(np.asarray(users)), np.atleast_1d(np.asarray(items)))
        predicted = self.release.predict(u, j)
        people, codes = self._ratings.mask.user_codes(u), self.release.mask.item_codes(j)
        for some, model in self._models(np.unique(people[people >= 0])):
            here = np.flatnonzero((people >= some[0]) & (people <= some[-1]))
            predicted[here] = _predicted(model, np.searchsorted(some, people[here]), codes[here])
        return predicted

    def recommend(self, user: str | int, n: int = 10, *, exclude_rated: bool = True) -> Recommendations:
        """The `n` items that `user` is most likely to meet and like, from their own ratings: for `user` alone."""
        person = self._ratings.mask.user_codes([user])
        if person[0] < 0:
            return self.release.recommend(user, n)
        own = self._own(int(person[0]), int(person[0]) + 1)
        model = self._level.model_of(own)
        scores = score_pairs(model, np.zeros(1, dtype=np.int64), np.arange(model.mask.n_items))
        return best_items(model, *scores, own.rated if exclude_rated else [], n)

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
        """One model of all people at once, in the codes of their ratings: for evaluation, where it fits in memory."""
        return self._level.model_of(self._own(0, self.n_people))

    def _models(self, people: Ints) -> Iterator[tuple[Ints, PersonalModel]]:
        """The given people (ascending codes) block by block, with a model of each block."""
        for start in range(0, self.n_people, self.block):
            stop = min(start + self.block, self.n_people)
            some = people[np.searchsorted(people, start) : np.searchsorted(people, stop)]
            if len(some):
                yield some, self._level.model_of(self._own(start, stop).select(some - start))

    def _own(self, start: int, stop: int) -> OwnRatings:
        rows, codes = self._ratings.own_rows(start, stop), self._codes
        return matched(rows, codes.users[start:stop], codes.items, self.release.mask)

    @cached_property
    def _codes(self) -> ReleaseCodes:
        return ReleaseCodes.of(self._ratings.mask, self.release.mask)

    def _lists(self, n: int) -> Iterator[tuple[int, pa.Table]]:
        for some, model in self._models(np.arange(self.n_people)):
            for lists in all_lists(model, n):
                yield int(some[-1]) + 1, lists_table(model, lists, self._schema)

    @cached_property
    def _schema(self) -> pa.Schema:
        ids = self._ratings.mask.user_ids.type, self.release.mask.item_ids.type
        kinds = [("user", ids[0]), ("rank", pa.int32()), ("item", ids[1]), ("score", pa.float64())]
        return pa.schema(kinds, metadata=file_metadata(self.release.certificate))

    def __repr__(self) -> str:  # never shows a value
        return f"Personalised({self.n_people:,} people; {self.statement})"


def _predicted(model: PersonalModel, users: Ints, items: Ints) -> Floats:
    """Clipped predictions for known people; an unknown item gets what the person gives on average."""
    raw = ordered_dots(model.user_factors, users, model.item_factors, np.maximum(items, 0))
    return model.scale.clip(np.where(items >= 0, raw, model.user_means[users]))


def check_scale(ours: Scale, theirs: Scale) -> None:
    """Refuse ratings of another scale."""
    if (ours.low, ours.high, ours.step) != (theirs.low, theirs.high, theirs.step):
        raise ScaleError(
            f"people's own ratings must be on the scale of the release, {ours}, found ratings on {theirs}. Read them "
            f"with scale={ours}, or personalise the release that was made from them."
        )
