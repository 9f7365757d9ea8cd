"""McSherry and Mironov 2009, "Differentially private recommender systems: building privacy into the net".

Noisy averages, then a noisy item covariance, all Gaussian; 2 %, 49 % and 49 % of the budget. The noisy covariance is
shrunk entry by entry towards zero, as its noise and the public number of common raters call for,

    C_jk = cov_jk W_jk t / (W_jk^2 t + W_jk residual^2 + noise^2),     W_jk = sum of w_u over common raters,

and every user applies it to the user's own ratings: joint DP, as in the paper, where covariances are published and
recommendations computed from them and one's own ratings.

    mcsherry-mironov       the K strongest neighbours of an item (kNN)
    mcsherry-mironov-svd   the leading eigenvectors, what is below the level of the noise cut off; the noise level is
                           the most negative eigenvalue, which a covariance does not have

**The covariance and its sensitivity.** A user's ratings, centred by the noisy item effects, lose the user's own
shrunken mean and are clamped:

    d_uj = y_uj - mean - item_j,    h_u = sum_j d_uj / (n_u + beta),    e_uj = clamp(d_uj - h_u, -B, B)
    cov_jk = sum_u w_u e_uj e_uk,   w_u = 1 / sqrt(k_u),    over pairs j < k of the K most rated items

k_u of u's n_u items being among those K. When one value changes by 2, its own e moves by at most 2B and all others by
at most 2 / (n_u + beta), so |e - e'| <= s_u with s_u^2 = max(2B, 2/(n_u+beta))^2 + (k_u - 1) (2/(n_u+beta))^2, and

    |e e' - f f'|_F <= |e - f| (|e| + |f|) <= s_u 2 B sqrt(k_u).

Each pair j < k stands for two entries of the matrix, so the released half moves by at most
max_u w_u s_u 2 B sqrt(k_u) / sqrt(2) = max_u sqrt(2) B s_u in Euclidean length. All of it reads public counts.

The paper protects the presence of a rating and so also pays for counts and weights, with w_u = 1 / k_u; with the value
as unit they are public, and 1/sqrt(k_u) keeps more of the signal at the same sensitivity in this norm.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dpsr.arrays import Floats, Ints
from dpsr.engine.raw import RawRatings
from dpsr.evaluate.baselines.base import Linear
from dpsr.evaluate.baselines.item_knn import Neighbourhood
from dpsr.evaluate.contract import FLOATING, JOINT, MASK, PrivateMethod, Protection
from dpsr.evaluate.metrics.ranking import Predictor
from dpsr.evaluate.peers.accounting import epsilon_of, gaussian_multiplier
from dpsr.evaluate.peers.averages import group_sums, shrunk, shrunk_mean
from dpsr.evaluate.peers.floating import Price, gaussian_noise
from dpsr.evaluate.peers.least_squares import RESIDUAL, VALUE_SENSITIVITY, local_rows, unit_values
from dpsr.linalg.compiled import one_blas_thread
from dpsr.types import Mask

SHARES = (0.02, 0.49, 0.49)
NEIGHBOURS, DAMP, RANK = 40, 0.5, 8
SIGNAL = 1e-3
"""t: how large the covariance of two items is, squared on average, in [-1, 1]^2."""
BOUND = 0.5
"""B, in half-widths of the scale."""
BETA = 5.0
"""Pretended ratings at zero in a user's own mean."""
LIMIT, LEAST = 1000, 5
"""Items in the covariance: the most rated ones, with at least so many ratings."""


@dataclass
class McSherryMironov(PrivateMethod):
    """Predicts by the neighbours of an item, or by the leading eigenvectors of the covariance (`svd`)."""

    svd: bool = False

    def _learn(self, ratings: RawRatings) -> tuple[Predictor, Protection]:
        mask, y, rng = ratings.mask, unit_values(ratings), self._noise()
        centre, item_effects, prices = self._averages(mask, y, rng)
        e, h = user_centred(mask, y - centre - item_effects[mask.items])
        pairs = CovarianceItems.of(mask)
        upper, price = gaussian_noise(
            half_covariance(mask, pairs, e), sensitivity=pairs.sensitivity, multiplier=self._multiplier(2), rng=rng
        )
        C = symmetric(shrunk_covariance(upper, half_weights(mask, pairs), price.scale), len(pairs.items))
        base = Linear(ratings.scale, centre, np.column_stack([h, np.ones(len(h))]),
                      np.column_stack([np.ones(mask.n_items), item_effects]))  # fmt: skip
        build = leading if self.svd else nearest
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


