"""The release where people or ratings are protected: what is known about items, and people's own ratings with it.

A release has an item side, its certificate, and an index that says which items may be named; nothing in it is about
anybody. `ReleaseOfItems` is what such releases share, whether people rate or not; `ItemRelease` is the one where they
rate. It knows nobody, so all that is personal is brought along: somebody's own ratings and the item side make a model,
as `release.lists` ranks any, for

    rating(u, j) = midpoint + half-width x spread x (level_u + w_u0 + effect_j + w_u . F_j)

is a product of a person's vector and an item's. How likely somebody is to meet an item is its popularity.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dpsr.arrays import AnyInts, Floats, Ints
from dpsr.certify import Certificate
from dpsr.errors import ParameterError
from dpsr.linalg.own_regression import PeopleRows
from dpsr.release.lists.batch import Lists
from dpsr.release.lists.ranking import Recommendations, Tabular, best_items, html_table
from dpsr.release.personalise.personal_answers import PersonalAnswers, PredictsForAnybody
from dpsr.synthesis import Look, MadeUpPeople, Synthesis, make_up, usual_people
from dpsr.types import Affinity, Catalogue, Mask, OpensOwnRows, PersonalModel, Scale
from dpsr.types.coordinates import Ids, id_array
from dpsr.types.id_order import IdOrder
from dpsr.types.item_side import Crowd, ItemIndex, ItemSide, OwnSide

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

    @abstractmethod
    def rows_drawn(self, asked: Synthesis, look: Look) -> pa.Table:
        """The rows of made-up people, drawn while `look` is shown who met what."""

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
        return None if self.made_up is None else self._table_of(self.made_up)

    def rows_drawn(self, asked: Synthesis, look: Look) -> pa.Table:
        """See `ReleaseOfItems`."""
        return self._table_of(make_up(self.side, asked, look))

    def _table_of(self, people: MadeUpPeople) -> pa.Table:
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
        order = IdOrder(id_array(items))
        own = self._own_side(order, values)
        model = model_of(self.side, self.index, pa.array(["you"]), own, order)
        known = self._named(items)
        found = best_items(model, model.scores(0), model.item_factors @ model.user_factors[0], known[known >= 0], n)
        return self.titled(replace(found, scores=self._predicted(order, own, found.items)))

    def predict_own(self, items: Ids, values: npt.ArrayLike, wanted: Ids) -> Floats:
        """One person's ratings of the items `wanted`, from their own ratings of `items`."""
        order = IdOrder(id_array(items))
        return self._predicted(order, self._own_side(order, values), wanted)

    def personalise(
        self, ratings: OpensOwnRows, *, block: int | None = None, new_people: bool = False
    ) -> PersonalisedPeople:
        """Predictions and lists for each person from their own raw ratings and the release: for that person alone.

        `block` is how many people are served at a time; it bounds memory and changes no list. Where these are
        `new_people`, of whose ratings nothing was learned, no own ratings are taken out of what is known about items.
        """
        return PersonalisedPeople(self, ratings, block=block, new_people=new_people)

    def _predicted(self, order: IdOrder, own: OwnSide, wanted: Ids) -> Floats:
        cells = self.index.cells_of(wanted)
        return self.side.predict(own, np.zeros(len(cells), dtype=np.int64), cells, order.places(wanted))

    def _own_side(self, order: IdOrder, values: npt.ArrayLike) -> OwnSide:
        """One person's, new to the release, from their ratings of the items that make the order."""
        ratings = np.atleast_1d(np.asarray(values, dtype=np.float64))
        cells = self.index.cells_of(order.ids)
        if len(cells) != len(ratings):
            raise ParameterError(f"there is one rating per item, found {len(cells)} items, {len(ratings)} ratings.")
        _, on_scale = self.scale.locate(ratings)
        if not on_scale.all():
            raise ParameterError(f"every rating lies on this release's scale, {self.scale}; not all of these do.")
        rows = own_rows(np.array([0, len(cells)]), cells, self.scale, ratings)
        return self.side.with_curves(self.side.own_side(rows), rows, order.places())


def check_takes_new_people(release: object) -> ItemRelease:
    """Refuse to be told that people are new where it makes no difference."""
    if not isinstance(release, ItemRelease):
        raise ParameterError(
            "whether people are new matters where ratings are fitted at unit = 'rating' or 'user'. At 'value' they are "
            "known by their ids, and lists from interactions are made the same way for everybody. Leave it out."
        )
    return release


class KnowsNobody(PredictsForAnybody, Protocol):
    """A release of items, as far as personal answers are concerned."""

    @property
    def index(self) -> ItemIndex: ...


Released = TypeVar("Released", bound=KnowsNobody)


