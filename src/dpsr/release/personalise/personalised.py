"""Personal answers at the level of values: the release knows people's noisy ratings, they bring their own."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dpsr.arrays import Floats, Ints
from dpsr.release.lists.ranking import Recommendations, best_items, ordered_dots, score_pairs
from dpsr.release.personalise.matching import OwnRatings, ReleaseCodes, matched
from dpsr.release.personalise.personal_answers import PersonalAnswers
from dpsr.release.personalise.value_level import ValueLevel
from dpsr.types import OpensOwnRows, PersonalModel
from dpsr.types.coordinates import Ids

if TYPE_CHECKING:
    from dpsr.release.release import Release


class Personalised(PersonalAnswers["Release"]):
    """See `PersonalAnswers`; people whom the release does not know are folded in as strangers."""

    def __init__(self, release: Release, ratings: OpensOwnRows, *, block: int | None = None) -> None:
        super().__init__(release, ratings, block=block)
        self._level = ValueLevel(release)

    @property
    def notes(self) -> tuple[str, ...]:
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

    def basis(self, users: Ids, items: Ids) -> Ints:
        mask = self.release.mask
        unknown = mask.item_codes(items) < 0
        of_release = (mask.user_codes(users) < 0) + 2 * unknown
        return np.where(self.brought_ratings(users), unknown.astype(np.int64), 2 + of_release)

    def recommend(self, user: str | int, n: int = 10, *, exclude_rated: bool = True) -> Recommendations:
        person = self._ratings.mask.user_codes([user])
        if person[0] < 0:
            return self.release.recommend(user, n)
        own = self._own(person)
        model = self._level.model_of(own)
        scores = score_pairs(model, np.zeros(1, dtype=np.int64), np.arange(model.mask.n_items))
        return best_items(model, *scores, own.rated if exclude_rated else [], n)

    @property
    def _item_ids(self) -> pa.Array:
        return self.release.mask.item_ids

    def _model(self, people: Ints) -> PersonalModel:
        return self._level.model_of(self._own(people))

    def _predicted(self, people: Ints, places: Ints, items: npt.NDArray[np.generic]) -> Floats:
        """An unknown item gets what the person gives on average."""
        model, codes = self._model(people), self.release.mask.item_codes(items)
        raw = ordered_dots(model.user_factors, places, model.item_factors, np.maximum(codes, 0))
        return model.scale.clip(np.where(codes >= 0, raw, model.user_means[places]))

    def _own(self, people: Ints) -> OwnRatings:
        start, stop, codes = int(people[0]), int(people[-1]) + 1, self._codes
        rows = matched(self._ratings.own_rows(start, stop), codes.users[start:stop], codes.items, self.release.mask)
        return rows.select(people - start)

    @cached_property
    def _codes(self) -> ReleaseCodes:
        return ReleaseCodes.of(self._ratings.mask, self.release.mask)
