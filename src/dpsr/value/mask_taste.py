r"""A taste over items that the public mask makes smooth, read from what the sweeps left of the noisy ratings.

Slopes on a few embeddings say how a person's liking runs across the whole catalogue. What the same people meet is liked
alike on a smaller scale, too: with k_j the features of a Gaussian kernel on 32 mask embeddings (`kernel_features`),

    z_e - eta_e = k_j(e) . t_u + N(0, 1/w_e),      t_u ~ N(0, tau I),

z_e the noisy ratings as read at the means eta_e, w_e their weights. One pass after the last sweep gives t_u, by
conjugate gradients, one person at a time; items, slopes and factors stay as they are.

**The variance** tau is learned from pairs of noisy ratings of one person, as that of effects is (`start.py`). What is
left of them was fitted already: with Z the rows (z_j, g_j) of the person's items, C the posterior covariance of their
coefficients (c_u, f_u) and P = W - W Z C Z' W, the weighted remainder s = W (z - eta) has covariance P + tau P K K' P.
So over pairs of two different ratings,

    E[ sum_{e != f} s_e s_f k_e . k_f ] = -sum_{e != f} (W Z C Z' W)_ef k_e . k_f
                                          + tau ( |K'PK|^2 - sum_e |k_e|^2 |(PK)_e|^2 ),

whatever the noise of a single rating is: no residual variance enters but through weights. People are weighed by
1 / (1 + t0 l)^2, l a mean eigenvalue of K'PK and t0 a typical tau. The estimate moves from zero as far as it is certain
against t0, and not beyond t0; where it does not exceed its own standard error, there is no taste of this kind in the
release. Where the mask has no structure nothing is looked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from dpsr.arrays import Floats
from dpsr.engine import Block, BlockResult, Table
from dpsr.engine.incidence import Incidence, at_ratings
from dpsr.engine.table import zeros
from dpsr.linalg.compiled import threads_for
from dpsr.linalg.kernel_features import Kernel, kernel_features
from dpsr.linalg.lanczos import leading_and_more
from dpsr.linalg.normal_equations import inverse
from dpsr.value.design import RANK, Design, degree_scales
from dpsr.value.evidence import EvidenceState
from dpsr.value.sweep import NOISY, WEIGHT
from dpsr.value.taste_kernels import pair_sums, tastes

EMBEDDINGS, KERNEL = 32, Kernel(landmarks=256, features=48, length=0.7)
"""Embeddings the kernel is built on, and its size: a quarter of what `personalise` takes, at a tenth of the time."""

_PRODUCTS = 8
"""Of the mask, for the embeddings; these need directions, not digits."""

_TYPICAL = 0.06
"""Share of the variance of ratings that such a taste has, at most: what `personalise` gives it."""

_ENOUGH = 30_000
"""Ratings whose pairs are looked at, about: every so manieth person."""


@dataclass(frozen=True, eq=False)
class MaskTaste:
    """Features of items and everybody's coefficients of them, of prior variance `variance`; maybe no column at all."""

    users: Floats
    items: Floats
    variance: float

    @classmethod
    def none(cls, design: Design) -> MaskTaste:
        """No such taste."""
        m, n = design.census.shape
        return cls(np.zeros((m, 0)), np.zeros((n, 0)), 0.0)


def learn_mask_taste(state: EvidenceState, released: str, *, least: float = 0.0) -> MaskTaste:
    """The taste of everybody, added to the column `released` of means, where noisy ratings show that there is one.

    A variance that is at least so much, whatever they show, is for those who want every kernel to be used.
    """
    design = state.design
    if design.embedding == 0 or (design.structure == 0 and least == 0):
        return MaskTaste.none(design)
    items = item_features(design)
    variance = max(taste_variance(state, items, released), least)
    if variance == 0:
        return MaskTaste.none(design)
    return MaskTaste(_add_tastes(design.table, items, variance, released), items, variance)


def item_features(design: Design) -> Floats:
    """k_j of every item: the leading vectors of the degree-normalised mask, made smooth."""
    counts, rated = design.item_counts, design.item_counts > 0
    left, right = degree_scales(design.census.user_counts), degree_scales(design.census.item_counts)

    def everywhere(X: Floats) -> Floats:
        full = np.zeros((len(rated), X.shape[1]))
        full[rated] = X
        return full

    def among_rated(gram: partial[Floats], X: Floats) -> Floats:
        return gram(everywhere(X))[rated]

    gram = partial(among_rated, partial(Incidence(design.table).gram, left, right))
    s, V = leading_and_more(gram, int(rated.sum()), RANK + 1, more=EMBEDDINGS - RANK, products=_PRODUCTS)
    return kernel_features(everywhere(V[:, 1:] * s[1:]) * right[:, None], counts, KERNEL)


def taste_variance(state: EvidenceState, items: Floats, released: str) -> float:
    """tau, or zero where pairs do not show it."""
    table, typical = state.design.table, _TYPICAL * state.variance
    step = -(-table.census.n_ratings // _ENOUGH)
    fitted = np.column_stack([state.design.z, state.g])
    precision = inverse(state.user_prior.covariance)

    def add(block: Block, sums: Floats) -> None:
        first = -block.first % step
        off, w = _off_and_weight(block, released)
        pair_sums(block.indptr, block.items, first, step, off, w, items, fitted, precision, typical, sums)

    found, pairs, square = table.run(add, [zeros(3)], reads=[released, NOISY, WEIGHT]).sums[0]
    if pairs <= 0 or found <= np.sqrt(square):
        return 0.0
    return float(min(found / pairs * typical**2 / (typical**2 + square / pairs**2), typical))


def _off_and_weight(block: Block, released: str) -> tuple[Floats, Floats]:
    noisy, mean, weight = (block.columns[name].astype(np.float64) for name in (NOISY, released, WEIGHT))
    return noisy - mean, weight


def _add_tastes(table: Table, items: Floats, variance: float, released: str) -> Floats:
    """t of everybody; what it adds to each mean is added to the column `released`."""
    single = items.astype(np.float32)

    def solve(block: Block) -> BlockResult:
        off, w = _off_and_weight(block, released)
        with threads_for(8 * len(off) * items.shape[1]):
            t = tastes(block.indptr, block.items, off, w, single, variance)
        return BlockResult({released: block.columns[released] + at_ratings(block, t, items)}, (t,))

    return table.run(solve, reads=[released, NOISY, WEIGHT], writes=[released]).rows[0]
