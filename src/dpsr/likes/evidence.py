r"""Whether taste is there, and how strong: by noisy moments that were not learned from.

Moments M with normal noise of known deviations d_i d_j are split in two that are independent (data fission; Leiner,
Duan, Wasserman and Ramdas 2023): with fresh noise Z of the same deviations

    P = M + t Z,    Q = M - Z / t,      variances  (1 + t^2) d^2  and  (1 + 1/t^2) d^2.

Taste is learned from P at several prior strengths, and each is judged by how much better than nothing it predicts Q:

    gain = sum_{i<j} (Q_ij L_ij - L_ij^2 / 2) / ((1 + 1/t^2) d_i^2 d_j^2),     L the moments it expects,

the logarithm of a likelihood ratio. Where there is no taste the gain of anything learned is below zero, on average by
half of what it would be above zero if it were right. Tables without any taste are rare: it is believed to be there with
odds of ten to one before looking, so a gain above -log 10 is enough. Of several strengths the strongest with at least
half of the best gain is taken: too much shrinkage costs lists more than it costs likelihood. If none is left, or what
is left expects nothing at all, popularity alone is used.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log

import numpy as np

from dpsr.arrays import Floats
from dpsr.likes.taste import Moments, learn_taste, modelled

STRENGTHS = (0.1, 0.3, 1.0)
"""Prior strengths that are tried, weakest first."""

_ODDS = 10.0
"""That there is taste, before looking."""

_LEAST_SIZE = 0.1
"""Nats: who expects less expects nothing."""

_SPLIT = 0.4
_SWEEPS = 8
_SEED = 0
"""The fresh noise is drawn with a fixed seed: it reads nothing and is the same everywhere."""


@dataclass(frozen=True)
class TasteEvidence:
    """The gain of every prior strength over so many `cells`, and what follows."""

    gains: tuple[float, ...]
    sizes: tuple[float, ...]
    """What the gains would be, on average, if what was learned were right."""
    cells: int

    @property
    def strength(self) -> float | None:
        """The prior strength to learn with; None where no taste shows."""
        enough = max(max(self.gains), 0.0) / 2 - log(_ODDS)
        found = zip(STRENGTHS, self.gains, self.sizes, strict=True)
        standing = [one for one, gain, size in found if gain >= enough and size > _LEAST_SIZE]
        return max(standing, default=None)

    @property
    def plenty(self) -> bool:
        """Whether there is a nat of it for every cell: what one coefficient a cell must bring to be worth having."""
        return max(self.gains) >= self.cells


def taste_evidence(moments: Moments) -> TasteEvidence:
    """How much better taste that was learned from one half of the moments predicts the other half, at each strength."""
    rng, d, t = np.random.default_rng(_SEED), moments.deviations, _SPLIT
    Z = np.triu(rng.normal(size=moments.values.shape), 1) * np.outer(d, d)
    P, Q = moments.values + t * (Z + Z.T), moments.values - (Z + Z.T) / t
    more = 1 + t * t
    half = moments.with_values(P, moments.noise * np.sqrt(more), moments.people * more)
    precision = 1 / (np.outer(d, d) ** 2 * (1 + 1 / t**2))
    expected = (modelled(half, learn_taste(half, strength, sweeps=_SWEEPS)) for strength in STRENGTHS)
    found = [(_above(Q * L * precision), _above(L * L / 2 * precision)) for L in expected]
    return TasteEvidence(tuple(fit - size for fit, size in found), tuple(size for _, size in found), len(Q))


def _above(terms: Floats) -> float:
    """The sum above the diagonal."""
    return float(np.triu(terms, 1).sum())
