"""Popularity, effect and factors of taste of every cell, from noisy sums with known noise.

**Popularity and effect**, `read_cells`, from rounds of scores and counts (`rounds`). Popularity is a mixture over a
grid of lam, its weights learned from the histogram of all counts; effects are normal around a mean that may depend on
popularity.

**Factors**, `read_moments`: from noisy second moments of the most popular cells, then from scores for all cells.
Eigenvalues of pure noise end at an edge that is known, so rank and number of cells follow from the noise; where nothing
stands above the edge, there are no factors, and it says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh
from scipy.special import wrightomega

from dpsr.arrays import Floats
from dpsr.linalg.compiled import fast_kernel
from dpsr.people.rounds import EFFECT_VARIANCE, PooledRounds, Round, count_noise, sufficient_statistics

GRID_STEP, MISFIT = 1.35, 0.15
"""Ratio of neighbouring popularities on the grid, and the relative half-width of a point of it."""

_STEP = 0.5
"""How far, in spreads, an effect moves before rounds are linearised again."""

_POPULAR = 1 / 8
"""Of all people, the part that rated an item where popularity begins to fall faster than Zipf's law."""

_LAW_DEVIATION = 2.0
"""Of the log of how many items have a popularity, around Zipf's law."""

_TREND_STEP, _TREND = 0.02, 0.3
"""Variances of the mean effect's random walk over popularities, per step and in all."""


@dataclass(frozen=True, eq=False)
class Cells:
    """The posterior of every cell as a rating drawn at random meets it (size-biased), but for `lam`.

    effect, uncertainty     mean and variance of the effect
    popularity, ..          mean and variance of log lam
    lam                     mean of the weighted count, not size-biased
    reach                   root mean square of the weighted count: what may be hidden
    pull                    by how much the effect moves with the sum of weighted residuals
    effect_variance         that of effects around what popularity tells of them, over all cells
    """

    effect: Floats
    uncertainty: Floats
    popularity: Floats
    popularity_uncertainty: Floats
    lam: Floats
    reach: Floats
    pull: Floats
    effect_variance: float = EFFECT_VARIANCE


def read_cells(
    rounds: Sequence[Round], start: Floats, total: float, most: float, kappa: float, turns: int = 10
) -> Cells:
    """From rounds of scores, linearised at effects that start from `start`.

    `total` is what all weighted counts add up to, `most` the largest one possible, `kappa` / lam the sampling variance
    of an effect. The mean effect at a popularity is a random walk over the grid; it and the variance around it are
    learned by EM over the cells that stand out of the noise, where nearly all the evidence is; and in every turn rounds
    are linearised at the effects of the turn before.
    """
    noise, t = count_noise(rounds), start.copy()
    stats = sufficient_statistics(rounds, t, np.zeros(len(t)), EFFECT_VARIANCE)
    # far from an effect counts vanish and scores say how many ratings there are; later rounds are asked near it
    C = (stats[0] + stats[5]) / (stats[2] + stats[6]) if len(rounds) == 1 else stats[5] / stats[6]
    lam = popularity_grid(C, noise, most)
    log_prior = popularity_prior(C, noise, lam, total, most)
    L = len(lam)
    trend, variance, met = np.zeros(L), EFFECT_VARIANCE, np.maximum(C, 0.0)
    Q = np.eye(L) / _TREND
    for g in range(1, L - 1):
        Q[g : g + 2, g : g + 2] += np.array([[1, -1], [-1, 1]]) / _TREND_STEP
    seen = np.flatnonzero(2 * noise < C)
    few = [one.at_cells(seen) for one in rounds]
    for _ in range(turns):
        sums = np.zeros((L, 4))
        out = np.zeros((7, len(seen)))
        stats = sufficient_statistics(few, t[seen], met[seen], variance)
        _posterior(stats, t[seen], lam, log_prior, trend, variance, kappa, out, sums)
        trend = trend + np.linalg.solve(Q + np.diag(sums[:, 1]), sums[:, 0] - Q @ trend)
        trend[0] = trend[1]
        variance = float(np.clip((sums[:, 2].sum() + 3 * EFFECT_VARIANCE) / (sums[:, 3].sum() + 3), 0.001, 1.0))
        t[seen] += np.clip(out[0] - t[seen], -_STEP, _STEP)
        met[seen] = out[4]
    out = np.zeros((7, len(C)))
    stats = sufficient_statistics(rounds, t, met, variance)
    _posterior(stats, t, lam, log_prior, trend, variance, kappa, out, np.zeros((L, 4)))
    effect, uncertainty, popularity, hidden, met, reach, pull = out
    return Cells(effect, uncertainty, popularity, hidden, met, reach, pull, variance)


