"""An item side with its certificate: nothing about anybody, and enough to predict from one's own ratings."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dpsr.arrays import Floats
from dpsr.errors import ParameterError
from dpsr.linalg.own_regression import PeopleRows
from dpsr.release.lists.ranking import Recommendations, best_items
from dpsr.release.people.knows_nobody import ReleaseOfItems, item_names
from dpsr.release.people.model import model_of, own_rows
from dpsr.release.people.personalised import PersonalisedPeople
from dpsr.synthesis.people import MadeUpPeople, make_up
from dpsr.types import Scale
from dpsr.types.item_side import Crowd, ItemSide
from dpsr.types.mask import Ids
from dpsr.types.personal import OpensOwnRows


@dataclass(frozen=True, eq=False, repr=False)
class ItemRelease(ReleaseOfItems[ItemSide]):
    """See `ReleaseOfItems`; people rate, and `certificate.unit` is "rating" or "user"."""

    method: str = "people"
    nobody = (
        "a release that protects people, or that a rating exists, knows nobody, so it has no list for a user. Pass "
        "people's own ratings: personalise(ratings).recommend(user), or fold_in(items, values) for one person "
        "(on the command line: dpsr personalise, or --rated ITEM=RATING)."
    )

    @property
    def crowd(self) -> Crowd:
        """How many people there are and what they meet, as noisy answers say."""
        assert self.side.crowd is not None, "an item side is released after all questions"
        return self.side.crowd

    @cached_property
    def made_up(self) -> MadeUpPeople | None:
        """The made-up people that the folder holds."""
        return None if self.synthetic is None else make_up(self.side, self.synthetic)

    @property
    def synthetic_rows(self) -> pa.Table | None:
        """Their ratings: user, item, rating. People are numbered from 1."""
        people = self.made_up
        if people is None:
            return None
        items, ratings = item_names(self.index, people.cells), self.scale.values[people.places]
        return pa.table({"user": people.owners + 1, "item": items, "rating": ratings})

    @property
    def scale(self) -> Scale:
        return self.side.scale

    def predict(self, users: Ids, items: Ids) -> Floats:
        """What a stranger is expected to give these items: the release knows nobody, so `users` only set the shape."""
        _, j = np.broadcast_arrays(np.atleast_1d(np.asarray(users)), np.atleast_1d(np.asarray(items)))
        cells = self.index.cells_of(j.ravel())
        return self.side.predict(self.side.stranger, np.zeros(len(cells), dtype=np.int64), cells).reshape(j.shape)

    def popular(self, n: int = 10) -> Recommendations:
        """The `n` named items that a stranger is most likely to meet and like."""
        return self.fold_in([], [], n)

    def fold_in(self, items: Ids, values: npt.ArrayLike, n: int = 10) -> Recommendations:
        """Recommendations for one person from their own ratings; nothing is stored."""
        rows = self._rows(items, values)
        model = model_of(self.side, self.index, pa.array(["you"]), self.side.own_side(rows))
        known = self._named(items)
        scores = model.scores(0)
        return self.titled(best_items(model, scores, model.item_factors @ model.user_factors[0], known[known >= 0], n))

    def predict_own(self, items: Ids, values: npt.ArrayLike, wanted: Ids) -> Floats:
        """One person's ratings of the items `wanted`, from their own ratings of `items`."""
        rows = self._rows(items, values)
        own = self.side.own_side(rows)
        cells = self.index.cells_of(wanted)
        return self.side.predict(own, np.zeros(len(cells), dtype=np.int64), cells)

    def personalise(
        self, ratings: OpensOwnRows, *, block: int | None = None, new_people: bool = False
    ) -> PersonalisedPeople:
        """Predictions and lists for each person from their own raw ratings and the release: for that person alone.

        `block` is how many people are served at a time; it bounds memory and changes no list. Where these are
        `new_people`, of whose ratings nothing was learned, no own ratings are taken out of what is known about items.
        """
        return PersonalisedPeople(self, ratings, block=block, new_people=new_people)

    def save(self, path: str | Path, *, overwrite: bool = False, people: int | None = None) -> Path:
        """Write the release folder, whole or not at all; with so many made-up people, or those it has."""
        from dpsr.release.folder.write import write_release

        contents = self if people is None else self.with_people(people)
        return write_release(contents, Path(path), overwrite=overwrite)

    def _rows(self, items: Ids, values: npt.ArrayLike) -> PeopleRows:
        ratings = np.atleast_1d(np.asarray(values, dtype=np.float64))
        cells = self.index.cells_of(items)
        if len(cells) != len(ratings):
            raise ParameterError(f"there is one rating per item, found {len(cells)} items, {len(ratings)} ratings.")
        _, on_scale = self.scale.locate(ratings)
        if not on_scale.all():
            raise ParameterError(f"every rating lies on this release's scale, {self.scale}; not all of these do.")
        return own_rows(np.array([0, len(cells)]), cells, self.scale, ratings)


def check_takes_new_people(release: object) -> ItemRelease:
    """Refuse to be told that people are new where it makes no difference."""
    if not isinstance(release, ItemRelease):
        raise ParameterError(
            "whether people are new matters where ratings are fitted at unit = 'rating' or 'user'. At 'value' they are "
            "known by their ids, and lists from interactions are made the same way for everybody. Leave it out."
        )
    return release
