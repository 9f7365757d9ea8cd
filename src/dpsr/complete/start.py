"""Where factors start: the leading directions of what the means leave unexplained.

The residuals of the noisy ratings, weighted and scaled by degree so that heavy rows do not drown the others, on the
observed cells; their left singular vectors, in units of their own size, are the users' first factors.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dpsr.complete.sweep import held_out
from dpsr.complete.symbols import CHOICE, SYMBOL, Reader
from dpsr.design.embeddings import degree_scales
from dpsr.engine import Block, Made, Table
from dpsr.engine.products import Beside, add_by_item, at_ratings, by_user
from dpsr.engine.table import zeros
from dpsr.linalg.gram import leading_right

Floats = npt.NDArray[np.float64]

_EXCESS = "excess"
_TOLERANCE, _PRODUCTS = 1e-2, 12
"""A start needs directions, not digits."""


def leading_users(
    table: Table, left: Beside, right: Floats, reader: Reader, residual: float, k: int, *, trial: bool
) -> Floats:
    """k user factors of unit size, none beyond three; in a `trial`, without the ratings that are held out."""
    users, items = degree_scales(table.census.user_counts), degree_scales(table.census.item_counts)

    def write(block: Block) -> Made:
        eta = at_ratings(block, left[block.users], right)
        z, w = reader.read(block, eta, residual)
        if trial:
            w[held_out(block)] = 0
        excess = w * (z - eta) * np.repeat(users[block.users], block.counts) * items[block.items]
        return Made({_EXCESS: excess.astype(np.float32)})

    def gram(X: Floats) -> Floats:
        def add(block: Block, sums: Floats) -> None:
            values = block.columns[_EXCESS].astype(np.float64)
            add_by_item(block, by_user(block, X, values), sums, values)

        return table.run(add, [zeros(*X.shape)], reads=[_EXCESS]).sums[0]

    def project(block: Block) -> Made:
        return Made(rows=(by_user(block, V, block.columns[_EXCESS].astype(np.float64)),))

    table.run(write, reads=[CHOICE, SYMBOL], writes=[_EXCESS])
    _, V = leading_right(gram, table.census.n_items, k, tol=_TOLERANCE, products=_PRODUCTS)
    U = table.run(project, reads=[_EXCESS]).rows[0]
    table.drop(_EXCESS)
    size = np.sqrt(np.mean(U**2, axis=0))
    return np.clip(U / np.where(size > 0, size, 1.0), -3, 3)