def popularity_grid(C: Floats, noise: float, most: float) -> Floats:
    """0, and geometric steps from a fraction of the noise (or of a person) to the largest count seen or possible."""
    low = min(max(0.03 * noise, 0.2), 2.0)
    top = max(min(max(float(C.max()), 6 * noise), most), 4 * low)
    steps = int(np.ceil(np.log(top / low) / np.log(GRID_STEP))) + 1
    return np.concatenate([[0.0], low * GRID_STEP ** np.arange(steps)])


def popularity_prior(C: Floats, noise: float, lam: Floats, total: float, most: float, turns: int = 30) -> Floats:
    """Log prior weights of the grid: EM on the histogram of noisy counts, lightly smoothed, started from Zipf's law.

    The law ends where a good part of all people rated an item, of whom there are `most`. It is also a belief, by which
    the log of a weight is known up to `_LAW_DEVIATION`: w cells in the histogram become z with z + log(z / z of the
    law) / deviation^2 = w. So a few cells that noise alone puts far out, which a likelihood would take for popular
    items, count for nothing where the law has none, and dozens of them count fully. What lies below the noise cannot be
    told from the histogram, but how much of it there is can, within a tenth: all weighted counts add up to `total`.
    """
    n = len(C)
    keys, many = np.unique(np.rint(C / (noise / 3)).astype(np.int64), return_counts=True)
    p = np.zeros(len(lam))
    p[1:] = np.minimum(max(total, noise) / (len(lam) - 1) / n / lam[1:], 0.5) * np.exp(-lam[1:] / (_POPULAR * most))
    p[0] = max(1 - p[1:].sum(), 0.3)
    p /= p.sum()
    believed = np.log(n * p[1:] * _LAW_DEVIATION**2 + 1e-300)
    width = np.sqrt(noise**2 + (MISFIT * lam) ** 2)
    likelihood = np.exp(-0.5 * ((keys[:, None] * (noise / 3) - lam) / width) ** 2) / width + 1e-300
    low = (lam > 0) & (lam < noise / 2)
    for _ in range(turns):
        r = likelihood * p
        p = (r / r.sum(1, keepdims=True) * many[:, None]).sum(0) / n
        p[1:] = wrightomega(n * p[1:] * _LAW_DEVIATION**2 + believed) / _LAW_DEVIATION**2 / n
        p[1:] = np.convolve(np.concatenate([p[1:2], p[1:], p[-1:]]), [0.25, 0.5, 0.25], "valid")
        if low.any():
            hidden, rest = (p[low] * lam[low]).sum(), total / n - (p[~low] * lam[~low]).sum()
            wanted = np.clip(hidden, max(rest - 0.1 * total / n, 0.0), max(rest, 0.0) + 0.1 * total / n)
            p[low] *= np.clip(wanted / max(hidden, 1e-300), 0.5, 2.0)
        p[0] = max(1 - p[1:].sum(), 0.01)
        p /= p.sum()
    return np.asarray(np.log(p + 1e-300))


