"""The state between questions, and what each answer does to it: people's levels, cells of items, factors of taste, and
where and how widely people's coefficients lie, a prior that their own regressions start from.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from dpsr.arrays import Floats
from dpsr.people.budget import ALPHA, Taste
from dpsr.people.cells import Cells, Factors, read_cells
from dpsr.people.levels import PeopleLevels, Weights
from dpsr.people.rounds import PooledRounds, Round, Saturation
from dpsr.types import Scale
from dpsr.types.item_side import Crowd, ItemSide

_LEAST_RESIDUAL = 0.5
"""Of a rating's variance around its person's level, effects are never believed to explain more than half."""

_SLOPE_BELIEF = 400.0
"""Ratings' slopes in a round are believed to be what the weights say within a twentieth: a precision of 20^2."""


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


@dataclass
class PeopleState:
    """What is known so far; `side` is what the next question may depend on."""

    scale: Scale
    n_cells: int
    population: PeopleLevels
    unit: Weights
    """Weights of the first round, in which weighted counts are measured."""

    prior: CoefficientPrior
    slopes: Floats = field(default_factory=lambda: np.zeros(0))
    """Mean slopes over people: they belong to the items' effects."""

    cells: Cells | None = None
    factors: Factors | None = None
    scores: PooledRounds = field(default_factory=lambda: PooledRounds.none(0))
    counts: PooledRounds = field(default_factory=lambda: PooledRounds.none(0))
    rating_rounds: tuple[Round, ...] = ()
    """Rounds of scores of ratings; those of people are pooled in `scores` and `counts`."""

    @classmethod
    def start(cls, scale: Scale, n_cells: int, levels: PeopleLevels, unit: Weights | None = None) -> PeopleState:
        """People's levels alone."""
        prior = CoefficientPrior(np.zeros(1), np.array([[levels.variance]]), np.array([0.7]))
        none = PooledRounds.none(n_cells)
        unit = unit or Weights.of(levels, 1 + ALPHA**2, 0.0)
        return cls(scale, n_cells, levels, unit, prior, scores=none, counts=none)

    @property
    def total(self) -> float:
        """What all weighted counts add up to; a twentieth is lost where items of a person share a cell."""
        return 0.95 * self.unit.mean * float(self.population.ratings.sum())

    @property
    def popularity_slope(self) -> float:
        """Mean square over people of the slope on log popularity."""
        return float(self.prior.covariance[2, 2] + self.slopes[1] ** 2)

    @property
    def taste(self) -> Taste:
        if self.factors is None:
            return Taste.none(self.n_cells)
        return Taste(np.diag(self.prior.covariance)[3:], self.prior.known[3:], self.factors.variance)

    @property
    def side(self) -> ItemSide:
        """The item side so far. Mean slopes over people go into the effects."""
        levels, mean = self.population, np.zeros(len(self.prior.mean))
        mean[0] = self.prior.mean[0]
        effects, features = np.zeros(self.n_cells), np.zeros((self.n_cells, 0))
        uncertainty, residual, crowd, pull = np.zeros(self.n_cells), 1.0, None, None
        if self.cells is not None:
            cells, w = self.cells, np.maximum(self.cells.lam, 1e-12)
            columns = [one - np.average(one, weights=w) for one in (cells.effect, cells.popularity)]
            residual = max(_LEAST_RESIDUAL, 1 - float(np.average(columns[0] ** 2, weights=w)))
            uncertainty, pull = cells.uncertainty, cells.pull
            if self.factors is not None:
                columns.append(self.factors.mean)
                uncertainty = uncertainty + self.factors.variance @ np.diag(self.prior.covariance)[3:]
            features = np.column_stack(columns)
            effects = cells.effect + features @ self.slopes
            crowd = Crowd(levels.people, levels.counts, cells.lam, self.unit.by_activity)
        return ItemSide(
            self.scale, effects, uncertainty, features, residual, levels.spread, levels.level, mean,
            self.prior.covariance, crowd, pull,
        )  # fmt: skip

    def add_scores(
        self,
        values: Floats,
        noise: float,
        alpha: float,
        gamma: float,
        weights: Weights,
        saturation: Saturation | None = None,
    ) -> None:
        """A round of scores: columns x, products with coefficients, alpha times slopes; `weights` are its ratings'.

        `saturation` is given where they are scores of ratings.
        """
        at = self.side.effects
        asked = Round(values[:, 0], values[:, -1] / alpha, at, noise, noise / alpha, 1.0, saturation)
        rho = self._slope(asked, 1.0 if saturation else weights.mean / self.unit.mean)
        if saturation is None:
            self.scores = self.scores.add(asked.S, at, rho, noise)
            self.counts = self.counts.add(asked.C, np.zeros(self.n_cells), rho, noise / alpha)
        else:
            self.rating_rounds = (*self.rating_rounds, replace(asked, rho=rho))
        kappa, first = weights.kappa * self.unit.mean / weights.mean, self.cells is None
        start = at if self.rating_rounds else self.scores.at
        if first:
            start = asked.first_effects(1 / self.population.spread)
        self.cells = read_cells(self.rounds, start, self.total, self.unit.most, kappa)
        if self.factors is not None and gamma > 0:
            variances, known = np.diag(self.prior.covariance)[3:], self.prior.known[3:]
            scores = self.factors.scores.add(values[:, 1:-1] / gamma, self.factors.mean, rho, noise / gamma)
            gain = np.sqrt(variances) * known
            self.factors = self.factors.with_scores(scores, gain, self.cells.lam, kappa / (variances * known))
        if first:
            known = np.array([self.prior.known[0], 0.5, 0.5])
            self.prior = CoefficientPrior(np.zeros(3), np.diag([self.population.variance, *SLOPE_VARIANCES]), known)
        self.slopes = np.zeros(len(self.prior.mean) - 1)

    @property
    def rounds(self) -> tuple[Round, ...]:
        """All rounds of scores so far; those of people are one."""
        if self.scores.weight == 0:
            return self.rating_rounds
        scores, counts = self.scores, self.counts
        return (Round(scores.S, counts.S, scores.at, scores.sigma, counts.sigma), *self.rating_rounds)

    def _slope(self, asked: Round, expected: float) -> float:
        """The slope of a round beside the first's, or what its saturation says: between `expected` and its counts."""
        if self.cells is None:
            return 1.0
        lam = self.cells.lam * asked.curve(self.cells.effect, self.cells.effect_variance)[1]
        w = 1 / (asked.count_noise**2 + (0.2 * lam) ** 2)
        return float(
            ((w * lam * asked.C).sum() + _SLOPE_BELIEF / expected)
            / ((w * lam * lam).sum() + _SLOPE_BELIEF / expected**2)
        )

    def add_coefficients(self, values: Floats, noise: float) -> None:
        """What people's own regressions said about the prior."""
        start = self.prior.centred(self.side.mean)
        prior = read_coefficients(values, noise, self.population.people, start)
        self.slopes = self.slopes + prior.mean[1:]
        self.prior = prior.centred(np.concatenate([prior.mean[:1], np.zeros(len(self.slopes))]))

    def add_factors(self, factors: Factors, variances: Floats) -> None:
        """Directions of taste that second moments revealed."""
        self.factors = factors
        self.prior = self.prior.with_factors(variances)
        self.slopes = np.concatenate([self.slopes, np.zeros(factors.n)])
