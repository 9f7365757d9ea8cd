"""Cells: pooled rounds against least squares, the posterior against numerical integration, noise against nothing."""

import numpy as np
import pytest

from dpsr.people.cells import (
    MISFIT,
    _posterior,
    popularity_grid,
    popularity_prior,
    read_cells,
)
from dpsr.people.rounds import EFFECT_VARIANCE, PooledRounds, Round, sufficient_statistics


def test_rounds_are_pooled_as_weighted_least_squares_does():
    """Oracle: lam (theta - at_k) rho_k + sigma_k noise for a known lam, solved for theta by numpy."""
    rng = np.random.default_rng(0)
    lam, theta = rng.uniform(5, 50, 8), rng.normal(size=8)
    evidence, rounds = PooledRounds.none(8), []
    for rho, sigma in ((1.0, 2.0), (0.7, 0.5), (1.3, 1.0)):
        at = 0.3 * rng.normal(size=8)
        S = rho * lam * (theta - at) + sigma * rng.normal(size=8)
        evidence = evidence.add(S, at, rho, sigma)
        rounds.append((S, at, rho, sigma))
    for j in range(8):
        design = np.array([[rho * lam[j] / sigma] for _, _, rho, sigma in rounds])
        right = np.array([(S[j] + rho * lam[j] * at[j]) / sigma for S, at, rho, sigma in rounds])
        expected, *_ = np.linalg.lstsq(design, right, rcond=None)
        assert evidence.at[j] + evidence.S[j] / lam[j] == pytest.approx(expected[0])
        assert evidence.sigma / lam[j] == pytest.approx(1 / np.linalg.norm(design))


def test_the_order_of_rounds_does_not_matter():
    one, two = (np.array([3.0]), np.array([0.1]), 1.0, 2.0), (np.array([5.0]), np.array([0.4]), 0.5, 1.0)
    a = PooledRounds.none(1).add(*one).add(*two)
    b = PooledRounds.none(1).add(*two).add(*one)
    np.testing.assert_allclose([a.S[0], a.at[0], a.weight], [b.S[0], b.at[0], b.weight])


@pytest.mark.parametrize(("S", "C"), [(3.0, 12.0), (-4.0, 6.0), (0.5, 0.4), (10.0, 30.0)])
def test_the_posterior_of_a_cell_is_that_of_numerical_integration(S, C):
    """Oracle: b and the sampling error on a fine grid, every point of the popularity grid summed by hand."""
    lam = np.array([0.0, 2.0, 8.0, 25.0])
    prior = np.array([0.5, 0.3, 0.15, 0.05])
    trend, variance, kappa, sS, sC, at = np.array([0.1, 0.1, 0.2, 0.3]), 0.2, 1.5, 1.2, 1.7, 0.05
    out, sums = np.zeros((7, 1)), np.zeros((4, 4))
    stats = sufficient_statistics(
        [Round(np.array([S]), np.array([C]), np.array([at]), sS, sC)], t := np.array([0.3]), np.zeros(1), variance
    )
    _posterior(stats, t, lam, np.log(prior), trend, variance, kappa, out, sums)
    b = np.linspace(-6, 6, 4_001)
    weight, mean, square, moves = np.zeros(4), np.zeros(4), np.zeros(4), np.zeros(4)
    for g in range(4):
        wide = (MISFIT * lam[g]) ** 2
        total = sC**2 + wide
        count = max(lam[g] + wide / total * (C - lam[g]), 0.0)
        # S given b: the sampling error of variance kappa / lam integrates to a wider normal
        spread = sS**2 + count**2 * kappa / max(lam[g], 1e-6)
        p = np.exp(-0.5 * (b - trend[g]) ** 2 / variance - 0.5 * (S - count * (b - at)) ** 2 / spread) / np.sqrt(spread)
        weight[g] = prior[g] * np.exp(-0.5 * (C - lam[g]) ** 2 / total) / np.sqrt(total) * p.sum()
        mean[g], square[g] = (p * b).sum() / p.sum(), (p * b * b).sum() / p.sum()
        # the derivative of a posterior mean: its covariance with that of the log likelihood
        moves[g] = (square[g] - mean[g] ** 2) * count / spread
    posterior = weight / weight.sum()
    size = posterior * np.maximum(lam, 1e-9)
    size /= size.sum()
    assert out[4, 0] == pytest.approx(posterior @ lam, rel=1e-6)
    assert out[0, 0] == pytest.approx(size @ mean, rel=1e-6)
    assert out[1, 0] == pytest.approx(size @ square - (size @ mean) ** 2, rel=1e-5)
    assert out[6, 0] == pytest.approx(size @ moves, rel=1e-5)
    log_lam = np.log(np.maximum(lam, lam[1]))
    assert out[2, 0] == pytest.approx(size @ log_lam, rel=1e-6)
    assert out[5, 0] == pytest.approx(np.sqrt(size @ lam**2), rel=1e-6)