def nearest(base: Linear, mask: Mask, e: Floats, C: Floats, pairs: CovarianceItems) -> Predictor:
    """Neighbours by covariance; a user's term is the weighted average of the user's own residuals, damped."""
    k = min(NEIGHBOURS, len(pairs.items))
    best = np.argsort(-C, axis=1, kind="stable")[:, :k]
    items, weights = np.zeros((mask.n_items, k), np.int32), np.zeros((mask.n_items, k))
    items[pairs.items] = pairs.items[best]
    weights[pairs.items] = np.maximum(np.take_along_axis(C, best, axis=1), 0.0) / RESIDUAL
    half = base.scale.width / 2
    return Neighbourhood(base.predict, mask, half * e, items, weights, DAMP)


def leading(base: Linear, mask: Mask, e: Floats, C: Floats, pairs: CovarianceItems) -> Predictor:
    """Factors sqrt(eigenvalue) eigenvector of what stands out of the noise; users' factors from their own ratings."""
    factors = np.zeros((mask.n_items, RANK))
    if len(C):
        values, vectors = np.linalg.eigh(C)
        strong = np.maximum(values[-RANK:] - abs(values[0]), 0.0)
        factors[pairs.items, : len(strong)] = vectors[:, -RANK:] * np.sqrt(strong)
    own = local_rows(mask, e, factors, RESIDUAL)
    return Linear(base.scale, base.mean, np.hstack([base.users, own]), np.hstack([base.items, factors]))


@dataclass(frozen=True, eq=False)
class CovarianceItems:
    """Which items are in the covariance and what the public counts say about it."""

    items: Ints
    column: npt.NDArray[np.int64]
    kept: npt.NDArray[np.bool_]
    user_weight: Floats
    sensitivity: float

    @classmethod
    def of(cls, mask: Mask) -> CovarianceItems:
        """The most rated items; ties to the lower code."""
        order = np.argsort(-mask.item_counts, kind="stable")[:LIMIT]
        items = np.sort(order[mask.item_counts[order] >= LEAST])
        column = np.full(mask.n_items, -1)
        column[items] = np.arange(len(items))
        kept = column[mask.items] >= 0
        k = np.bincount(mask.users[kept], minlength=mask.n_users)
        weight = 1 / np.sqrt(np.maximum(k, 1))
        return cls(items, column, kept, weight, half_sensitivity(mask.user_counts[k > 0], k[k > 0]))


def half_sensitivity(n: Ints, k: Ints) -> float:
    """max_u sqrt(2) B s_u over users with n ratings, k of them on kept items."""
    if not len(n):
        return float(np.sqrt(2) * BOUND * 2 * BOUND)
    shift = 2 / (n + BETA)
    moved = np.sqrt(np.maximum(2 * BOUND, shift) ** 2 + (k - 1) * shift**2)
    return float(np.sqrt(2) * BOUND * moved.max())


def user_centred(mask: Mask, centred: Floats) -> tuple[Floats, Floats]:
    """e at every rating and h of every user, from ratings centred by mean and item."""
    h = np.bincount(mask.users, centred, minlength=mask.n_users) / (mask.user_counts + BETA)
    return np.clip(centred - h[mask.users], -BOUND, BOUND), h


def half_covariance(mask: Mask, pairs: CovarianceItems, e: Floats) -> Floats:
    """cov_jk for j < k, row by row."""
    return half(_gram(mask, pairs, e))


def half_weights(mask: Mask, pairs: CovarianceItems) -> Floats:
    """sum of w_u over the common raters of each pair: public."""
    return half(_gram(mask, pairs, np.ones(mask.n_ratings)))


def half(matrix: Floats) -> Floats:
    """The entries above the diagonal, row by row."""
    return matrix[np.triu_indices(len(matrix), 1)]


def symmetric(upper: Floats, size: int) -> Floats:
    """The symmetric matrix with these entries above its diagonal, and zeros on it."""
    matrix = np.zeros((size, size))
    matrix[np.triu_indices(size, 1)] = upper
    return matrix + matrix.T


def _gram(mask: Mask, pairs: CovarianceItems, e: Floats) -> Floats:
    users, columns = mask.users[pairs.kept], pairs.column[mask.items[pairs.kept]]
    values = e[pairs.kept] * np.sqrt(pairs.user_weight[users])
    X = sp.csr_matrix((values, (users, columns)), shape=(mask.n_users, len(pairs.items)))
    return (X.T @ X).toarray()
