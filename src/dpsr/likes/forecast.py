r"""What lists would gain by second moments that are not asked yet, over how many cells: expected from popularity alone.

Cells by falling popularity p; the first T would be asked about, PT is their share of all interactions and p their share
of that. Rows have length one over these cells, so a person's n PT interactions weigh c^2 = 1 / (n PT sum p g^2) a pair:

    a_j = sqrt(w) p_j g_j v_j,   w = PT interactions / sum p g^2,      e_ij of variance d_i^2 d_j^2,  d^4 = s^2 + N h^2

(`taste` has the model and h). The more cells, the less each pair weighs; the fewer, the less of a list they reach.

**How well loadings will be known.** v_j ~ N(0, tau / k) on axis k has the scaled variance t_j = tau / k (a_j / v_j)^2 /
d_j^2. The posterior of a rank-one matrix in normal noise is that of a_j read with a signal M, the fixed point of

    M = sum_j t_j rho_j,    rho_j = t_j M / (1 + t_j M)                (Lesieur, Krzakala and Zdeborova 2017),

rho_j the share of v_j's variance that is known; M = 0 where sum t_j^2 <= 1: an axis that no method would see.

**What somebody's list gains.** Taste is known to R_k = n PT H_k / (1 + n PT H_k), H_k = tau / k sum p_j rho_jk, so the
relative popularity of cell j moves by a normal of variance u_j = sum_k tau / k rho_jk R_k. Of the cells that they do
not have, the list takes the best twenty: its mass is that of p_j (1 + sqrt u_j z) above a threshold that twenty pass.
The gain is that mass next to the one of twenty by popularity, averaged over people by what they did.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import ndtr

from dpsr.arrays import Floats
from dpsr.likes.activity import Activity
from dpsr.types.item_side import SIZES

TASTE = 0.35
"""tau: variance of the relative popularity of cells along the strongest axis of taste, believed before asking."""

MOST_CELLS = 2_000
"""Frequent cells at most: their products fit a few dozen megabytes."""

FAVOUR = 0.25
"""g = (p / max p) to this power: rows lean towards cells that many people know."""

LIST = 20
"""Places of the list whose mass is looked at."""

_DEEP = 3_000
"""Cells that a list may reach."""

_AXES, _TURNS, _HALVINGS = 24, 40, 24
_FEWEST, _STEP = 20, 1.25
_LEAST_PEOPLE = 0.01
"""Octaves with a smaller share of the people are left out."""

_ROUNDING = 1e-9
"""A gain this small is the rounding of sums, which is another one on another processor; nothing is asked for it."""


def favour_of(centre: Floats) -> Floats:
    """g of every frequent cell."""
    return np.asarray((centre / centre.max()) ** FAVOUR)


@dataclass(frozen=True, eq=False)
class TasteForecast:
    """What is known before second moments are asked.

    `popularity` of all cells in falling order, `activity` and how many `interactions` tell about taste.
    """

    popularity: Floats
    activity: Activity
    interactions: float

    @property
    def sizes(self) -> list[int]:
        """Numbers of cells that are tried."""
        most, sizes = min(MOST_CELLS, len(self.popularity)), [float(_FEWEST)]
        while sizes[-1] * _STEP <= most:
            sizes.append(sizes[-1] * _STEP)
        return [int(size) for size in sizes if size <= most]

    def best(self, noise: float) -> tuple[float, int]:
        """The largest gain of lists, with moments of this noise, and over how many cells; 0 cells where none is."""
        if not self.popularity[0] > 0 or not self._readers:
            return 1.0, 0
        gain, size = max(((self.gain(size, noise), -size) for size in self.sizes), default=(1.0, 0))
        return (gain, -size) if gain > 1.0 + _ROUNDING else (1.0, 0)

    def plain(self, nameable: Floats) -> float:
        """Mass of lists by popularity, of what may be named, next to that of lists of everything.

        `nameable` is the chance of every cell that its item may be named.
        """
        none, head = np.zeros(0), self._shares[:_DEEP]
        masses = [w * _mass(head, none, missing * nameable[:_DEEP]) / alone for _, w, missing, alone in self._readers]
        return sum(masses) if masses else 1.0

    def gain(self, n_cells: int, noise: float, nameable: Floats | None = None) -> float:
        """Mass of lists by popularity and taste, next to that by popularity, with moments of the first cells.

        Of what may be named, if that is not everything.
        """
        reach = float(self._shares[:n_cells].sum())
        p = self._shares[:n_cells] / reach
        axes = TASTE / np.arange(1, _AXES + 1)
        known = self._known(p, reach, noise, axes)
        H = axes * (known @ p)
        masses = 0.0
        for n, weight, missing, alone in self._readers:
            told = n * reach * H / (1 + n * reach * H)
            able = missing if nameable is None else missing * nameable[:_DEEP]
            masses += weight * _mass(self._shares[:_DEEP], (axes * told) @ known, able) / alone
        return masses

    def _known(self, p: Floats, reach: float, noise: float, axes: Floats) -> Floats:
        """rho of the module, for every axis and cell."""
        t = axes[:, None] * self._scale(p, reach, noise)
        M, known, below = t.sum(axis=1, keepdims=True), np.empty_like(t), np.empty_like(t)
        for _ in range(_TURNS):  # t (t M / (1 + t M)), without copies
            np.add(np.multiply(t, M, out=known), 1, out=below)
            known /= below
            known *= t
            M = known.sum(axis=1, keepdims=True)
        return np.asarray(t * M / (1 + t * M))

    def _scale(self, p: Floats, reach: float, noise: float) -> Floats:
        """(a_j / v_j)^2 / d_j^2 of every cell."""
        g = favour_of(p)
        length = float((p * g * g).sum())
        drowning = np.sqrt(noise**2 + self.activity.people * (p * g * g / length) ** 2)
        return np.asarray(self.interactions * reach / length * (p * g) ** 2 / drowning)

    @cached_property
    def _shares(self) -> Floats:
        return np.maximum(self.popularity, 1e-12 * self.popularity[0]) / self.popularity.sum()

    @cached_property
    def _readers(self) -> list[tuple[float, float, Floats, float]]:
        """By octave: interactions, share of the people, chance that they miss a cell, mass by popularity."""
        counts, head, found = self.activity.counts, self._shares[:_DEEP], []
        for n, people in zip(SIZES, counts / max(float(counts.sum()), 1e-9), strict=True):
            if people >= _LEAST_PEOPLE:
                missing = _missing(min(float(n), 0.5 * len(self.popularity)), head)
                alone = _mass(head, np.zeros(0), missing)
                found.append((float(n), float(people), missing, alone))
        return [one for one in found if one[3] > 0]


class PairTasteForecast(TasteForecast):
    """The same of pairs of presence (`moments_of_pairs`): w = sum n^(3/2), no favour, the sample's noise is sum n p^2.

    w would be what a few of the busiest did, which is what everybody does, so n is the square of people's mean root.
    """

    def _scale(self, p: Floats, reach: float, noise: float) -> Floats:
        people, n = self.activity.people, self.interactions * reach / self.activity.people
        return np.asarray(people * n**1.5 * p * p / np.sqrt(noise**2 + people * n * p * p))


def _missing(n: float, shares: Floats) -> Floats:
    """exp(-t p), t such that somebody with n interactions has n cells; beyond the head nothing is met twice."""
    tail, low, high = max(1 - float(shares.sum()), 0.0), 0.0, 1e3 * n
    for _ in range(_HALVINGS):
        t = (low + high) / 2
        low, high = (t, high) if t * tail - np.expm1(-t * shares).sum() < n else (low, t)
    return np.asarray(np.exp(-low * shares))


def _mass(p: Floats, u: Floats, missing: Floats) -> float:
    """Of the best `LIST` cells among those that are missing, where p_j is believed to be p_j (1 + sqrt u_j z).

    Cells beyond those of u are what they are: p falls, so how many of them pass a threshold is looked up. The last
    place of the list is shared among cells at the threshold.
    """
    m = min(len(u), len(p))
    falling, met = -p[m:], np.append(0.0, np.cumsum(missing[m:]))
    mass, p, missing = np.append(0.0, np.cumsum(missing[m:] * p[m:])), p[:m], missing[:m]
    spread = np.maximum(np.sqrt(u[:m]), 1e-6) * p
    low, high = 0.0, 10 * float(max(p.max(initial=0.0), -falling.min(initial=0.0)))
    for _ in range(_HALVINGS):
        t = (low + high) / 2
        passing = float(met[falling.searchsorted(-t)] + missing @ ndtr((p - t) / spread))
        low, high = (t, high) if passing > LIST else (low, t)
    z, beyond = (p - high) / spread, falling.searchsorted(-high)
    chance = ndtr(z)
    shared = max(LIST - float(met[beyond] + missing @ chance), 0.0) * high
    return float(mass[beyond] + missing @ (p * chance + spread * np.exp(-0.5 * z * z) / np.sqrt(2 * np.pi))) + shared