def answers(noise, seed=0, n=600):
    rng = np.random.default_rng(seed)
    lam, theta = 200 * rng.pareto(1.2, n).clip(0, 20), 0.4 * rng.normal(size=n)
    S, C = lam * theta + noise * rng.normal(size=n), lam + noise * rng.normal(size=n)
    return lam, theta, Round(S, C, np.zeros(n), noise, noise)


def test_with_little_noise_effects_and_counts_are_found():
    lam, theta, asked = answers(0.5)
    found = read_cells([asked], asked.at, float(lam.sum()), float(lam.max()), 1e-6)
    many = lam > 20
    np.testing.assert_allclose(found.effect[many], theta[many], atol=0.1)
    np.testing.assert_allclose(found.lam[many], lam[many], rtol=0.12)  # the grid's step is 1.35


def test_where_noise_drowns_the_answers_effects_shrink_to_the_trend_and_say_how_uncertain_they_are():
    lam, _, asked = answers(1e5)
    found = read_cells([asked], asked.at, float(lam.sum()), float(lam.max()), 1.0)
    assert found.effect.std() < 0.05
    assert found.uncertainty.min() > 0.25 * EFFECT_VARIANCE


@pytest.mark.parametrize("noise", [5.0, 50.0, 500.0])
def test_stated_uncertainties_are_about_as_large_as_the_errors(noise):
    """Weighted by how often a cell is met, as predictions are."""
    lam, theta, asked = answers(noise)
    found = read_cells([asked], asked.at, float(lam.sum()), float(lam.max()), 1e-6)
    error = np.average((found.effect - theta) ** 2, weights=lam)
    assert 0.5 < np.average(found.uncertainty, weights=lam) / error < 2
    assert error < 1.1 * np.average((theta - np.average(theta, weights=lam)) ** 2, weights=lam)


def test_the_prior_of_popularity_is_a_distribution_with_the_total_that_was_told():
    lam, _, asked = answers(50.0)
    grid = popularity_grid(asked.C, 50.0, float(lam.max()))
    p = np.exp(popularity_prior(asked.C, 50.0, grid, float(lam.sum()), float(lam.max())))
    assert p.sum() == pytest.approx(1)
    assert grid[0] == 0
    assert len(lam) * (p @ grid) == pytest.approx(lam.sum(), rel=0.35)


def test_where_noise_hides_all_counts_nearly_nobody_s_favourite_is_believed_to_be_everybody_s():
    """Cells that are met by ten people at most, of 2,000, in noise of 500."""
    rng = np.random.default_rng(0)
    C, most = 10.0 * (rng.random(20_000) < 0.05) + 500.0 * rng.normal(size=20_000), 2_000.0
    grid = popularity_grid(C, 500.0, most)
    p = np.exp(popularity_prior(C, 500.0, grid, 10_000.0, most))
    often = grid > most / 4
    assert (p * grid)[often].sum() < 0.1 * (p * grid).sum()
