"""Everybody's predictions and lists from their own rows and what was released, in blocks of people.

A block of people becomes a small model of these people, which predicts and ranks like any other; then it is forgotten.
So memory does not grow with the number of people, and a person's answers do not depend on the block they are in, nor on
anybody else's rows. There is no way from here into a release folder: `Contents` refuses the models made here, and files
say for whom they are.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dpsr.arrays import Bools, Floats, Ints
from dpsr.certify import Certificate
from dpsr.errors import ParameterError, ScaleError
from dpsr.release.atomic import atomic_table
from dpsr.release.lists.batch import Lists, all_lists
from dpsr.release.lists.batch import table as lists_table
from dpsr.release.lists.ranking import Recommendations
from dpsr.release.personalise.files import check_file, file_metadata, statement
from dpsr.types import OpensOwnRows, PersonalModel, Scale
from dpsr.types.coordinates import Ids, paired

BLOCK = 4_096
"""People at a time: some fifty megabytes, whatever the number of people."""

Progress = Callable[[int, int], None]


class PredictsForAnybody(Protocol):
    """What was released, as far as personal answers are concerned."""

    @property
    def certificate(self) -> Certificate: ...

    @property
    def scale(self) -> Scale: ...

    def predict(self, users: Ids, items: Ids) -> Floats:
        """What is predicted for people who bring no ratings."""


Released = TypeVar("Released", bound=PredictsForAnybody)


class PersonalAnswers(ABC, Generic[Released]):
    """Predictions and lists for people from their own raw ratings: each for its own person, and for nobody else.

    >>> personal = model.personalise(ratings)                                               # doctest: +SKIP
    >>> personal.predict(["ann"], ["heat"]), personal.recommend("ann", n=10)                # doctest: +SKIP
    >>> personal.save("lists.parquet", n=10)                                                # doctest: +SKIP
    """

    def __init__(self, release: Released, ratings: OpensOwnRows, *, block: int | None = None) -> None:
        if not hasattr(ratings, "scale"):
            raise ParameterError(
                f"this release was learned from ratings, found {type(ratings).__name__}. Pass people's own Ratings, on "
                f'its scale: Ratings.read(..., scale="{release.scale}").'
            )
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
    @abstractmethod
    def notes(self) -> tuple[str, ...]:
        """What was left out or done otherwise, in words. Curator's side: the counts are of the raw rows."""

    def brought_ratings(self, users: Ids) -> Bools:
        """Whether own ratings of each of these people were given."""
        mask = self._ratings.mask
        people = mask.user_codes(users)
        return np.asarray((people >= 0) & (mask.user_counts[people] > 0))

    @abstractmethod
    def basis(self, users: Ids, items: Ids) -> Ints:
        """What each prediction rests on, as a place in `files.BASES`."""

    def predict(self, users: Ids, items: Ids) -> Floats:
        """Predicted ratings inside the scale; who brought no ratings gets what the release predicts for them."""
        u, j = np.broadcast_arrays(*paired(users, items))
        predicted, people = self.release.predict(u, j), self._ratings.mask.user_codes(u)
        for some in self._blocks(np.unique(people[people >= 0])):
            here = np.flatnonzero((people >= some[0]) & (people <= some[-1]))
            predicted[here] = self._predicted(some, np.searchsorted(some, people[here]), j[here])
        return predicted

    @abstractmethod
    def recommend(self, user: str | int, n: int = 10, *, exclude_rated: bool = True) -> Recommendations:
        """The `n` items that `user` is most likely to meet and like, from their own ratings: for `user` alone."""

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
        return self._model(np.arange(self.n_people))

    @property
    @abstractmethod
    def _item_ids(self) -> pa.Array:
        """The items that lists may hold."""

    @abstractmethod
    def _model(self, people: Ints) -> PersonalModel:
        """A model of these people (ascending codes), each from their own rows."""

    @abstractmethod
    def _predicted(self, people: Ints, places: Ints, items: npt.NDArray[np.generic]) -> Floats:
        """Predictions for pairs of a place in `people` and an item's id, inside the scale."""

    def _blocks(self, people: Ints) -> Iterator[Ints]:
        """The given people (ascending codes), so many at a time as are served together."""
        for start in np.unique(people // self.block) * self.block:
            yield people[np.searchsorted(people, start) : np.searchsorted(people, start + self.block)]

    def _lists(self, n: int) -> Iterator[tuple[int, pa.Table]]:
        if len(self._item_ids) == 0:
            return
        for some in self._blocks(np.arange(self.n_people)):
            model = self._model(some)
            for lists in all_lists(model, n):
                shown = replace(lists, scores=self._shown(model, lists))
                yield int(some[-1]) + 1, lists_table(model, shown, self._schema)

    def _shown(self, model: PersonalModel, lists: Lists) -> Floats:
        """The ratings that are shown beside the items of lists."""
        return lists.scores

    @cached_property
    def _schema(self) -> pa.Schema:
        ids = self._ratings.mask.user_ids.type, self._item_ids.type
        kinds = [("user", ids[0]), ("rank", pa.int32()), ("item", ids[1]), ("score", pa.float64())]
        return pa.schema(kinds, metadata=file_metadata(self.release.certificate))

    def __repr__(self) -> str:  # never shows a value
        return f"{type(self).__name__}({self.n_people:,} people; {self.statement})"


def check_scale(ours: Scale, theirs: Scale) -> None:
    """Refuse ratings of another scale."""
    if (ours.low, ours.high, ours.step) != (theirs.low, theirs.high, theirs.step):
        raise ScaleError(
            f"people's own ratings must be on the scale of the release, {ours}, found ratings on {theirs}. Read them "
            f"with scale={ours}, or personalise the release that was made from them."
        )