@fast_kernel
def _posterior(
    stats: Floats,
    t: Floats,
    lam: Floats,
    log_prior: Floats,
    trend: Floats,
    variance: float,
    kappa: float,
    out: Floats,
    sums: Floats,
) -> None:
    """The mixture over the grid, cell by cell; fills `out` (7, cells) and the sums of EM (grid, 4).

    Given a point of the grid, the weighted count is l ~ N(lam, (MISFIT lam)^2), the effect as these raters see it theta
    ~ N(trend, variance + kappa / lam), the item's effect b ~ N(trend, variance) and a sampling error. Counts tell l for
    every theta; so S_k = l G_k has the slope l G_k' + l' G_k in theta, with l and l' at t, and counts say of theta what
    no l explains.
    """
    L = len(lam)
    lw, mean, var = np.zeros(L), np.zeros(L), np.zeros(L)
    score, fisher, pull = np.zeros(L), np.zeros(L), np.zeros(L)
    for j in range(len(t)):
        SG, Sg, GG, Gg, gg = stats[0, j], stats[1, j], stats[2, j], stats[3, j], stats[4, j]
        CH, HH, Hh = stats[5, j], stats[6, j], stats[7, j]
        top = -1e300
        for g in range(L):
            wide = (MISFIT * lam[g]) ** 2
            tight = 1 / (1 + wide * HH)
            e = CH - lam[g] * HH
            w = log_prior[g] + 0.5 * np.log(tight) + lam[g] * (CH - 0.5 * lam[g] * HH) + 0.5 * wide * tight * e * e
            count = max(lam[g] + wide * tight * e, 0.0)
            count_slope = -count * wide * tight * Hh
            A = count * count * gg + 2 * count * count_slope * Gg + count_slope * count_slope * GG
            R = count * (Sg - count * Gg) + count_slope * (SG - count * GG)
            shift = trend[g] - t[j]
            w += count * (SG - 0.5 * count * GG) + shift * (R - 0.5 * A * shift)
            R -= A * shift
            V = variance + kappa / max(lam[g], 1e-6)
            q = 1 + A * V
            w += -0.5 * np.log(q) + 0.5 * R * R * V / q
            mean[g] = trend[g] + variance * R / q
            var[g] = variance * (1 - variance / V) + variance * variance / V / q
            score[g], fisher[g], pull[g] = R / q, A / q, variance * A / (q * max(count, 1e-9))
            lw[g] = w
            top = max(top, w)
        all_of_it = 0.0
        for g in range(L):
            lw[g] = np.exp(lw[g] - top)
            all_of_it += lw[g]
        size, m1, m2, p1, p2, lm, l2, pulled = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        for g in range(L):
            p = lw[g] / all_of_it
            s, log_lam = p * max(lam[g], 1e-9), np.log(max(lam[g], lam[1]))
            size += s
            m1 += s * mean[g]
            m2 += s * (var[g] + mean[g] * mean[g])
            p1 += s * log_lam
            p2 += s * log_lam * log_lam
            lm += p * lam[g]
            l2 += s * lam[g] * lam[g]
            pulled += s * pull[g]
            sums[g, 0] += p * score[g]
            sums[g, 1] += p * fisher[g]
            sums[g, 2] += p * (mean[g] - trend[g]) ** 2
            sums[g, 3] += p * (1 - var[g] / variance)
        out[0, j], out[1, j] = m1 / size, m2 / size - (m1 / size) ** 2
        out[2, j], out[3, j], out[4, j], out[5, j] = p1 / size, p2 / size - (p1 / size) ** 2, lm, np.sqrt(l2 / size)
        out[6, j] = pulled / size


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
    scores: PooledRounds

    @classmethod
    def of(cls, prior: Floats, variance: Floats) -> Factors:
        return cls(prior, variance, prior, variance, PooledRounds.none(*prior.shape))

    @property
    def n(self) -> int:
        return self.mean.shape[1]

    def with_scores(self, scores: PooledRounds, gain: Floats, lam: Floats, sampling: Floats) -> Factors:
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
    root = (x / x.max()) ** 0.25  # between white (1) and what one weak direction wants (1/2): finds most directions
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
