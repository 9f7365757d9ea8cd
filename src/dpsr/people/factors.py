"""Factors of taste: from noisy second moments of the most popular cells, then from scores for all cells.

Eigenvalues of pure noise end at an edge that is known, so rank and number of cells follow from the noise; where nothing
stands above the edge, there are no factors, and it says so.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh

from dpsr.arrays import Floats
from dpsr.people.cells import Evidence

TASTE = 0.015
"""Share of residual variance that one direction of taste is expected to explain, where nothing is known yet."""

MOST_FACTORS, FEWEST_CELLS, MOST_CELLS = 12, 24, 2048


@dataclass(frozen=True, eq=False)
class Factors:
    """Item factors of every cell: prior mean and variance from second moments, posterior from scores."""

    prior: Floats
    prior_variance: Floats
    mean: Floats
    variance: Floats
    scores: Evidence

    @classmethod
    def of(cls, prior: Floats, variance: Floats) -> Factors:
        return cls(prior, variance, prior, variance, Evidence.none(*prior.shape))

    @property
    def n(self) -> int:
        return self.mean.shape[1]

    def with_scores(self, scores: Evidence, gain: Floats, lam: Floats, sampling: Floats) -> Factors:
        """With pooled scores S_p = lam gain_p (q_p - at_p) + noise.

        The sampling error, of variance sampling_p / lam, is the same in every round: it widens the prior once and is
        taken out again.
        """
        slope = lam[:, None] * gain
        A = (slope / scores.sigma) ** 2
        R = slope * (scores.S - slope * (self.prior - scores.at)) / scores.sigma**2
        V = self.prior_variance + sampling / np.maximum(lam[:, None], 1e-6)
        q, v0 = 1 + A * V, self.prior_variance
        return Factors(self.prior, v0, self.prior + v0 * R / q, v0 * (1 - v0 / V) + v0**2 / V / q, scores)


def choose_cells(N: Floats, people: float, noise: float) -> Floats:
    """To which degree second moments of the T most popular cells would reveal each, for the best T: T numbers.

    N: ratings of the cells, descending. Over T cells a factor's part of entry jk has variance x_j x_k, x_j = TASTE
    N_j^2 / sum N, against noise^2 + flow_j flow_k of sampling, flow_j = N_j sqrt(people) / sum N. Bayes-optimal
    inference reveals cell j to the degree r_j with r_j / (1 - r_j) = x_j sum_k x_k r_k / (noise^2 + flow_j flow_k): a
    fixed point, zero below the threshold. T maximises sum N_j r_j.
    """
    best, most = np.zeros(0), 0.0
    T = FEWEST_CELLS
    while min(MOST_CELLS, len(N)) >= T:
        n = N[:T]
        x, flow = TASTE * n**2 / n.sum(), n / n.sum() * np.sqrt(people)
        r = np.ones(T)
        for _ in range(60):
            e = x * (x * r).sum() / (noise**2 + flow * (flow * x).sum() / x.sum())
            r = e / (1 + e)
        revealed = float((n * r).sum())
        if revealed > most:
            best, most = r, revealed
        T = int(np.ceil(T * 1.25))
    return best


def read_moments(
    M: Floats, noise: float, N: Floats, people: float, rng: np.random.Generator, sweeps: int = 40
) -> tuple[Floats, Floats, Floats]:
    """Factors of popular cells from their noisy second moments: variational Bayes with known noise.

    M (T, T) symmetric, zero diagonal: M_jk = a_j . a_k + error of variance noise^2 + flow_j flow_k, a_jp ~ N(0, omega_p
    x_j), x_j = N_j^2 / sum N. It starts from the leading directions that stand above the edge of simulated noise; omega
    is learned, and a direction that noise explains ends without telling anything and is dropped. Returns item factors
    (T, d) of unit prior variance, their posterior variances, and omega (d), shares of residual variance.
    """
    T = len(M)
    x, flow = N**2 / N.sum(), N / N.sum() * np.sqrt(people)
    variance = noise**2 + np.outer(flow, flow)
    root = (
        x / x.max()
    ) ** 0.25  # between white (1) and what a single weak direction wants (1/2): finds most directions
    values, vectors = eigh(root[:, None] * M * root, subset_by_index=[max(T - MOST_FACTORS, 0), T - 1])
    values, vectors = values[::-1], vectors[:, ::-1]
    d = int(min((values > _edge(variance, root, rng)).sum(), MOST_FACTORS))
    if d == 0:
        return np.zeros((T, 0)), np.zeros((T, 0)), np.zeros(0)
    a = vectors[:, :d] * np.sqrt(values[:d]) / root[:, None]
    omega = np.maximum((a**2).sum(0) / x.sum(), 1e-6)
    inverse = 1 / variance
    np.fill_diagonal(inverse, 0.0)
    weighted, cov, diagonal = M * inverse, np.zeros((T, d, d)), np.arange(d)
    for _ in range(sweeps):
        outer = np.einsum("tp,tq->tpq", a, a) + cov
        precision = (inverse @ outer.reshape(T, -1)).reshape(T, d, d)
        precision[:, diagonal, diagonal] += 1 / (omega * x[:, None])
        cov = np.linalg.inv(precision)
        a = 0.5 * a + 0.5 * np.einsum("tpq,tq->tp", cov, weighted @ a)  # damped: all rows move at once
        omega = np.maximum(((a**2 + cov[:, diagonal, diagonal]) / x[:, None]).mean(0), 1e-7)
    scale = np.sqrt(omega * x[:, None])
    factors, uncertain = a / scale, np.clip(cov[:, diagonal, diagonal] / scale**2, 0, 1)
    keep = ((1 - uncertain) * x[:, None]).sum(0) / x.sum() > 0.1
    return factors[:, keep], uncertain[:, keep], omega[keep]


def _edge(variance: Floats, root: Floats, rng: np.random.Generator) -> float:
    """The largest eigenvalue of noise alone, the larger of two simulations."""
    T, edge = len(variance), 0.0
    for _ in range(2):
        E = np.triu(rng.normal(size=(T, T)) * np.sqrt(variance), 1)
        leading = eigh(root[:, None] * (E + E.T) * root, eigvals_only=True, subset_by_index=[T - 1, T - 1])
        edge = max(edge, float(leading[0]))
    return edge
