"""McSherry and Mironov 2009, "Differentially private recommender systems: building privacy into the net".

Noisy averages, then a noisy item covariance (`covariance`), all Gaussian; 2 %, 49 % and 49 % of the budget. The noisy
covariance is shrunk entry by entry towards zero, as its noise and the public number of common raters call for,

    C_jk = cov_jk W_jk t / (W_jk^2 t + W_jk residual^2 + noise^2),     W_jk = sum of w_u over common raters,

and every user applies it to the user's own ratings: joint DP, as in the paper, where covariances are published and
recommendations computed from them and one's own ratings.

    mcsherry-mironov       the K strongest neighbours of an item (kNN)
    mcsherry-mironov-svd   the leading eigenvectors, what is below the level of the noise cut off; the noise level is
                           the most negative eigenvalue, which a covariance does not have
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpsr.arrays import Floats
from dpsr.evaluate.peers.accounting import epsilon_of, gaussian_multiplier
from dpsr.evaluate.peers.averages import group_sums, shrunk, shrunk_mean
from dpsr.evaluate.peers.base import FLOATING, JOINT, MASK, PrivatePeer, Protection
from dpsr.evaluate.peers.covariance import Pairs, half_covariance, half_weights, user_centred, whole
from dpsr.evaluate.peers.floating import Price, gaussian_noise
from dpsr.evaluate.peers.item_knn import Neighbourhood
from dpsr.evaluate.peers.linear import VALUE_SENSITIVITY, Linear, local_rows, unit_values
from dpsr.evaluate.peers.perturbed import RESIDUAL
from dpsr.evaluate.ranking import Predictor
from dpsr.linalg.compiled import one_blas_thread
from dpsr.types import Mask
from dpsr.types.raw import RawRatings

SHARES = (0.02, 0.49, 0.49)
NEIGHBOURS, DAMP, RANK = 40, 0.5, 8
SIGNAL = 1e-3
"""t: how large the covariance of two items is, squared on average, in [-1, 1]^2."""


@dataclass
class McSherryMironov(PrivatePeer):
    """`name` is mcsherry-mironov (kNN) or mcsherry-mironov-svd."""

    name: str = "mcsherry-mironov"

    def _learn(self, ratings: RawRatings) -> tuple[Predictor, Protection]:
        mask, y, rng = ratings.mask, unit_values(ratings), self._noise()
        centre, item_effects, prices = self._averages(mask, y, rng)
        e, h = user_centred(mask, y - centre - item_effects[mask.items])
        pairs = Pairs.of(mask)
        upper, price = gaussian_noise(
            half_covariance(mask, pairs, e), sensitivity=pairs.sensitivity, multiplier=self._multiplier(2), rng=rng
        )
        C = whole(shrunk_covariance(upper, half_weights(mask, pairs), price.scale), len(pairs.items))
        base = Linear(ratings.scale, centre, np.column_stack([h, np.ones(len(h))]),
                      np.column_stack([np.ones(mask.n_items), item_effects]))  # fmt: skip
        build = nearest if self.name == "mcsherry-mironov" else leading
        with one_blas_thread():
            model = build(base, mask, e, C, pairs)
        spent = epsilon_of([*prices, price], self.delta)
        return model, Protection("rating value", spent, self.delta, MASK, f"{JOINT}; {FLOATING}")

    def _multiplier(self, part: int) -> float:
        return gaussian_multiplier(self.epsilon, self.delta, share=SHARES[part])

    def _averages(self, mask: Mask, y: Floats, rng: np.random.Generator) -> tuple[float, Floats, list[Price]]:
        total, first = gaussian_noise(
            np.array([y.sum()]), sensitivity=VALUE_SENSITIVITY, multiplier=self._multiplier(0), rng=rng
        )
        mean = shrunk_mean(float(total[0]), len(y), first.scale**2)
        sums = group_sums(mask.items, y - mean, mask.n_items)
        noisy, second = gaussian_noise(sums, sensitivity=VALUE_SENSITIVITY, multiplier=self._multiplier(1), rng=rng)
        return mean, shrunk(noisy, mask.item_counts, second.scale**2), [first, second]


def shrunk_covariance(upper: Floats, weights: Floats, noise: float) -> Floats:
    """The expected covariance of a pair given its noisy sum; zero without common raters."""
    return upper * weights * SIGNAL / (weights**2 * SIGNAL + weights * RESIDUAL**2 + noise**2)


def nearest(base: Linear, mask: Mask, e: Floats, C: Floats, pairs: Pairs) -> Predictor:
    """Neighbours by covariance; a user's term is the weighted average of the user's own residuals, damped."""
    k = min(NEIGHBOURS, len(pairs.items))
    best = np.argsort(-C, axis=1, kind="stable")[:, :k]
    items, weights = np.zeros((mask.n_items, k), np.int32), np.zeros((mask.n_items, k))
    items[pairs.items] = pairs.items[best]
    weights[pairs.items] = np.maximum(np.take_along_axis(C, best, axis=1), 0.0) / RESIDUAL
    half = base.scale.width / 2
    return Neighbourhood(base.predict, mask, half * e, items, weights, DAMP)


def leading(base: Linear, mask: Mask, e: Floats, C: Floats, pairs: Pairs) -> Predictor:
    """Factors sqrt(eigenvalue) eigenvector of what stands out of the noise; users' factors from their own ratings."""
    factors = np.zeros((mask.n_items, RANK))
    if len(C):
        values, vectors = np.linalg.eigh(C)
        strong = np.maximum(values[-RANK:] - abs(values[0]), 0.0)
        factors[pairs.items, : len(strong)] = vectors[:, -RANK:] * np.sqrt(strong)
    own = local_rows(mask, e, factors, RESIDUAL)
    return Linear(base.scale, base.mean, np.hstack([base.users, own]), np.hstack([base.items, factors]))
