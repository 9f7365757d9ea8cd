"""How many people met an item: the list that is the same for everybody, and the floor for all others."""

from __future__ import annotations

import numpy as np

from dpsr.data import Interactions
from dpsr.evaluate.likes.contract import SameForAll


def popularity(likes: Interactions, _: int) -> SameForAll:
    """Items by how many people met them."""
    return SameForAll(likes.mask.item_counts.astype(np.float64))
