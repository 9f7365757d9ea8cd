"""Objective perturbation for matrix factorisation: Chaudhuri et al. 2011, as Hua, Xia and Zhong 2015 apply it.

With user vectors x_u, |x_u| <= 1, given and fixed, each item vector minimises a perturbed objective of its own,

    v_j = argmin  sum_u (y_uj - x_u . v)^2 + lambda_j |v|^2 + eta_j . v,     density of eta ~ exp(-epsilon |eta| / 4),

which is v_j = (gram_j + lambda_j)^-1 (right_j - eta_j / 2). Changing the value of one rating by at most 2 (y lies in
[-1, 1]) moves the gradient of one item's objective by 4 |x_u| <= 4 and no Hessian, since the mask is public: with it
v_1, ..., v_n is epsilon-DP without the correction terms of the general theorem, whatever lambda.

Hua et al. take the user vectors from an ordinary factorisation of the raw ratings and leave them out of the account.
That is not private, so here they are public: a constant and the leading directions of the public mask, which no paper
had to give. Then

    objective-mf         users by the same perturbed objective given the items, half of the budget each: central DP
    objective-mf-local   all of the budget for the items, each user's vector computed by that user alone, as in the
                         paper: joint DP
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpsr.arrays import Floats
from dpsr.engine import MemoryTable
from dpsr.engine.raw import RawRatings
from dpsr.evaluate.baselines.base import Linear, by_items
from dpsr.evaluate.contract import FLOATING, JOINT, MASK, PrivateMethod, Protection
from dpsr.evaluate.metrics.ranking import Predictor
from dpsr.evaluate.peers.accounting import epsilon_of
from dpsr.evaluate.peers.averages import noisy_mean
from dpsr.evaluate.peers.least_squares import (
    RESIDUAL,
    clip_rows,
    local_rows,
    perturbed_rows,
    signal_of,
    unit_values,
)
from dpsr.types import Mask
from dpsr.value.design import mask_embeddings

RANK = 4
"""The most directions of the mask; see `rank_for`."""
MEAN_SHARE = 0.02
BIAS = 0.1
"""Prior variance of a coefficient on the constant, which is shorter than one where vectors were clipped."""


@dataclass
class ObjectivePerturbation(PrivateMethod):
    """One perturbed objective per item, given public user vectors; then for users too, or by each user (`local`)."""

    local: bool = False

    def _learn(self, ratings: RawRatings) -> tuple[Predictor, Protection]:
        mask, y, rng = ratings.mask, unit_values(ratings), self._noise()
        mean, first = noisy_mean(y, MEAN_SHARE * self.epsilon, rng)
        budget = (1 - MEAN_SHARE) * self.epsilon / (1 if self.local else 2)
        x, by_item = public_vectors(mask, rank_for(self.epsilon)), by_items(mask)
        v, second = perturbed_rows(
            by_item.ptr,
            by_item.users,
            y[by_item.places] - mean,
            x,
            budget,
            rng,
            signal=_signal(x),
        )
        rest = y - mean - np.einsum("rd,rd->r", x[mask.users], v[mask.items])
        z = clip_rows(np.hstack([np.ones((mask.n_items, 1)), v]), 1.0)
        prices = [first, second]
        if self.local:
            w = local_rows(mask, rest, z, RESIDUAL / _signal(z))
        else:
            w, third = perturbed_rows(mask.indptr, mask.items, rest, z, budget, rng, signal=_signal(z))
            prices.append(third)
        model = Linear(ratings.scale, mean, np.hstack([x, w]), np.hstack([v, z]))
        note = f"public user vectors from the mask; {FLOATING}" + (f"; {JOINT}" if self.local else "")
        return model, Protection("rating value", epsilon_of(prices, self.delta), 0.0, MASK, note)


def rank_for(epsilon: float) -> int:
    """One direction while noise decides, all where it does not: read from the budget alone."""
    return int(np.clip(round(epsilon / 5), 1, RANK))


def public_vectors(mask: Mask, rank: int) -> Floats:
    """A constant and the leading directions of the mask, together of length one at most."""
    directions = mask_embeddings(MemoryTable(mask), rank).users
    directions = directions / np.maximum(np.abs(directions).max(axis=0, initial=0.0), 1e-300)
    return clip_rows(np.hstack([np.ones((mask.n_users, 1)), directions]), 1.0)


def _signal(x: Floats) -> Floats:
    """Prior variances of the coefficients on x, whose first column is the constant."""
    return signal_of(x.shape[1], BIAS)
