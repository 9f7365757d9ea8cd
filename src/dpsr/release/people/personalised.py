"""Personal answers where people are protected: the release knows nobody, so all that is personal is brought along.

Somebody's own ratings and an item side make a model, as `release.lists` ranks any:

    rating(u, j) = midpoint + half-width x spread x (level_u + w_u0 + effect_j + w_u . F_j)

is a product of a person's vector and an item's. How likely somebody is to meet an item is its popularity.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dpsr.arrays import AnyInts, Floats, Ints
from dpsr.linalg.own_regression import PeopleRows
from dpsr.release.lists.ranking import Recommendations, best_items
from dpsr.release.personalise.personal_answers import PersonalAnswers, PredictsForAnybody
from dpsr.types import Affinity, Mask, OpensOwnRows, PersonalModel, Scale
from dpsr.types.item_side import ItemIndex, ItemSide, OwnSide
from dpsr.types.mask import Ids

if TYPE_CHECKING:
    from dpsr.release.people.item_release import ItemRelease


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
        """Own rows of consecutive or single people, opened for them alone: pointers, cells and values."""
        start, stop = int(people[0]), int(people[-1]) + 1
        opened = self._ratings.own_rows(start, stop)
        places = np.concatenate([np.arange(opened.indptr[p - start], opened.indptr[p - start + 1]) for p in people])
        indptr = np.concatenate([[0], np.cumsum(self._ratings.mask.user_counts[people])])
        return indptr, self._cells[opened.items[places]], opened.values[places]

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


def model_of(
    side: ItemSide,
    index: ItemIndex,
    user_ids: pa.Array,
    own: OwnSide,
    rated: tuple[Ints, AnyInts] | None = None,
) -> PersonalModel:
    """The people `user_ids`, known by their own side, and the items that may be named.

    `rated` (pointers, codes of named items) is left out of lists.
    """
    half = side.scale.width / 2
    gain, m, n = half * side.spread, len(user_ids), len(index.named)
    W, cells = own.coefficients, index.named_cells
    level = side.scale.midpoint + gain * (own.level + W[:, 0])
    users = np.column_stack([level, np.full(m, gain), gain * W[:, 1:]])
    items = np.column_stack([np.ones(n), side.effects[cells], side.features[cells]])
    indptr, seen = (np.zeros(m + 1, dtype=np.int64), np.zeros(0, dtype=np.int32)) if rated is None else rated
    popularity = np.exp(side.log_popularity[cells] - side.log_popularity.max())
    stranger = side.stranger
    overall = float(side.scale.midpoint + gain * (stranger.level[0] + side.mean[0]))
    k = users.shape[1]
    return PersonalModel(
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
    )


class PersonalisedPeople(PersonalWithoutPeople["ItemRelease"]):
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
        return self.release.titled(found)

    def _model(self, people: Ints) -> PersonalModel:
        ids, index = self._ratings.mask.user_ids.take(pa.array(people)), self.release.index
        return model_of(self.release.side, index, ids, self._own_side(people), self._named_items(people))

    def _predicted(self, people: Ints, places: Ints, items: npt.NDArray[np.generic]) -> Floats:
        return self.release.side.predict(self._own_side(people), places, self.release.index.cells_of(items))

    def _own_side(self, people: Ints) -> OwnSide:
        indptr, cells, values = self._opened(people)
        rows, side = own_rows(indptr, cells, self.release.scale, values), self.release.side
        return side.own_side(rows) if self.new_people else side.own_side_of_fitted(rows)
