r"""Whether taste is there, and how strong: by noisy moments that were not learned from.

Moments M with normal noise of known deviations d_i d_j, less what popularity and activity explain, are split in two
parts that are independent (data fission; Leiner, Duan, Wasserman and Ramdas 2023): with fresh noise Z of the same
deviations

    P = M + t Z,    Q = M - Z / t,      variances  (1 + t^2) d^2  and  (1 + 1/t^2) d^2.

Taste is learned from P at several prior strengths. With L the moments it expects, next to d_i d_j, and Q likewise,

    fit = sum_{i<j} Q_ij L_ij,      size = sum_{i<j} L_ij^2 / 2,      fit - size  the gain in likelihood over nothing.

One Z tells little, for most of Q is fresh noise. So both Z and -Z are taken, in a few pairs: what is fresh in Q nearly
cancels in their mean, and what is left is Stein's unbiased estimate (with a divergence found by differences; Oliveira,
Lei and Tibshirani 2021). Without taste the mean fit is about normal around zero, of the variance

    4 size (1 + 1 / pairs):       L is nearly linear in M, and M' J M has twice the variance |J M|^2 = 2 size around its
                                  mean; the differences add as much again with a single pair.

So a fit is measured in deviations of what noise alone would give. Lists mind the direction of what was learned more
than its length, and the square of that measure is twice the gain of L at its best multiple: of several strengths the
strongest with at least half of the best square is taken. **Taste has the weight of its evidence:** none where the fit
is not above zero, all from BAR deviations on, and in between in proportion. What is half believed moves lists half as
far: that keeps most of what a true taste gains, and takes from a false one nearly all that it costs.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

from dpsr.arrays import Floats
from dpsr.likes.taste import Moments, learn_taste, modelled

STRENGTHS = (0.1, 0.3, 1.0)
"""Prior strengths that are tried, weakest first."""

BAR = 3.0
"""Deviations from which on taste is not doubted: noise alone gets there about once in seven hundred times."""

_SPLIT = 0.4
_KEPT = 1 / (1 + _SPLIT**-2)
"""Of what moments tell, the part that is in Q."""

_MOST_PAIRS, _PAIRED_CELLS = 4, 800
"""Pairs of fresh noise: so many, and fewer where cells are many, since learning takes longer there and shows more."""

_SWEEPS = 8
_SEED = 0
"""The fresh noise is drawn with a fixed seed: it reads nothing and is the same everywhere."""


@dataclass(frozen=True)
class TasteEvidence:
    """Fit and size of what every prior strength learned, over so many `cells`, and what follows."""

    fits: tuple[float, ...]
    sizes: tuple[float, ...]
    cells: int
    pairs: int
    """Of fresh noise, over which fits and sizes are means."""

    @property
    def deviations(self) -> tuple[float, ...]:
        """Every fit in deviations of what noise alone would give."""
        variance = 4 * (1 + 1 / self.pairs)
        return tuple(fit / sqrt(variance * max(size, 1e-9)) for fit, size in zip(self.fits, self.sizes, strict=True))

    @property
    def strength(self) -> float | None:
        """The prior strength to learn with; None where no taste shows."""
        best = max(self.deviations)
        if not best > 0:
            return None
        return max(one for one, found in zip(STRENGTHS, self.deviations, strict=True) if found >= best / sqrt(2))

    @property
    def weight(self) -> float:
        """How far taste is believed, from 0 to 1."""
        return min(max(max(self.deviations) / BAR, 0.0), 1.0)

    @property
    def plenty(self) -> bool:
        """Whether Q has a nat of gain for every cell: what one coefficient a cell must bring to be worth having."""
        gain = max(fit - size for fit, size in zip(self.fits, self.sizes, strict=True))
        return _KEPT * gain >= self.cells


def taste_evidence(moments: Moments) -> TasteEvidence:
    """How well taste that was learned from one part of the moments predicts the other part, at each strength."""
    T, more = len(moments.values), 1 + _SPLIT**2
    pairs = max(1, min(_MOST_PAIRS, _PAIRED_CELLS // T))
    values = moments.unexplained
    rng, deviations = np.random.default_rng(_SEED), np.outer(moments.deviations, moments.deviations)
    fits, sizes = np.zeros(len(STRENGTHS)), np.zeros(len(STRENGTHS))
    for _ in range(pairs):
        Z = np.triu(rng.normal(size=(T, T)), 1) * deviations
        for fresh in (Z + Z.T, -Z - Z.T):
            P, Q = values + _SPLIT * fresh, values - fresh / _SPLIT
            half = moments.with_values(P, moments.noise * sqrt(more), moments.people * more)
            for which, strength in enumerate(STRENGTHS):
                L = modelled(half, learn_taste(half, strength, sweeps=_SWEEPS)) / deviations
                fits[which] += _above(Q / deviations * L)
                sizes[which] += _above(L * L / 2)
    many = 2 * pairs
    return TasteEvidence(tuple((fits / many).tolist()), tuple((sizes / many).tolist()), T, pairs)


def _above(terms: Floats) -> float:
    """The sum above the diagonal."""
    return float(np.triu(terms, 1).sum())
