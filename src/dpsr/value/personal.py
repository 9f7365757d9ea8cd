r"""What people's own ratings will meet: how well items are known, and what is expected of people.

All of it follows from the state of inference, so it is post-processing and free. Items: the posterior covariance of
(b_j, g_j), from the normal equations of the last sweep. People: the learned prior of (c_u, f_u).

**Where no noisy ratings were bought** the variance t of people's own effects is known from their noisy sums alone. A
sum says value_u = effect_u + N(0, variance_u), so value_u ~ N(0, t + variance_u), and with ln t ~ N(ln typical, s^2)

    ln P(t | sums) = -1/2 sum_u [ ln(t + variance_u) + value_u^2 / (t + variance_u) ] - (ln t - ln typical)^2 / (2 s^2)

on a grid. A person's own ratings then say which of these t fits them (`release.personalise.posterior`).
"""

from __future__ import annotations

import numpy as np

from dpsr.arrays import Floats, Singles
from dpsr.types.personal import PersonalPrior, Widths
from dpsr.value.effects import EffectObservation, Effects
from dpsr.value.evidence import EvidenceState
from dpsr.value.levels import LevelFamily
from dpsr.value.priors import EFFECT
from dpsr.value.side import posterior_covariances

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
