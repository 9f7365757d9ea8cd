"""A hash of a rating's place in its table: public, as if drawn at random, and the same however the table is cut."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from dpsr.engine.table import Block
from dpsr.linalg.compiled import fast_kernel

Hashes = npt.NDArray[np.uint64]


@fast_kernel
def hashed_place(place: Any) -> Any:
    """Of one place, or of each of some: the two multiplications of SplitMix64 (Steele, Lea and Flood 2014), without the
    last shift. The upper bits are the good ones."""
    place = (place ^ (place >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    return (place ^ (place >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)


def hashed_places(block: Block, offset: int = 0) -> Hashes:
    """Of every rating of a block; another `offset` gives hashes that have nothing to do with the first."""
    places = np.arange(block.start, block.start + len(block.items), dtype=np.uint64)
    return np.asarray(hashed_place(places + np.uint64(offset)))
