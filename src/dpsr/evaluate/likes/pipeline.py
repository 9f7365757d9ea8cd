"""Our own list model as a method of the comparison: `DPSR(epsilon, unit=..., delta=...).fit(interactions)`.

Its protection is copied from its certificate. With a declared catalogue it takes for public what its peers do; without,
it names only items whose noisy count passes a threshold, and whatever it may not name stands in no list.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from dpsr.arrays import Floats, Ints
from dpsr.data import Interactions
from dpsr.evaluate.contract import JOINT, SEEDED, Protection
from dpsr.evaluate.likes.contract import Baskets, ListModel, PrivateLists
from dpsr.evaluate.likes.peers.noisy_popularity import ITEMS
from dpsr.evaluate.pipelines import PEOPLE_UNITS
from dpsr.pipeline import DPSR
from dpsr.release.likes import LikesRelease, own_rows


@dataclass
class LikesPipeline(PrivateLists):
    """Ours, at the unit "user" or "rating"; `declared` says whether the catalogue is public."""

    unit: str = "user"
    declared: bool = True

    def _learn(self, likes: Interactions) -> tuple[ListModel, Protection]:
        items = likes.item_ids if self.declared else None
        model = DPSR(self.epsilon, unit=self.unit, delta=self.delta, items=items, random_state=self.noise_seed)
        release = model.fit(likes).release
        assert isinstance(release, LikesRelease)
        price, public = release.certificate, ITEMS if self.declared else "nothing"
        protection = Protection(PEOPLE_UNITS[self.unit], price.epsilon, price.delta, public, f"{JOINT}; {SEEDED}")
        return FoldedIn(release, likes.item_ids), protection


@dataclass(frozen=True, eq=False)
class FoldedIn:
    """What the release says to anybody who shows a basket; `item_ids` are the columns of the baskets."""

    release: LikesRelease
    item_ids: pa.Array

    @cached_property
    def _cells(self) -> Ints:
        return self.release.index.cells_of(self.item_ids)

    @cached_property
    def _items(self) -> Floats:
        return self.release.placed.items(np.maximum(self._cells, 0))

    def scores_of(self, baskets: Baskets) -> Floats:
        """One row of scores for each person; what may not be named is out of reach."""
        rows = own_rows(baskets.indptr, self._cells[baskets.indices], baskets.data)
        scores = self.release.placed.people(rows) @ self._items.T
        scores[:, self.release.index.named_codes(self.item_ids) < 0] = -np.inf
        return np.asarray(scores)
