"""Which items may be named, where no list was declared: over how many cells, with how much of the budget.

Names are asked with weights: everybody spreads a vector of length one over their items in the cells asked about, and an
item is named, with its noisy weight, where that passes a threshold t. Over the first K cells, with the share P_K of all
interactions, an item of popularity y weighs about y / sqrt P_K (y, where interactions count one by one) and is named
with the chance Phi((y / sqrt P_K - t) / s). The fewer cells, the more each weighs and the fewer may be named at all.

Of somebody's items in these cells at most c count. The fewer, the lower t, for so many items of one person alone must
stay below it; and the less people weigh who have more: sqrt c in all instead of sqrt m for m items, by what is known of
people's activity (`left_for_names`). K and c are those that put the most popularity among what may be named.

Weights of named items are one more reading of their popularity: names and counts are not paid for twice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import ndtr

from dpsr.arrays import Floats
from dpsr.certify.people import MOST_NAMED, NAMED_TRIED
from dpsr.likes.activity import Activity
from dpsr.types.item_side import left_for_names

MOST_CELLS = 1 << 14
"""Cells whose items may be named, at most."""

_FEWEST, _STEP = 10, 1.25


Threshold = Callable[[int], float]
"""Of the number of items by which one person may help to name."""


@dataclass(frozen=True)
class NameQuestion:
    """Names over the first `n_cells`, of everybody by `most` items at most."""

    n_cells: int
    most: int


@dataclass(frozen=True, eq=False)
class Naming:
    """`popularity` of cells in falling order, and the `activity` of people whose weights are of length one; None where
    interactions count one by one."""

    popularity: Floats
    activity: Activity | None

    def best(self, threshold: Threshold, noise: float, wanted: int) -> tuple[Floats, NameQuestion]:
        """The chance of every cell that its item is named, and how names are to be asked.

        So that the most popularity is named among the `wanted` first cells; on equal terms over more cells, and by more
        items of a person.
        """
        best, found = -1.0, NameQuestion(0, MOST_NAMED)
        lines = {most: threshold(most) for most in self._tried}
        for asked, weight in self._ways:
            first = self.popularity[: min(asked.n_cells, wanted)]
            worth = float(first @ _passing(first * weight, lines[asked.most], noise))
            best, found = (worth, asked) if worth >= best else (best, found)
        chances = np.zeros(len(self.popularity))
        chances[: found.n_cells] = self.chances(found, lines[found.most], noise)
        return chances, found

    def chances(self, asked: NameQuestion, threshold: float, noise: float) -> Floats:
        """Of each of the cells asked about that its item passes."""
        return _passing(self.popularity[: asked.n_cells] * self._weight(asked), threshold, noise)

    @property
    def _tried(self) -> tuple[int, ...]:
        """Numbers of items of a person that may count."""
        return NAMED_TRIED if self.activity else (MOST_NAMED,)

    @cached_property
    def _ways(self) -> list[tuple[NameQuestion, float]]:
        """All that is tried, and what an interaction weighs with it: the same whatever the noise."""
        found, size = [], min(_FEWEST, len(self.popularity))
        while size <= min(len(self.popularity), MOST_CELLS):
            for most in self._tried:
                found.append(NameQuestion(size, most))
                if most >= size:
                    break  # nobody has more cells
            size = max(int(size * _STEP), size + 1)
        return [(asked, self._weight(asked)) for asked in found]

    def _weight(self, asked: NameQuestion) -> float:
        """Of an interaction, next to what it weighs in counts over all cells: 1 / sqrt P_K, less what is cut."""
        if self.activity is None:
            return 1.0
        share = max(float(self._sums[asked.n_cells - 1]) / max(float(self._sums[-1]), 1e-9), 1e-9)
        return left_for_names(self.activity.counts, share, asked.n_cells, asked.most) / float(np.sqrt(share))

    @cached_property
    def _sums(self) -> Floats:
        return np.cumsum(self.popularity)


def _passing(weights: Floats, threshold: float, noise: float) -> Floats:
    """The chance of each weight to pass the threshold, with noise."""
    return np.asarray(ndtr((weights - threshold) / noise))
