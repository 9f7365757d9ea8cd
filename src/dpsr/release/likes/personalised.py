"""Personal lists where nobody rates: the release knows nobody, so all that is personal is brought along."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dpsr.arrays import Floats, Ints
from dpsr.errors import ParameterError
from dpsr.linalg.rows import PeopleRows
from dpsr.release.likes.model import UNCLIPPED, model_of, own_rows
from dpsr.release.lists.ranking import Recommendations, best_items, score_pairs
from dpsr.release.personalise.base import PersonalAnswers
from dpsr.types import Mask, PersonalModel
from dpsr.types.mask import Ids, codes_of
from dpsr.types.personal import OpensInteractions, OwnRows
from dpsr.types.scale import Scale

if TYPE_CHECKING:
    from dpsr.release.likes.likes_release import LikesRelease


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


class PersonalisedLikes(PersonalAnswers["LikesRelease"]):
    """See `PersonalAnswers`; scores and lists come from people's own interactions and the release alone."""

    release: LikesRelease

    def __init__(self, release: LikesRelease, interactions: OpensInteractions, *, block: int | None = None) -> None:
        if hasattr(interactions, "scale"):
            raise ParameterError(
                "this release was learned from interactions, and these are ratings. Pass Interactions: every rating "
                "as one with Interactions.read(...), or those that are liked with ratings.liked(at_least=4)."
            )
        super().__init__(release, _Scaleless(interactions), block=block)

    @property
    def notes(self) -> tuple[str, ...]:
        words = "interactions are with items outside the declared catalogue: they were left out."
        return (f"{self.dropped:,} {words}",) if self.dropped else ()

    @cached_property
    def dropped(self) -> int:
        """Rows at items outside a declared catalogue: they are left out."""
        return int(self._ratings.mask.item_counts[self._cells < 0].sum())

    def basis(self, users: Ids, items: Ids) -> Ints:
        unknown = (self.release.index.cells_of(items) < 0).astype(np.int64)
        return np.where(self.brought_ratings(users), unknown, 3 + 2 * unknown)

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

    @property
    def _item_ids(self) -> pa.Array:
        return self.release.index.named

    def _model(self, people: Ints) -> PersonalModel:
        mask = self._ratings.mask
        places = np.concatenate([np.arange(mask.indptr[p], mask.indptr[p + 1]) for p in people])
        codes, counts = self._named[mask.items[places]], mask.user_counts[people]
        owner = np.repeat(np.arange(len(people)), counts)
        named = codes >= 0
        codes, owner = codes[named], owner[named]
        indptr = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=len(people)))])
        done = codes[np.lexsort((codes, owner))]
        ids = mask.user_ids.take(pa.array(people))
        return model_of(self.release.side, self.release.index, ids, self._rows(people), (indptr, done))

    def _predicted(self, people: Ints, places: Ints, items: npt.NDArray[np.generic]) -> Floats:
        side, cells = self.release.side, self.release.index.cells_of(items)
        scores = (side.people(self._rows(people))[places] * side.items(np.maximum(cells, 0))).sum(axis=1)
        return np.where(cells >= 0, scores, 0.0)

    def _rows(self, people: Ints) -> PeopleRows:
        """Own rows of consecutive or single people, opened for them alone."""
        mask = self._ratings.mask
        start, stop = int(people[0]), int(people[-1]) + 1
        opened = self._ratings.own_rows(start, stop)
        places = np.concatenate([np.arange(opened.indptr[p - start], opened.indptr[p - start + 1]) for p in people])
        indptr = np.concatenate([[0], np.cumsum(mask.user_counts[people])])
        return own_rows(indptr, self._cells[opened.items[places]], opened.values[places])

    @cached_property
    def _cells(self) -> Ints:
        return self.release.index.cells_of(self._ratings.mask.item_ids)

    @cached_property
    def _named(self) -> Ints:
        return codes_of(self._ratings.mask.item_ids, self.release.index.named)
