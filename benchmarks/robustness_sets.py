"""Made-up rating sets of many kinds, each a function of a seed: what the default pipeline must not fail on.

    eta_uj = a_u + b_j + s p_u . q_j,     rating = lean + eta + noise,  snapped to the scale

with biases a, b and rank-d taste p . q of the stated sizes (standard deviations, the scale's half-width is about two).
Cells are observed at random, or with odds exp(pull (popularity_j + activity_u) + eta / 2).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from dpsr import Ratings, Scale
from dpsr.data import paper_matrix
from dpsr.types import Mask


@dataclass(frozen=True)
class Kind:
    """Sizes of one made-up set."""

    users: int
    items: int
    ratings: int
    scale: Scale
    rank: int = 4
    bias: float = 0.4
    taste: float = 0.7
    noise: float = 0.6
    lean: float = 0.0
    pull: float = 0.0
    glutton: float = 0.0
    unrated: int = 0

    def draw(self, seed: int) -> Ratings:
        """The ratings of this seed."""
        rng = np.random.default_rng(seed)
        p, q = rng.normal(size=(self.users, self.rank)), rng.normal(size=(self.items, self.rank))
        eta = self.taste / np.sqrt(self.rank) * p @ q.T
        eta += self.bias * (rng.normal(size=(self.users, 1)) + rng.normal(size=self.items))
        cells = self._cells(rng, eta)
        score = self.lean + eta.ravel()[cells] + self.noise * rng.normal(size=len(cells))
        values = self.scale.midpoint + 0.45 * self.scale.width / 2 * score
        levels = np.rint((values - self.scale.values[0]) / self.scale.step).clip(0, self.scale.n_levels - 1)
        catalogue = self.items + self.unrated
        wide = cells // self.items * catalogue + cells % self.items
        ids = (pa.array(np.arange(size, dtype=np.int64)) for size in (self.users, catalogue))
        return Ratings(Mask.of_cells(wide, *ids), levels.astype(np.uint16), self.scale)

    def _cells(self, rng: np.random.Generator, eta: np.ndarray) -> np.ndarray:
        """Cells without replacement: the first of exponential clocks to ring."""
        odds = self.pull * (rng.normal(size=(self.users, 1)) + rng.normal(size=self.items))
        rings = rng.exponential(size=eta.shape) * np.exp(-odds - (0.5 * eta if self.pull else 0))
        if self.glutton:  # one user with this share of all ratings
            rings[0, : int(self.glutton * self.ratings)] = 0
            rings[0, int(self.glutton * self.ratings) :] = np.inf
        return np.sort(np.argpartition(rings.ravel(), self.ratings - 1)[: self.ratings])


STARS, HALVES, TEN = Scale(1, 5), Scale(0.5, 5, step=0.5), Scale(0, 10)
JOKES = Scale(-10, 10, step=0.1)

SETS: dict[str, Callable[[int], Ratings]] = {
    "paper's generator": paper_matrix,
    "paper's, standardised": lambda seed: paper_matrix(seed, normalisation="standardise"),
    "nothing to learn": Kind(300, 200, 6_000, STARS, bias=0.0, taste=0.0, noise=0.9).draw,
    "a thousand ratings": Kind(100, 100, 1_250, STARS, rank=3).draw,
    "extremely sparse": Kind(3_000, 2_500, 7_500, STARS, pull=1.0).draw,
    "likes": Kind(500, 400, 12_000, Scale(0, 1), pull=0.8).draw,
    "half stars": Kind(500, 400, 15_000, HALVES, taste=0.5, noise=0.8, pull=0.8).draw,
    "ten points": Kind(600, 500, 12_000, TEN, taste=0.3, noise=0.8, lean=0.9, pull=1.0).draw,
    "0 to 100": Kind(500, 400, 15_000, Scale(0, 100), pull=0.8).draw,
    "jokes, 72 % full": Kind(600, 100, 43_200, JOKES, rank=6).draw,
    "nearly all fives": Kind(3_000, 400, 30_000, STARS, bias=1.2, taste=0.0, noise=3.0, lean=5.0).draw,
    "one user rated 40 %": Kind(200, 3_000, 6_000, STARS, glutton=0.4).draw,
    "items nobody rated": Kind(300, 200, 6_000, STARS, pull=0.5, unrated=400).draw,
}

QUICK = ("paper's generator", "nothing to learn", "a thousand ratings", "items nobody rated")
