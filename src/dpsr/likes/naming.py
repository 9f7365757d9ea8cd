"""Which items may be named, where no list was declared: over how many cells, with how much of the budget.

Names are asked with weights: everybody spreads a vector of length one over their items in the cells asked about, and an
item is named, with its noisy weight, where that passes a threshold t. Over the first K cells, with the share P_K of all
interactions, an item of popularity y weighs about y / sqrt P_K (y, where interactions count one by one) and is named
with the chance Phi((y / sqrt P_K - t) / s). The fewer cells, the more each weighs and the fewer may be named at all.

Weights of named items are one more reading of their popularity: names and counts are not paid for twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import ndtr

from dpsr.arrays import Floats

MOST_CELLS = 1 << 14
"""Cells whose items may be named, at most."""

_FEWEST, _STEP = 10, 1.25


@dataclass(frozen=True, eq=False)
class Naming:
    """`popularity` of cells in falling order, and whether weights are by person."""

    popularity: Floats
    by_person: bool

    def best(self, threshold: float, noise: float, wanted: int) -> tuple[Floats, int]:
        """The chance of every cell that its item is named, and over how many cells names are to be asked.

        So that the most popularity is named among the `wanted` first cells; on equal terms over more cells.
        """
        best, found, size = -1.0, 0, min(_FEWEST, len(self.popularity))
        while size <= min(len(self.popularity), MOST_CELLS):
            worth = float((self.popularity[:size] * self.chances(size, threshold, noise))[:wanted].sum())
            best, found = (worth, size) if worth >= best else (best, found)
            size = max(int(size * _STEP), size + 1)
        chances = np.zeros(len(self.popularity))
        chances[:found] = self.chances(found, threshold, noise)
        return chances, found

    def chances(self, n_cells: int, threshold: float, noise: float) -> Floats:
        """Of each of the first cells that its item passes, if names are asked over them."""
        inside = self.popularity[:n_cells]
        share = float(inside.sum()) / max(self._total, 1e-9) if self.by_person else 1.0
        return np.asarray(ndtr((inside / np.sqrt(max(share, 1e-9)) - threshold) / noise))

    @cached_property
    def _total(self) -> float:
        return float(self.popularity.sum())
