"""The release where nobody rates: popularity and taste with their certificate, and people's own doings with them.

It knows nobody, so all that is personal is brought along: what somebody did and the likes side make a model, as
`release.lists` ranks any. A score is a product of a person's vector and an item's (`types.likes_side`): how popular the
item is with somebody like them, next to the most popular item of all with a stranger. It is no rating and has no scale.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dpsr.arrays import AnyInts, Floats, Ints
from dpsr.errors import ParameterError
from dpsr.linalg.own_regression import PeopleRows
from dpsr.release.lists.ranking import Recommendations, best_items, check_number, score_pairs
from dpsr.release.nobody import PersonalWithoutPeople, ReleaseOfItems, item_names
from dpsr.synthesis import Look, MadeUpLikes, Synthesis, make_up_likes
from dpsr.types import Mask, PersonalModel, Scale
from dpsr.types.coordinates import Ids, id_array, paired
from dpsr.types.item_side import Crowd
from dpsr.types.likes_side import LikesSide, strengths
from dpsr.types.personal import OpensInteractions, OwnRows
from dpsr.types.placed_likes import PlacedLikes

UNCLIPPED = Scale(-1e9, 1e9, step=1e9)
"""Wider than any score."""


@dataclass(frozen=True, eq=False, repr=False)
class LikesRelease(ReleaseOfItems[LikesSide]):
    """See `ReleaseOfItems`; nobody rates, and interactions are protected."""

    method: str = "likes"

    nobody = (
        "a release that protects people knows nobody, so it has no list for a user. Pass people's own interactions: "
        "personalise(interactions).recommend(user), or fold_in(items) for one person "
        "(on the command line: dpsr personalise, or --liked ITEM)."
    )

    @property
    def crowd(self) -> Crowd:
        """See `ReleaseOfItems`."""
        assert self.side.crowd is not None, "a likes side is released after all questions"
        return self.side.crowd

    @cached_property
    def placed(self) -> PlacedLikes:
        """The side with its cells in the order of ids: what personal lists are made from."""
        return PlacedLikes(self.side, self.index)

    @cached_property
    def made_up(self) -> MadeUpLikes | None:
        """The made-up people that the folder holds."""
        return None if self.synthetic is None else make_up_likes(self.side, self.synthetic)

    @property
    def synthetic_rows(self) -> pa.Table | None:
        """What they did: user, item."""
        return None if self.made_up is None else self._table_of(self.made_up)

    def rows_drawn(self, asked: Synthesis, look: Look) -> pa.Table:
        """See `ReleaseOfItems`."""
        return self._table_of(make_up_likes(self.side, asked, look))

    def _table_of(self, people: MadeUpLikes) -> pa.Table:
        return pa.table({"user": people.owners + 1, "item": item_names(self.index, people.cells)})

    @property
    def scale(self) -> Scale:
        """Scores have none: wider than any of them."""
        return UNCLIPPED

    def predict(self, users: Ids, items: Ids) -> Floats:
        """Popularity of these items: the release knows nobody, so `users` only set the shape; 0 for unknown items."""
        _, j = np.broadcast_arrays(*paired(users, items))
        cells = self.index.cells_of(id_array(j))
        return np.where(cells >= 0, self.side.popularity[np.maximum(cells, 0)], 0.0)

    def popular(self, n: int = 10) -> Recommendations:
        """The `n` named items that are most popular."""
        return self.fold_in([], n=n)

    def fold_in(self, items: Ids, weights: npt.ArrayLike | None = None, n: int = 10) -> Recommendations:
        """A list for one person from what they did themselves, perhaps with a weight for each; nothing is stored."""
        ids = id_array(items)
        given = np.ones(len(ids)) if weights is None else np.atleast_1d(np.asarray(weights, dtype=np.float64))
        if len(given) != len(ids) or not np.isfinite(given).all() or not (given > 0).all():
            raise ParameterError("there is one weight per item, a finite number above 0; leave weights out if none.")
        check_number(n)
        if len(self.index.named) == 0:
            return Recommendations([], np.zeros(0))
        rows = own_rows(np.array([0, len(ids)]), self.index.cells_of(ids), given)
        model = model_of(self.placed, pa.array(["you"]), rows)
        codes = np.arange(len(self.index.named))
        scores = score_pairs(model, np.zeros(len(codes), dtype=np.int64), codes).scores
        known = self._named(ids)
        return self.titled(best_items(model, scores, scores, known[known >= 0], n))

    def personalise(self, interactions: OpensInteractions, *, block: int | None = None) -> PersonalisedLikes:
        """Lists for each person from their own raw interactions and the release: for that person alone.

        `block` is how many people are served at a time; it bounds memory and changes no list.
        """
        return PersonalisedLikes(self, interactions, block=block)


def own_rows(indptr: Ints, cells: Ints, weights: Floats) -> PeopleRows:
    """Each person's strengths by cell; of items that share a cell, their mean; those without a cell go."""
    pointers = np.asarray(indptr, dtype=np.int64)
    return PeopleRows.by_cell(pointers, cells, strengths(pointers, np.asarray(weights, dtype=np.float64)))


