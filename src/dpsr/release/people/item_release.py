"""Releases that know nobody: what is known about items with its certificate, enough to predict from one's own rows.

An index says which items may be named. `ReleaseOfItems` is what such releases share, whether people rate or not;
`ItemRelease` is the one where they rate. Everybody's side is computed from their own rows and the release alone.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dpsr.arrays import Floats, Ints
from dpsr.certify import Certificate
from dpsr.errors import ParameterError
from dpsr.linalg.own_regression import PeopleRows
from dpsr.release.lists.ranking import Recommendations, Tabular, best_items, html_table
from dpsr.release.people.personalised import PersonalisedPeople, model_of, own_rows
from dpsr.synthesis.people import MadeUpPeople, Synthesis, make_up, usual_people
from dpsr.types import Catalogue, Scale
from dpsr.types.item_side import Crowd, ItemIndex, ItemSide
from dpsr.types.mask import Ids
from dpsr.types.personal import OpensOwnRows

Side = TypeVar("Side")

CELL = "cell:"
"""With its number, what a cell is called whose items may not be named; the public hash leads from an id to its cell."""


@dataclass(frozen=True, eq=False)
class ReleaseOfItems(Tabular, Generic[Side]):
    """What may be shown to everybody where people, or what they did, are protected.

    `side` is what is known about cells of items, `index` says which cell an item has and which items may be named.
    """

    side: Side
    index: ItemIndex
    certificate: Certificate
    method: str = ""
    settings: dict[str, Any] = field(default_factory=dict)
    titles: list[str | None] | None = None
    """What the named items are called, where it is known."""

    synthetic: Synthesis | None = None
    """Which made-up people the folder holds; none unless told (`with_people`)."""

    nobody: ClassVar[str]
    """Why there is no list for a user, and what to do instead."""

    def with_titles(self, catalogue: Catalogue) -> Self:
        """The same release whose lists and card name items by their titles, where the catalogue has one."""
        return replace(self, titles=catalogue.titles_of(self.index.named))

    def titled(self, found: Recommendations) -> Recommendations:
        """A list with titles, if there are any."""
        if self.titles is None:
            return found
        return replace(found, titles=[self.titles[code] for code in self._named(found.items).tolist()])

    @property
    @abstractmethod
    def crowd(self) -> Crowd:
        """How many people there are and what they meet, as noisy answers say."""

    @property
    @abstractmethod
    def synthetic_rows(self) -> pa.Table | None:
        """The rows of the made-up people that the folder holds."""

    def with_people(self, people: int | None = None, *, seed: int = 0) -> Self:
        """The same release whose folder holds so many made-up people: about as many as there are unless told, 0 none.

        Numbers are noisy, so the usual one tells nothing. The seed is public: it hides nothing.
        """
        wanted = usual_people(self.crowd) if people is None else people
        return replace(self, synthetic=None if wanted == 0 else Synthesis(wanted, seed))

    def synthesise(self, people: int | None = None, *, seed: int = 0) -> pa.Table:
        """Rows (user, item, and a rating where people rate) of people who do not exist, drawn from this release: any
        recommender can learn from them. Free: nothing but the release is read. The same number and seed give the same
        people.

        >>> release.synthesise(10_000).to_pandas()                                          # doctest: +SKIP
        """
        rows = self.with_people(usual_people(self.crowd) if people is None else people, seed=seed).synthetic_rows
        if rows is None:
            raise ParameterError("at least one person is made up, found 0. Say how many, or leave it out.")
        return rows

    def synthetic_items(self, items: Ids) -> pa.Array:
        """How made-up people call these items: by name where they may be named, else by their cell."""
        cells = self.index.cells_of(items)
        if (cells < 0).any():
            raise ParameterError("an item outside the declared list is in no release, nor in a table made from one.")
        return item_names(self.index, cells)

    @property
    def contents(self) -> Self:
        """What its folder holds."""
        return self

    def recommend(self, user: Any, n: int = 10, **_: Any) -> Recommendations:
        """Refused: there are no users in this release."""
        raise ParameterError(self.nobody)

    def recommend_all(self, path: str | Path, n: int = 10, **_: Any) -> Path:
        """Refused: there are no users in this release."""
        raise ParameterError(self.nobody)

    def save(self, path: str | Path, *, overwrite: bool = False, people: int | None = None) -> Path:
        """Write the release folder, whole or not at all; with so many made-up people, or those it has."""
        from dpsr.release.folder.write import write_release

        contents: Any = self if people is None else self.with_people(people)
        return write_release(contents, Path(path), overwrite=overwrite)

    def _named(self, items: Ids) -> Ints:
        return self.index.named_codes(items)

    def to_arrow(self) -> pa.Table:
        """The rows of the made-up people: the table to share, since nobody real is in the release."""
        return self.synthesise() if self.synthetic_rows is None else self.synthetic_rows

    def _repr_html_(self) -> str:
        facts = {
            "promise": str(self.certificate),
            "exact epsilon": repr(self.certificate.epsilon),
            "method": self.method,
            "cells of items": f"{self.index.n_cells:,}",
            "items by name": f"{len(self.index.named):,}",
            "people": "none; to_pandas() has made-up ones",
        }
        return html_table(pa.table({"release": list(facts), "": list(facts.values())}))

    def __repr__(self) -> str:
        named = f"{len(self.index.named):,} items by name" if self.index.declared is None else "a declared catalogue"
        return f"{type(self).__name__}({self.index.n_cells:,} cells, {named}, {self.certificate})"


def item_names(index: ItemIndex, cells: Ints) -> pa.Array:
    """What made-up people call the items of these cells: by name where they may be named, else by the cell.

    Items that share a cell share a name; of several that may be named, the first one's.
    """
    if index.declared is not None:
        return index.declared.take(pa.array(cells))
    distinct, places = np.unique(cells, return_inverse=True)
    names: dict[int, str] = {}
    for cell, name in zip(index.named_cells.tolist(), map(str, index.named.to_pylist()), strict=True):
        if not name.startswith(CELL):
            names.setdefault(cell, name)
    called = pa.array([names.get(cell, f"{CELL}{cell}") for cell in distinct.tolist()], type=pa.string())
    return called.take(pa.array(places.ravel()))


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
