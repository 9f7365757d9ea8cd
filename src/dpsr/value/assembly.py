r"""After the last sweep: a taste that the public mask makes smooth, then the model and what people's own ratings meet.

**The taste**, `learn_mask_taste`. Slopes on a few embeddings say how a person's liking runs across the whole catalogue.
What the same people meet is liked alike on a smaller scale, too: with k_j the features of a Gaussian kernel on 32 mask
embeddings (`kernel_features`),

    z_e - eta_e = k_j(e) . t_u + N(0, 1/w_e),      t_u ~ N(0, tau I),

z_e the noisy ratings as read at the means eta_e, w_e their weights. One pass after the last sweep gives t_u, by
conjugate gradients, one person at a time; items, slopes and factors stay as they are.

The variance tau is learned from pairs of noisy ratings of one person, as that of effects is (`start.py`). What is
left of them was fitted already: with Z the rows (z_j, g_j) of the person's items, C the posterior covariance of their
coefficients (c_u, f_u) and P = W - W Z C Z' W, the weighted remainder s = W (z - eta) has covariance P + tau P K K' P.
So over pairs of two different ratings,

    E[ sum_{e != f} s_e s_f k_e . k_f ] = -sum_{e != f} (W Z C Z' W)_ef k_e . k_f
                                          + tau ( |K'PK|^2 - sum_e |k_e|^2 |(PK)_e|^2 ),

whatever the noise of a single rating is: no residual variance enters but through weights. People are weighed by
1 / (1 + t0 l)^2, l a mean eigenvalue of K'PK and t0 a typical tau. The estimate moves from zero as far as it is certain
against t0, and not beyond t0; where it does not exceed its own standard error, there is no taste of this kind in the
release. Where the mask has no structure nothing is looked for.

**The model** in rating points, `assemble`, from the state of inference, which is in half-widths of the scale.

**What people's own ratings will meet**, `personal_prior`: how well items are known, and what is expected of people. All
of it follows from the state of inference, so it is post-processing and free. Items: the posterior covariance of
(b_j, g_j), from the normal equations of the last sweep. People: the learned prior of (c_u, f_u). Where no noisy ratings
were bought the variance t of people's own effects is known from their noisy sums alone. A sum says
value_u = effect_u + N(0, variance_u), so value_u ~ N(0, t + variance_u), and with ln t ~ N(ln typical, s^2)

    ln P(t | sums) = -1/2 sum_u [ ln(t + variance_u) + value_u^2 / (t + variance_u) ] - (ln t - ln typical)^2 / (2 s^2)

on a grid. A person's own ratings then say which of these t fits them (`release.personalise.posterior`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpsr.arrays import Floats, Ints, Singles
from dpsr.engine import Block, BlockResult, Table
from dpsr.engine.incidence import at_ratings
from dpsr.engine.table import zeros
from dpsr.linalg.compiled import threads_for
from dpsr.linalg.kernel_features import Kernel, kernel_features
from dpsr.types import Census, Mask, Model, PersonalPrior, Scale
from dpsr.types.personal import Widths
from dpsr.value.design import Design
from dpsr.value.effects import EffectObservation, Effects
from dpsr.value.evidence import EvidenceState
from dpsr.value.levels import LevelFamily
from dpsr.value.priors import EFFECT
from dpsr.value.side import inverse, posterior_covariances
from dpsr.value.sweep import NOISY, WEIGHT
from dpsr.value.taste_kernels import pair_sums, tastes

KERNEL = Kernel(landmarks=256, features=48, length=0.7)
"""Its size: a quarter of what `personalise` takes, at a tenth of the time."""

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
    return kernel_features(design.smooth, design.item_counts, KERNEL)


def taste_variance(state: EvidenceState, items: Floats, released: str) -> float:
    """tau, or zero where pairs do not show it."""
    table, typical = state.design.table, _TYPICAL * state.variance
    step = -(-table.census.n_ratings // _ENOUGH)
    fitted = np.column_stack([state.design.z, state.g])
    precision = inverse(state.user_prior.covariance)

    def add(block: Block, sums: Floats) -> None:
        first = -block.first % step
        off, w = _off_and_weight(block, released)
        sums += pair_sums(block.indptr, block.items, first, step, off, w, items, fitted, precision, typical)

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


def assemble(
    mask: Mask | Census, scale: Scale, state: EvidenceState, taste: MaskTaste, personal: PersonalPrior | None = None
) -> Model:
    """prediction = midpoint + half-width * left . right, as two thin factors; strangers get averages over ratings."""
    half, (users, items) = scale.width / 2, state.predicting
    left = np.column_stack([users, np.ones(mask.n_users), taste.users])
    right = np.column_stack([half * items, np.full(mask.n_items, scale.midpoint), half * taste.items])
    everyone = _average(left, mask.user_counts)
    everything = _average(right, mask.item_counts)
    return Model(
        mask=mask,
        scale=scale,
        user_factors=left,
        item_factors=right,
        user_means=left @ everything,
        item_means=right @ everyone,
        overall=float(everyone @ everything),
        residual_variance=half**2 * state.residual,
        user_mean=everyone,
        affinity=state.design.affinity,
        user_covariance=_stranger_covariance(left, mask.user_counts, state, taste.variance),
        personal=personal,
    )


def _average(rows: Floats, counts: Ints) -> Floats:
    return counts @ rows / max(int(counts.sum()), 1)


def _stranger_covariance(left: Floats, counts: Ints, state: EvidenceState, taste_variance: float) -> Floats:
    """Public features vary as among the raters; coefficients as their learned prior says, not as shrunk means do."""
    d = state.design.x.shape[1]
    covariance = np.zeros((left.shape[1], left.shape[1]))
    x = left[counts > 0, :d] if counts.any() else left[:, :d]
    covariance[:d, :d] = np.cov(x, rowvar=False, bias=True)
    own = state.user_prior.covariance
    covariance[d : d + len(own), d : d + len(own)] = own
    tastes = np.arange(d + len(own) + 1, len(covariance))
    covariance[tastes, tastes] = taste_variance
    return covariance


_EFFECT_SPREAD = 2.5
"""Standard deviation of the logarithm of the variance of effects, before anything is seen."""

_GRID = np.linspace(-5, 1.5, 14)
"""Logarithms of variances tried, around the typical one: effects that large are unheard of, none at all is not."""

_HARDLY = 5.0
"""Grid points that are e^5 times less likely than the best one are left out."""

_UNASKED = 1e6
"""A variance no answer has."""


def personal_prior(
    state: EvidenceState, family: LevelFamily, effects: Effects, observation: EffectObservation
) -> PersonalPrior:
    """The prior behind a state; `observation` is what the sums say about users' effects."""
    bought = state.item_rows is not None
    return PersonalPrior(
        widths=Widths(state.design.x.shape[1], state.design.z.shape[1], state.k),
        item_covariance=_item_covariance(state, effects),
        weights=state.user_prior.weights,
        covariance=state.user_prior.covariance,
        variance=state.variance,
        means=family.means,
        spread=family.variance,
        effect_chances=None if bought else effect_chances(observation, state.variance),
    )


def _item_covariance(state: EvidenceState, effects: Effects) -> Singles:
    if state.item_rows is None:
        return effects.item_posterior_variance[:, None].astype(np.float32)
    return posterior_covariances(state.item_rows, state.item_prior)


def effect_chances(observation: EffectObservation, of_ratings: float) -> tuple[Floats, Floats]:
    """ln t on a grid and its log weight, for ratings whose variance is `of_ratings`."""
    asked = observation.variance < _UNASKED
    t = EFFECT * of_ratings * np.exp(_GRID)
    total = t[:, None] + observation.variance[asked]
    chance = -0.5 * np.sum(np.log(total) + observation.value[asked] ** 2 / total, axis=1)
    chance -= 0.5 * (_GRID / _EFFECT_SPREAD) ** 2
    likely = chance > chance.max() - _HARDLY
    return np.log(t[likely]), chance[likely] - chance.max()
