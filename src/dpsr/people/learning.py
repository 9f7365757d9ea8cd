"""The state between questions, and what each answer does to it."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from dpsr.arrays import Floats
from dpsr.people.budget import ALPHA, Taste
from dpsr.people.cells import Cells, Evidence, read_cells
from dpsr.people.coefficients import SLOPE_VARIANCES, CoefficientPrior, read_coefficients
from dpsr.people.factors import Factors
from dpsr.people.levels import PeopleLevels, Weights
from dpsr.synthesis.meeting import plausible_activity
from dpsr.types import Scale
from dpsr.types.item_side import Crowd, ItemSide

_LEAST_RESIDUAL = 0.5
"""Of a rating's variance around its person's level, effects are never believed to explain more than half."""

_SLOPE_BELIEF = 400.0
"""Ratings' slopes in a round are believed to be what the weights say within a twentieth: a precision of 20^2."""


@dataclass
class Learning:
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
    scores: Evidence = field(default_factory=lambda: Evidence.none(0))
    counts: Evidence = field(default_factory=lambda: Evidence.none(0))

    @classmethod
    def start(cls, scale: Scale, n_cells: int, levels: PeopleLevels, unit: Weights | None = None) -> Learning:
        """People's levels alone."""
        prior = CoefficientPrior(np.zeros(1), np.array([[levels.variance]]), np.array([0.7]))
        none = Evidence.none(n_cells)
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
            crowd = Crowd(levels.people, plausible_activity(levels.counts), cells.lam, self.unit.by_activity)
        return ItemSide(
            self.scale, effects, uncertainty, features, residual, levels.spread, levels.level, mean,
            self.prior.covariance, crowd, pull,
        )  # fmt: skip

    def add_scores(self, values: Floats, noise: float, alpha: float, gamma: float, weights: Weights) -> None:
        """A round of scores: columns x, products with coefficients, alpha times slopes; `weights` are its ratings'."""
        slopes, at, rho = values[:, -1] / alpha, self.side.effects, 1.0
        if self.cells is not None:
            lam, expected = self.cells.lam, weights.mean / self.unit.mean
            w = 1 / ((noise / alpha) ** 2 + (0.2 * lam) ** 2)
            rho = float(
                ((w * lam * slopes).sum() + _SLOPE_BELIEF / expected)
                / ((w * lam * lam).sum() + _SLOPE_BELIEF / expected**2)
            )
        self.scores = self.scores.add(values[:, 0], at, rho, noise)
        self.counts = self.counts.add(slopes, np.zeros(self.n_cells), rho, noise / alpha)
        kappa, first = weights.kappa * self.unit.mean / weights.mean, self.cells is None
        self.cells = read_cells(self.scores, self.counts, self.total, self.unit.most, kappa)
        if self.factors is not None and gamma > 0:
            variances, known = np.diag(self.prior.covariance)[3:], self.prior.known[3:]
            scores = self.factors.scores.add(values[:, 1:-1] / gamma, self.factors.mean, rho, noise / gamma)
            gain = np.sqrt(variances) * known
            self.factors = self.factors.with_scores(scores, gain, self.cells.lam, kappa / (variances * known))
        if first:
            known = np.array([self.prior.known[0], 0.5, 0.5])
            self.prior = CoefficientPrior(np.zeros(3), np.diag([self.population.variance, *SLOPE_VARIANCES]), known)
        self.slopes = np.zeros(len(self.prior.mean) - 1)

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
