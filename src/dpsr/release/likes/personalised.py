"""Personal lists where nobody rates: the release knows nobody, so all that is personal is brought along."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dpsr.arrays import Floats, Ints
from dpsr.errors import ParameterError
from dpsr.linalg.own_regression import PeopleRows
from dpsr.release.likes.model import UNCLIPPED, model_of, own_rows
from dpsr.release.lists.ranking import Recommendations, best_items, score_pairs
from dpsr.release.people.knows_nobody import PersonalWithoutPeople
from dpsr.types import Mask, PersonalModel
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


class PersonalisedLikes(PersonalWithoutPeople["LikesRelease"]):
    """See `PersonalAnswers`; scores and lists come from people's own interactions and the release alone."""

    release: LikesRelease
    left_out = "interactions are with items outside the declared catalogue: they were left out."

    def __init__(self, release: LikesRelease, interactions: OpensInteractions, *, block: int | None = None) -> None:
        if hasattr(interactions, "scale"):
            raise ParameterError(
                "this release was learned from interactions, and these are ratings. Pass Interactions: every rating "
                "as one with Interactions.read(...), or those that are liked with ratings.liked(at_least=4)."
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
        ids, index = self._ratings.mask.user_ids.take(pa.array(people)), self.release.index
        return model_of(self.release.side, index, ids, self._rows(people), self._named_items(people))

    def _predicted(self, people: Ints, places: Ints, items: npt.NDArray[np.generic]) -> Floats:
        side, cells = self.release.side, self.release.index.cells_of(items)
        scores = (side.people(self._rows(people))[places] * side.items(np.maximum(cells, 0))).sum(axis=1)
        return np.where(cells >= 0, scores, 0.0)

    def _rows(self, people: Ints) -> PeopleRows:
        return own_rows(*self._opened(people))