def model_of(
    placed: PlacedLikes, user_ids: pa.Array, rows: PeopleRows, done: tuple[Ints, AnyInts] | None = None
) -> PersonalModel:
    """The people `user_ids` and the items that may be named; `done` (pointers, codes of named items) is left out."""
    index = placed.index
    users, items = placed.people(rows), placed.items(index.named_cells)
    m, k = users.shape
    indptr, codes = (np.zeros(m + 1, dtype=np.int64), np.zeros(0, dtype=np.int32)) if done is None else done
    return PersonalModel(
        mask=Mask(user_ids, index.named, np.asarray(indptr, dtype=np.int64), codes.astype(np.int32)),
        scale=UNCLIPPED,
        user_factors=users,
        item_factors=items,
        user_means=np.zeros(m),
        item_means=items[:, 0],
        overall=0.0,
        residual_variance=1.0,
        user_mean=np.zeros(k),
        user_covariance=np.zeros((k, k)),
    )


class _Scaleless:
    """Interactions as `PersonalAnswers` opens ratings: on a scale wider than any weight."""

    def __init__(self, interactions: OpensInteractions) -> None:
        self._own = interactions

    @property
    def mask(self) -> Mask:
        return self._own.mask

    @property
    def scale(self) -> Scale:
        return UNCLIPPED

    def own_rows(self, start: int, stop: int) -> OwnRows:
        """The rows of the people with codes `start` to `stop`; their values are weights."""
        return self._own.own_rows(start, stop)


class PersonalisedLikes(PersonalWithoutPeople[LikesRelease]):
    """See `PersonalAnswers`; scores and lists come from people's own interactions and the release alone."""

    release: LikesRelease
    left_out = "interactions are with items outside the declared catalogue: they were left out."

    def __init__(self, release: LikesRelease, interactions: OpensInteractions, *, block: int | None = None) -> None:
        if hasattr(interactions, "scale") or not hasattr(interactions, "own_rows"):
            raise ParameterError(
                f"this release was learned from interactions, found {type(interactions).__name__}. Pass Interactions: "
                "every row as one with Interactions.read(...), or ratings that are liked with "
                "ratings.liked(at_least=4)."
            )
        super().__init__(release, _Scaleless(interactions), block=block)

    def recommend(self, user: str | int, n: int = 10, *, exclude_rated: bool = True) -> Recommendations:
        """The `n` named items that suit `user` best, from what they did themselves: for `user` alone."""
        person = self._ratings.mask.user_codes([user])
        if person[0] < 0 or len(self._item_ids) == 0:
            return self.release.popular(n)
        model = self._model(person)
        assert isinstance(model.mask, Mask)
        codes = np.arange(model.mask.n_items)
        scores = score_pairs(model, np.zeros(len(codes), dtype=np.int64), codes).scores
        done = model.mask.items if exclude_rated else model.mask.items[:0]
        return self.release.titled(best_items(model, scores, scores, done, n))

    def _model(self, people: Ints) -> PersonalModel:
        ids = self._ratings.mask.user_ids.take(pa.array(people))
        return model_of(self.release.placed, ids, self._rows(people), self._named_items(people))

    def _predicted(self, people: Ints, places: Ints, items: npt.NDArray[np.generic]) -> Floats:
        placed, cells = self.release.placed, self.release.index.cells_of(items)
        scores = (placed.people(self._rows(people))[places] * placed.items(np.maximum(cells, 0))).sum(axis=1)
        return np.where(cells >= 0, scores, 0.0)

    def _rows(self, people: Ints) -> PeopleRows:
        indptr, items, weights = self._opened(people)
        return own_rows(indptr, self._cells[items], weights)
