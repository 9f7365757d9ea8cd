"""Noisy ratings as pseudo-observations of their means.

A symbol s of a finite channel, read at the current mean m of its rating, says r_s = E[y | s, m]. With
rho = Var(r_s) / V(m) the share of the rating's variance that the channel explains, Fisher scoring gives

    z = m + (r_s - m) / rho    with weight   rho / v,

v the residual variance. A channel without noise has rho = 1: z is the rating itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from numba import prange

from dpsr.linalg.compiled import fast_parallel_kernel, threads_for
from dpsr.types.levels import GRID, LevelFamily

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.integer]

_LEAST = 1e-6


@dataclass(frozen=True, eq=False)
class Symbols:
    """The channel and the symbol of every rating, and P[symbol | level] of every channel."""

    choice: Ints
    symbol: Ints
    tables: tuple[Floats, ...]

    def read(self, family: LevelFamily, m: Floats, residual: float) -> tuple[Floats, Floats]:
        """Pseudo-observations of the means and their weights."""
        guesses, explained = self._guesses(family)
        z, w = np.empty(len(m)), np.empty(len(m))
        with threads_for(8 * len(m)):
            _read(m, self.choice, self.symbol, guesses, explained, family.means[0], family.spacing, z, w)
        return z, w / residual

    def expected(self, family: LevelFamily, m: Floats) -> Floats:
        """E[y | symbol, m]: the best guess at each rating itself."""
        guesses, _ = self._guesses(family)
        g = family.nearest(m)
        return guesses[self.choice, self.symbol, g]

    def _guesses(self, family: LevelFamily) -> tuple[Floats, Floats]:
        """r_s on the grid of means, (channel, symbol, mean), and rho, (channel, mean)."""
        guesses = np.zeros((len(self.tables), max(table.shape[1] for table in self.tables), GRID))
        explained = np.zeros((len(self.tables), GRID))
        for c, table in enumerate(self.tables):
            chance = family.table @ table
            r = (family.table * family.y) @ table / np.maximum(chance, 1e-300)
            guesses[c, : table.shape[1]] = r.T
            explained[c] = (chance * (r - family.means[:, None]) ** 2).sum(axis=1) / family.variance
        return guesses, np.clip(explained, _LEAST, 1.0)


@fast_parallel_kernel
def _read(
    m: Floats, choice: Ints, symbol: Ints, guesses: Floats, explained: Floats, first: float, spacing: float, z: Floats,
    w: Floats,
) -> None:  # fmt: skip
    top = guesses.shape[2] - 2
    for e in prange(len(m)):
        x = (m[e] - first) / spacing
        g = min(max(int(np.floor(x)), 0), top)
        f = min(max(x - g, 0.0), 1.0)
        c = choice[e]
        mean = first + (g + f) * spacing
        r = guesses[c, symbol[e], g] * (1 - f) + guesses[c, symbol[e], g + 1] * f
        rho = explained[c, g] * (1 - f) + explained[c, g + 1] * f
        z[e] = mean + (r - mean) / rho
        w[e] = rho
