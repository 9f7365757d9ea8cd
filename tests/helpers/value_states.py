"""Small designs, symbols without noise, and effects: where inference at the level of values starts in tests."""

import numpy as np
import pyarrow as pa

from dpsr.engine import BlockResult
from dpsr.types import Mask
from dpsr.value.design import Design
from dpsr.value.effects import Effects
from dpsr.value.priors import ridge

Y = np.linspace(-1, 1, 41)


def design_of(m, n, density, seed):
    cells = np.flatnonzero(np.random.default_rng(seed).random(m * n) < density)
    ids = (pa.array(np.arange(size, dtype=np.int64)) for size in (m, n))
    mask = Mask.of_cells(cells, *ids)
    mask.items.setflags(write=False)  # as those of a file are, or the kernels would be compiled a second time
    return Design.of(mask)


def clear_symbols(design, levels):
    """Symbols without noise, as columns of the design's table; the one channel they went through."""
    columns = {"choice": np.zeros(len(levels), dtype=np.uint8), "symbol": levels.astype(np.uint16)}
    design.table.run(
        lambda block: BlockResult({name: column[block.ratings] for name, column in columns.items()}),
        writes=list(columns),
    )
    return {0: np.eye(len(Y))}


def effects_of(design, rng=None):
    (m, n), q, d = design.census.shape, design.z.shape[1], design.x.shape[1]
    w, i, u = (np.zeros((q, d)), np.zeros(n), np.zeros(m)) if rng is None else (
        0.02 * rng.normal(size=(q, d)), 0.1 * rng.normal(size=n), 0.1 * rng.normal(size=m)
    )  # fmt: skip
    own = np.zeros((q - 1, q - 1)) if rng is None else 0.02 * rng.normal(size=(q - 1, q - 1))
    return Effects(w, own, i, u, ridge(0.1, 1e-4), 0.012, 0.012, np.full(n, 0.01), np.full(m, 0.01))
