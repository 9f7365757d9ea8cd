"""In which turn each rating is asked: a public order, by a hash of the ratings' places in the table.

What earlier turns answered may decide how later ones are asked. A rating has one turn, so it is asked once however many
turns there are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpsr.engine.table import Block
from dpsr.errors import PrivacyError

WHOLE = 256
"""Shares of turns are multiples of one over this."""


@dataclass(frozen=True)
class Turns:
    """Which part of the ratings each turn asks, in 256ths: turn t has `shares[t]` of them."""

    shares: tuple[int, ...] = (WHOLE,)

    def __post_init__(self) -> None:
        if min(self.shares, default=0) < 1 or sum(self.shares) != WHOLE:
            raise PrivacyError(f"shares of turns are at least one and add up to {WHOLE}, found {self.shares}.")

    @property
    def number(self) -> int:
        return len(self.shares)

    def of(self, block: Block) -> npt.NDArray[np.int64]:
        """The turn of every rating of a block, the same however the table is cut."""
        place = np.arange(block.start, block.start + len(block.items), dtype=np.uint64) + np.uint64(0x9E3779B97F4A7C15)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):  # SplitMix64
            place = (place ^ (place >> np.uint64(shift))) * np.uint64(factor)
        chance = (place >> np.uint64(40)) % np.uint64(WHOLE)
        return np.searchsorted(np.cumsum(self.shares), chance.astype(np.int64), side="right")


AT_ONCE = Turns()
"""Everybody in the first turn."""
