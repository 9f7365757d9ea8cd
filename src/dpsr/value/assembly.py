r"""From the state of inference, in half-widths of the scale, to what is released.

**The model** in rating points, `assemble`.

**What people's own ratings will meet**, `personal_prior`: how well items are known, and what is expected of people. All
of it follows from the state of inference, so it is post-processing and free. Items: the posterior covariance of
(b_j, g_j), from the normal equations of the last sweep. People: the learned prior of (c_u, f_u). Where no noisy ratings
were bought the variance t of people's own effects is known from their noisy sums alone. A sum says
value_u = effect_u + N(0, variance_u), so value_u ~ N(0, t + variance_u), and with ln t ~ N(ln typical, s^2)

    ln P(t | sums) = -1/2 sum_u [ ln(t + variance_u) + value_u^2 / (t + variance_u) ] - (ln t - ln typical)^2 / (2 s^2)

on a grid. A person's own ratings then say which of these t fits them (`release.personalise.posterior`).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dpsr.arrays import Floats, Singles
from dpsr.types import Census, Mask, Model, PersonalPrior, Scale
from dpsr.types.personal import Widths
from dpsr.value.effects import EffectObservation, Effects
from dpsr.value.evidence import EvidenceState
from dpsr.value.levels import LevelFamily
from dpsr.value.mask_taste import MaskTaste
from dpsr.value.priors import EFFECT
from dpsr.value.side import posterior_covariances


def assemble(
    mask: Mask | Census, scale: Scale, state: EvidenceState, taste: MaskTaste, personal: PersonalPrior | None = None
) -> Model:
    """prediction = midpoint + half-width * left . right, as two thin factors; strangers get averages over ratings."""
    half = scale.width / 2
    left = np.column_stack([state.left[:], np.ones(mask.n_users), taste.users])
    right = np.column_stack([half * state.right, np.full(mask.n_items, scale.midpoint), half * taste.items])
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


def _average(rows: Floats, counts: npt.NDArray[np.int64]) -> Floats:
    return counts @ rows / max(int(counts.sum()), 1)


def _stranger_covariance(
    left: Floats, counts: npt.NDArray[np.int64], state: EvidenceState, taste_variance: float
) -> Floats:
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
