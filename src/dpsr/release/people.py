"""The release where people or ratings are protected: what is known about items, and people's own ratings with it.

It knows nobody (`release.nobody`): somebody's own ratings and the item side make a model, as `release.lists` ranks any,
for

    rating(u, j) = midpoint + half-width x spread x (level_u + w_u0 + effect_j + w_u . F_j + curve_u(j))

is a product of a person's vector and an item's, if a curve is straight between a few items, and so is how likely
somebody is to meet an item.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dpsr.arrays import AnyInts, Floats, Ints
from dpsr.errors import ParameterError
from dpsr.linalg.own_regression import PeopleRows
from dpsr.release.lists.batch import Lists
from dpsr.release.lists.ranking import Recommendations, best_items
from dpsr.release.nobody import PersonalWithoutPeople, ReleaseOfItems, item_names
from dpsr.synthesis import Look, MadeUpPeople, Synthesis, make_up
from dpsr.types import Affinity, Mask, OpensOwnRows, PersonalModel, Scale
from dpsr.types.coordinates import Ids, id_array, paired
from dpsr.types.id_order import IdOrder
from dpsr.types.item_side import Crowd, ItemSide, OwnSide
from dpsr.types.likes_side import LikesSide
from dpsr.types.placed_likes import PlacedLikes


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
    def meetings(self) -> PlacedLikes:
        """How likely people are to meet items: popularity, and where in the order of ids their own items lie."""
        popularity = np.exp(self.side.log_popularity - self.side.log_popularity.max())
        return PlacedLikes(replace(LikesSide.of_popularity(popularity), crowd=self.crowd), self.index)

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
        _, j = np.broadcast_arrays(*paired(users, items))
        cells = self.index.cells_of(j)
        return self.side.predict(self.side.stranger, np.zeros(len(cells), dtype=np.int64), cells)

    def popular(self, n: int = 10) -> Recommendations:
        """The `n` named items that a stranger is most likely to meet and like."""
        return self.fold_in([], [], n)

    def fold_in(self, items: Ids, values: npt.ArrayLike, n: int = 10) -> Recommendations:
        """Recommendations for one person from their own ratings; nothing is stored."""
        order = IdOrder(id_array(items))
        rows, own = self._own_side(order, values)
        model = model_of(self, pa.array(["you"]), rows, own, order)
        known = self._named(items)
        found = best_items(model, model.scores(0), model.item_factors @ model.user_factors[0], known[known >= 0], n)
        return self.titled(replace(found, scores=self._predicted(order, own, found.items)))

    def predict_own(self, items: Ids, values: npt.ArrayLike, wanted: Ids) -> Floats:
        """One person's ratings of the items `wanted`, from their own ratings of `items`."""
        order = IdOrder(id_array(items))
        return self._predicted(order, self._own_side(order, values)[1], wanted)

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

    def _own_side(self, order: IdOrder, values: npt.ArrayLike) -> tuple[PeopleRows, OwnSide]:
        """One person's rows, and what they say of somebody new: ratings of the items that make the order."""
        ratings = np.atleast_1d(np.asarray(values, dtype=np.float64))
        cells = self.index.cells_of(order.ids)
        if len(cells) != len(ratings):
            raise ParameterError(f"there is one rating per item, found {len(cells)} items, {len(ratings)} ratings.")
        _, on_scale = self.scale.locate(ratings)
        if not on_scale.all():
            raise ParameterError(f"every rating lies on this release's scale, {self.scale}; not all of these do.")
        pointers = np.array([0, len(cells)])
        rows, places = own_rows(pointers, cells, self.scale, ratings), own_places(pointers, cells, order.places())
        return rows, self.side.with_curves(self.side.own_side(rows), rows, places)


def check_takes_new_people(release: object) -> ItemRelease:
    """Refuse to be told that people are new where it makes no difference."""
    if not isinstance(release, ItemRelease):
        raise ParameterError(
            "whether people are new matters where ratings are fitted at unit = 'rating' or 'user'. At 'value' they are "
            "known by their ids, and lists from interactions are made the same way for everybody. Leave it out."
        )
    return release


def own_rows(indptr: Ints, cells: Ints, scale: Scale, values: Floats) -> PeopleRows:
    """Each person's rows by cell; ratings of items that share a cell become their mean, those without a cell go."""
    y = (values - scale.midpoint) / (scale.width / 2)
    return PeopleRows.by_cell(indptr.astype(np.int64), cells, y)


def own_places(indptr: Ints, cells: Ints, places: Ints) -> Ints:
    """The place of each of these rows in the order of ids; items that share a cell have one between them."""
    return PeopleRows.by_cell(indptr.astype(np.int64), cells, places.astype(np.float64)).y.astype(np.int64)


@dataclass(frozen=True, eq=False, repr=False)
class ModelOfPeople(PersonalModel):
    """A model of people together with what their own ratings say."""

    own: OwnSide = field(kw_only=True)


def model_of(
    release: ItemRelease,
    user_ids: pa.Array,
    rows: PeopleRows,
    own: OwnSide,
    order: IdOrder,
    rated: tuple[Ints, AnyInts] | None = None,
) -> ModelOfPeople:
    """The people `user_ids`, known by their rows and what these say, and the items that may be named.

    `order` is the one of their curves; `rated` (pointers, codes of named items) is left out of lists.
    """
    side, index = release.side, release.index
    half = side.scale.width / 2
    gain, m, n = half * side.spread, len(user_ids), len(index.named)
    W, cells = own.coefficients, index.named_cells
    level = side.scale.midpoint + gain * (own.level + W[:, 0])
    curves = own.at_knots(order.places(index.knots.ids))
    users = np.column_stack([level, np.full(m, gain), gain * W[:, 1:], gain * curves])
    items = np.column_stack([np.ones(n), side.effects[cells], side.features[cells], index.knots.hats])
    indptr, seen = (np.zeros(m + 1, dtype=np.int64), np.zeros(0, dtype=np.int32)) if rated is None else rated
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
        affinity=Affinity(release.meetings.people(rows), release.meetings.items(cells)),
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
        ids, rows, places = self._ratings.mask.user_ids.take(pa.array(people)), *self._rows(people)
        return model_of(self.release, ids, rows, self._fit(rows, places), self.order, self._named_items(people))

    def _predicted(self, people: Ints, places: Ints, items: npt.NDArray[np.generic]) -> Floats:
        side, cells = self.release.side, self.release.index.cells_of(items)
        return side.predict(self.own_side(people), places, cells, self.order.places(items))

    def own_side(self, people: Ints) -> OwnSide:
        """What the own ratings of these people (ascending codes) say, each for themselves."""
        return self._fit(*self._rows(people))

    def _rows(self, people: Ints) -> tuple[PeopleRows, Ints]:
        """Own rows of people, and the place of each in the order of ids."""
        indptr, items, values = self._opened(people)
        cells = self._cells[items]
        places = own_places(indptr, cells, self.order.places()[items])
        return own_rows(indptr, cells, self.release.scale, values), places

    def _fit(self, rows: PeopleRows, places: Ints) -> OwnSide:
        side = self.release.side
        own = side.own_side(rows) if self.new_people else side.own_side_of_fitted(rows)
        return side.with_curves(own, rows, places)

    @cached_property
    def order(self) -> IdOrder:
        """In which the items of these people lie."""
        return IdOrder(self._ratings.mask.item_ids)
