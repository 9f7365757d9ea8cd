"""How many people there are and how much they did, from noisy numbers of people in octaves of activity."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dpsr.arrays import Floats
from dpsr.types.item_side import SIZES

_TURNS, _NEARLY_ALL = 12, 0.999
"""Turns in which propensities are found; the most of the people whom a cell may have."""


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

    def weight(self, share: float) -> float:
        """Of an interaction in a round of counts over cells with this share of all interactions, next to all cells.

        Somebody with n interactions spreads a vector of length one over those cells, of which they have 1 + (n - 1)
        `share` if they have one. Whoever has one interaction weighs the same wherever it is.
        """
        there = SIZES / np.sqrt(1 + (SIZES - 1) * share)
        return float(self.counts @ there) / self.roots if self.counts.any() else 1.0

    @property
    def in_company(self) -> float:
        """Of what people did, the part of those who did more than one thing: only they have pairs. Weighed as roots."""
        return 1 - float(self.counts[0]) / self.roots if self.counts.any() else 0.0

    def rows(self, centre: Floats, favour: Floats) -> Iterator[TypicalRows]:
        """Rows in second moments of presence, octave by octave of people who may have a pair.

        Somebody with n interactions did something in cell j with p_j = 1 - exp(-t q_j), t such that sum p = n, and q
        such that all people together did so in proportion to `centre`. Then 1 / c^2 is the root of (sum of squares)^2 -
        sum of fourth powers, expected.
        """
        told = [(n, m) for n, m in zip(SIZES[1:], self.counts[1:], strict=True) if m > 0 and n < 0.9 * len(centre)]
        q = _propensities(told, centre)
        for n, people in told:
            p = presence(n, q)
            r = favour * np.column_stack([1 - n * centre, -n * centre]).T
            square, fourth = (float((p * r[0] ** k + (1 - p) * r[1] ** k).sum()) for k in (2, 4))
            yield TypicalRows(people, n, p, 1 / np.sqrt(max(square * square - fourth, 0.1 * square * square)))

    def squares(self, centre: Floats, favour: Floats) -> float:
        """Sum over people of n^2 c^2, c the factor of their row in second moments of presence."""
        return max(sum(one.people * one.n**2 * one.squared_factor for one in self.rows(centre, favour)), 1.0)


@dataclass(frozen=True, eq=False)
class TypicalRows:
    """Of so many people with n interactions: the chance of every cell, and c^2."""

    people: float
    n: float
    chances: Floats
    squared_factor: float


def _propensities(told: list[tuple[float, float]], centre: Floats) -> Floats:
    """q of `Activity.rows`: popular cells are had by nearly all, which takes more than their share of what was done."""
    q, everybody = centre, sum(people for _, people in told)
    wanted = np.minimum(sum(n * people for n, people in told) * centre, _NEARLY_ALL * everybody)
    for _ in range(_TURNS if told else 0):
        found = np.sum([people * presence(n, q) for n, people in told], axis=0)
        q = q * wanted / np.maximum(found, 1e-12)
    return q


def presence(n: float, centre: Floats) -> Floats:
    """The chance of every cell for somebody with n of them, drawn by popularity."""
    low, high = 0.0, n / max(float(centre.min()), 1e-12) * 50
    for _ in range(60):
        t = (low + high) / 2
        low, high = (t, high) if -np.expm1(-t * centre).sum() < n else (low, t)
    return -np.expm1(-low * centre)
