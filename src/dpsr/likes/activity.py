"""How many people there are and how much they did, from noisy numbers of people in octaves of activity."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpsr.arrays import Floats
from dpsr.types.item_side import SIZES


@dataclass(frozen=True, eq=False)
class Activity:
    """People in each octave of the number of their interactions; what is below the noise fades."""

    counts: Floats

    @classmethod
    def of(cls, values: Floats, noise: float, n_cells: int | None = None) -> Activity:
        """From noisy counts; nobody has more cells than the `n_cells` that were asked about."""
        fading = np.where(values > 2 * noise, values, 0.5 * np.maximum(values, 0) ** 2 / noise)
        possible = len(values) if n_cells is None else max(n_cells, 1).bit_length()
        return cls(np.where(np.arange(len(values)) < possible, fading, 0.0))

    @property
    def people(self) -> float:
        """At least one."""
        return max(float(self.counts.sum()), 1.0)

    @property
    def interactions(self) -> float:
        """How many interactions tell about taste: people times the square of their mean root, since much of what the
        busiest did is what everybody does."""
        return max(self.roots**2 / self.people, 1.0)

    @property
    def roots(self) -> float:
        """Sum over people of the root of how much they did."""
        return max(float(self.counts @ np.sqrt(SIZES)), 1.0)

    @property
    def pairs(self) -> float:
        """People with two interactions or more."""
        return max(float(self.counts[1:].sum()), 1.0)

    def squares(self, centre: Floats, favour: Floats) -> float:
        """Sum over people of n^2 c^2, c the factor of their row in second moments of presence.

        Somebody with n interactions did something in cell j with p_j = 1 - exp(-t centre_j), t such that sum p = n;
        then 1 / c^2 is the root of (sum of squares)^2 - sum of fourth powers, expected.
        """
        total = 0.0
        for n, people in zip(SIZES[1:], self.counts[1:], strict=True):
            if people > 0 and n < 0.9 * len(centre):
                p = presence(n, centre)
                r = favour * np.column_stack([1 - n * centre, -n * centre]).T
                square, fourth = (float((p * r[0] ** k + (1 - p) * r[1] ** k).sum()) for k in (2, 4))
                total += people * n * n / np.sqrt(max(square * square - fourth, 0.1 * square * square))
        return max(total, 1.0)


def presence(n: float, centre: Floats) -> Floats:
    """The chance of every cell for somebody with n of them, drawn by popularity."""
    low, high = 0.0, n / max(float(centre.min()), 1e-12) * 50
    for _ in range(60):
        t = (low + high) / 2
        low, high = (t, high) if -np.expm1(-t * centre).sum() < n else (low, t)
    return -np.expm1(-low * centre)
