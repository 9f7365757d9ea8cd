"""Noisy ratings as pseudo-observations of their means.

A symbol s of a finite channel, read at the current mean m of its rating, says r_s = E[y | s, m]. With
rho = Var(r_s) / V(m) the share of the rating's variance that the channel explains, Fisher scoring gives

    z = m + (r_s - m) / rho    with weight   rho / v,

v the residual variance. A channel without noise has rho = 1: z is the rating itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from numba import prange

from dpsr.engine import Block
from dpsr.linalg.compiled import fast_parallel_kernel, threads_for
from dpsr.types.levels import GRID, LevelFamily

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.integer]

CHOICE, SYMBOL = "choice", "symbol"
"""The columns of a table that say through which channel a rating went, and what came out."""

_LEAST = 1e-6
_RAREST = 1e-300
"""A chance that rounding may make zero."""


@dataclass(frozen=True, eq=False)
class Reader:
    """Reads the symbols of a block at given means, for one family of levels.

    On the grid of means, `chances` are P[s] and `guesses` r_s (channel, symbol, mean), `explained` is rho (channel,
    mean).
    """

    chances: Floats
    guesses: Floats
    explained: Floats
    first: float
    spacing: float

    @classmethod
    def of(cls, tables: Mapping[int, Floats], family: LevelFamily) -> Reader:
        """From P[symbol | level] of every channel in use."""
        n, most = max(tables) + 1, max(table.shape[1] for table in tables.values())
        chances, guesses, explained = np.zeros((n, most, GRID)), np.zeros((n, most, GRID)), np.zeros((n, GRID))
        for c, table in tables.items():
            chance = family.table @ table
            r = (family.table * family.y) @ table / np.maximum(chance, _RAREST)
            chances[c, : table.shape[1]], guesses[c, : table.shape[1]] = chance.T, r.T
            explained[c] = (chance * (r - family.means[:, None]) ** 2).sum(axis=1) / family.variance
        return cls(chances, guesses, np.clip(explained, _LEAST, 1.0), float(family.means[0]), family.spacing)

    def read(self, block: Block, m: Floats, residual: float) -> tuple[Floats, Floats]:
        """Pseudo-observations of the means and their weights."""
        z, w = np.empty(len(m)), np.empty(len(m))
        choice, symbol = block.columns[CHOICE], block.columns[SYMBOL]
        with threads_for(8 * len(m)):
            _read(m, choice, symbol, self.guesses, self.explained, self.first, self.spacing, 1 / residual, z, w)
        return z, w

    def log_chances(self, block: Block, m: Floats, some: npt.NDArray[np.bool_]) -> Floats:
        """How likely the symbols of `some` ratings were, at the means m."""
        x = np.clip((m[some] - self.first) / self.spacing, 0, GRID - 1)
        g = np.minimum(x.astype(np.int64), GRID - 2)
        at = block.columns[CHOICE][some], block.columns[SYMBOL][some]
        chance = (1 - (x - g)) * self.chances[*at, g] + (x - g) * self.chances[*at, g + 1]
        return np.asarray(np.log(np.maximum(chance, _RAREST)))


@fast_parallel_kernel
def _read(
    m: Floats, choice: Ints, symbol: Ints, guesses: Floats, explained: Floats, first: float, spacing: float,
    precision: float, z: Floats, w: Floats,
) -> None:  # fmt: skip
    top = guesses.shape[2] - 2
    for e in prange(len(m)):
        x = (m[e] - first) / spacing
        g = min(max(int(np.floor(x)), 0), top)
        f = min(max(x - g, 0.0), 1.0)
        c, s = choice[e], symbol[e]
        mean = first + (g + f) * spacing
        r = guesses[c, s, g] * (1 - f) + guesses[c, s, g + 1] * f
        rho = explained[c, g] * (1 - f) + explained[c, g + 1] * f
        z[e] = mean + (r - mean) / rho
        w[e] = rho * precision
