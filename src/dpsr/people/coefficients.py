"""Where and how widely people's coefficients lie: a prior that their own regressions start from."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dpsr.arrays import Floats

SLOPE_VARIANCES = (0.2, 0.02)
"""Over people, of the slopes on an item's effect and on its log popularity, before anything is asked."""

_MOVES = {"mean": 0.5, "own level": 0.15, "variance": 0.5, "covariance": 0.3}
"""How far, in deviations of the prior, a mean, the level's, a variance and a covariance are expected to move."""


@dataclass(frozen=True, eq=False)
class CoefficientPrior:
    """Mean and covariance of coefficients on (1, features), and which share of each one's variance ratings tell."""

    mean: Floats
    covariance: Floats
    known: Floats

    def with_factors(self, variances: Floats) -> CoefficientPrior:
        """The same for as many factors more."""
        d, k = len(variances), len(self.mean)
        covariance = np.zeros((k + d, k + d))
        covariance[:k, :k] = self.covariance
        covariance[range(k, k + d), range(k, k + d)] = variances
        return CoefficientPrior(
            np.concatenate([self.mean, np.zeros(d)]), covariance, np.concatenate([self.known, np.full(d, 0.5)])
        )

    def centred(self, mean: Floats) -> CoefficientPrior:
        """The same around another mean."""
        return replace(self, mean=mean)


def read_coefficients(answer: Floats, noise: float, people: float, prior: CoefficientPrior) -> CoefficientPrior:
    """One Newton step for mean and covariance, each entry shrunk by its known error.

    In coordinates where the prior is standard, the mean moves by sum e / sum K and the covariance by D_ab = sum (e_a
    e_b - K_ab) / sqrt(sum K_aa^2 sum K_bb^2). The level (coefficient 0) was asked for before, so it is believed to move
    little.
    """
    k = len(prior.mean)
    pairs = k * (k + 1) // 2
    e, excess = answer[:k], answer[k : k + pairs]
    K = np.maximum(answer[k + pairs : 2 * k + pairs], 1e-9)
    K2 = np.maximum(answer[2 * k + pairs : 3 * k + pairs], 1e-9)
    moves = np.where(np.arange(k) == 0, _MOVES["own level"], _MOVES["mean"]) ** 2
    shift = np.where(2 * noise < K, e / K * moves / (moves + noise**2 / K**2 + 1 / K), 0.0)
    D, known, i = np.zeros((k, k)), prior.known.copy(), 0
    for a in range(k):
        for b in range(a + 1):
            information = np.sqrt(K2[a] * K2[b])
            move = _MOVES["own level" if a == 0 else "variance" if a == b else "covariance"] ** 2
            if information > 2 * noise:
                error = (noise**2 + 2 * information) / information**2
                D[a, b] = D[b, a] = excess[i] / information * move / (move + error)
            if a == b and K[a] > 2 * noise:
                known[a] = np.clip((excess[i] + K[a]) / people, 0.05, 1.0)
            i += 1
    values, vectors = np.linalg.eigh(np.eye(k) + D)
    L = np.linalg.cholesky(prior.covariance)
    grown = vectors @ np.diag(np.clip(values, 0.2, 4.0)) @ vectors.T
    covariance = L @ grown @ L.T
    return CoefficientPrior(prior.mean + L @ shift, (covariance + covariance.T) / 2, known)