class PersonalWithoutPeople(PersonalAnswers[Released]):
    """Personal answers where all that is personal is brought along."""

    left_out: ClassVar[str]
    """What is said of rows at items outside a declared catalogue, after their number."""

    @property
    def notes(self) -> tuple[str, ...]:
        return (f"{self.dropped:,} {self.left_out}",) if self.dropped else ()

    @cached_property
    def dropped(self) -> int:
        """Rows at items outside a declared catalogue: they are left out."""
        return int(self._ratings.mask.item_counts[self._cells < 0].sum())

    def basis(self, users: Ids, items: Ids) -> Ints:
        unknown = (self.release.index.cells_of(items) < 0).astype(np.int64)
        return np.where(self.brought_ratings(users), unknown, 3 + 2 * unknown)

    @property
    def _item_ids(self) -> pa.Array:
        return self.release.index.named

    def _named_items(self, people: Ints) -> tuple[Ints, Ints]:
        """What these people have done already: pointers, and codes of named items, ascending for each."""
        mask = self._ratings.mask
        codes = np.concatenate([self._named[mask.items[mask.indptr[p] : mask.indptr[p + 1]]] for p in people])
        owner = np.repeat(np.arange(len(people)), mask.user_counts[people])
        n = max(len(self.release.index.named), 1)
        done = np.unique((owner * n + codes)[codes >= 0])  # 007 and 7 may be one name
        return np.searchsorted(done, n * np.arange(len(people) + 1)), done % n

    def _opened(self, people: Ints) -> tuple[Ints, Ints, Floats]:
        """Own rows of consecutive or single people, opened for them alone: pointers, codes of items and values."""
        start, stop = int(people[0]), int(people[-1]) + 1
        opened = self._ratings.own_rows(start, stop)
        places = np.concatenate([np.arange(opened.indptr[p - start], opened.indptr[p - start + 1]) for p in people])
        indptr = np.concatenate([[0], np.cumsum(self._ratings.mask.user_counts[people])])
        return indptr, opened.items[places], opened.values[places]

    @cached_property
    def _cells(self) -> Ints:
        return self.release.index.cells_of(self._ratings.mask.item_ids)

    @cached_property
    def _named(self) -> Ints:
        return self.release.index.named_codes(self._ratings.mask.item_ids)


def own_rows(indptr: Ints, cells: Ints, scale: Scale, values: Floats) -> PeopleRows:
    """Each person's rows by cell; ratings of items that share a cell become their mean, those without a cell go."""
    y = (values - scale.midpoint) / (scale.width / 2)
    return PeopleRows.by_cell(indptr.astype(np.int64), cells, y)


@dataclass(frozen=True, eq=False, repr=False)
class ModelOfPeople(PersonalModel):
    """A model of people together with what their own ratings say."""

    own: OwnSide = field(kw_only=True)


def model_of(
    side: ItemSide,
    index: ItemIndex,
    user_ids: pa.Array,
    own: OwnSide,
    order: IdOrder,
    rated: tuple[Ints, AnyInts] | None = None,
) -> ModelOfPeople:
    """The people `user_ids`, known by their own side, and the items that may be named.

    `order` is the one of their curves; `rated` (pointers, codes of named items) is left out of lists.
    """
    half = side.scale.width / 2
    gain, m, n = half * side.spread, len(user_ids), len(index.named)
    W, cells = own.coefficients, index.named_cells
    level = side.scale.midpoint + gain * (own.level + W[:, 0])
    curves = own.at_knots(order.places(index.knots.ids))
    users = np.column_stack([level, np.full(m, gain), gain * W[:, 1:], gain * curves])
    items = np.column_stack([np.ones(n), side.effects[cells], side.features[cells], index.knots.hats])
    indptr, seen = (np.zeros(m + 1, dtype=np.int64), np.zeros(0, dtype=np.int32)) if rated is None else rated
    popularity = np.exp(side.log_popularity[cells] - side.log_popularity.max())
    stranger = side.stranger
    overall = float(side.scale.midpoint + gain * (stranger.level[0] + side.mean[0]))
    k = users.shape[1]
    return ModelOfPeople(
        mask=Mask(user_ids, index.named, np.asarray(indptr, dtype=np.int64), seen.astype(np.int32)),
        scale=side.scale,
        user_factors=users,
        item_factors=items,
        user_means=side.scale.clip(level),
        item_means=side.scale.clip(overall + gain * side.effects[cells]),
        overall=overall,
        residual_variance=gain**2 * side.residual,
        user_mean=np.zeros(k),
        user_covariance=np.zeros((k, k)),
        affinity=Affinity(np.ones((m, 1)), popularity[:, None]),
        own=own,
    )


class PersonalisedPeople(PersonalWithoutPeople[ItemRelease]):
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
        return self.release.titled(replace(found, scores=self.predict([user], found.items)))

    def _shown(self, model: PersonalModel, lists: Lists) -> Floats:
        """Lists are found with curves that are straight between knots, and show what is predicted."""
        assert isinstance(model, ModelOfPeople)
        cells, places = self.release.index.named_cells[lists.items], self._named_places[lists.items]
        return self.release.side.predict(model.own, lists.users, cells, places)

    @cached_property
    def _named_places(self) -> Ints:
        return self.order.places(self.release.index.named)

    def _model(self, people: Ints) -> PersonalModel:
        ids, index = self._ratings.mask.user_ids.take(pa.array(people)), self.release.index
        return model_of(self.release.side, index, ids, self.own_side(people), self.order, self._named_items(people))

    def _predicted(self, people: Ints, places: Ints, items: npt.NDArray[np.generic]) -> Floats:
        side, cells = self.release.side, self.release.index.cells_of(items)
        return side.predict(self.own_side(people), places, cells, self.order.places(items))

    def own_side(self, people: Ints) -> OwnSide:
        """What the own ratings of these people (ascending codes) say, each for themselves."""
        indptr, items, values = self._opened(people)
        rows, side = own_rows(indptr, self._cells[items], self.release.scale, values), self.release.side
        own = side.own_side(rows) if self.new_people else side.own_side_of_fitted(rows)
        return side.with_curves(own, rows, self.order.places()[items])

    @cached_property
    def order(self) -> IdOrder:
        """In which the items of these people lie."""
        return IdOrder(self._ratings.mask.item_ids)
