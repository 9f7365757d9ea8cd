"""Rating tables that no reader would give: users and items without ratings."""

import numpy as np
import pyarrow as pa

from dpsr import Ratings, Scale
from dpsr.types import Mask


def odd_ratings(m, n, dense, seed=0, ids=np.arange):
    """Ratings where `dense` is true; users and items without any stay in the vocabulary."""
    cells = np.flatnonzero(dense.ravel())
    mask = Mask.of_cells(cells, pa.array(ids(m)), pa.array(ids(n)))
    levels = np.random.default_rng(seed).integers(0, 5, len(cells)).astype(np.uint16)
    return Ratings(mask=mask, levels=levels, scale=Scale(1, 5))
