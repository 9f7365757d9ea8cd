"""Factors of taste: a planted direction is found, pure noise shows none, and hopeless questions are not asked."""

import numpy as np
import pytest

from dpsr.people.cells import FEWEST_CELLS, MOST_CELLS, Factors, choose_cells, read_moments
from dpsr.people.rounds import PooledRounds

PEOPLE = 20_000.0
N = PEOPLE * 0.4 * np.arange(1, 81) ** -0.6


def edge_rng():
    return np.random.default_rng(0)


def moments(direction, noise, seed):
    """Symmetric second moments of one planted direction, with noise above the diagonal."""
    rng = np.random.default_rng(seed)
    E = np.triu(noise * rng.normal(size=(len(direction), len(direction))), 1)
    M = np.outer(direction, direction) + E + E.T
    np.fill_diagonal(M, 0.0)
    return M


def test_no_cells_are_chosen_where_noise_is_huge_or_cells_are_few():
    assert len(choose_cells(N, PEOPLE, 1e9)) == 0
    assert len(choose_cells(N[: FEWEST_CELLS - 1], PEOPLE, 1e-3)) == 0


def test_without_noise_all_cells_are_revealed_in_part_and_never_more_than_wholly():
    found = choose_cells(N, 1e9, 1e-3)
    assert FEWEST_CELLS <= len(found) <= MOST_CELLS
    assert ((found > 0) & (found <= 1)).all()


def test_more_noise_reveals_less():
    revealed = [choose_cells(N, PEOPLE, noise).sum() for noise in (1.0, 10.0, 30.0)]
    assert revealed == sorted(revealed, reverse=True)


def test_a_planted_direction_is_found_alone():
    rng = np.random.default_rng(3)
    q = rng.normal(size=len(N))
    noise = 5.0
    strength = np.sqrt(0.03 * N**2 / N.sum()) * q
    factors, uncertainty, variances = read_moments(moments(strength, noise, 1), noise, N, PEOPLE, edge_rng())
    assert factors.shape == uncertainty.shape == (len(N), 1)
    assert abs(np.corrcoef(factors[:20, 0], q[:20])[0, 1]) > 0.9
    assert variances[0] == pytest.approx(0.03, rel=0.6)
    assert ((uncertainty >= 0) & (uncertainty <= 1)).all()


def test_pure_noise_rarely_shows_a_direction_and_then_a_faint_one():
    """The edge is the larger of two simulations, so a third draw passes it one time in three; many of those go after
    a closer look, and what stays is believed to explain next to nothing.
    """
    noise, shown = 5.0, []
    scale = np.sqrt(noise**2 + np.outer(N, N) * PEOPLE / N.sum() ** 2)
    for seed in range(12):
        M = moments(np.zeros(len(N)), 1.0, seed) * scale
        factors, _, variances = read_moments(M, noise, N, PEOPLE, np.random.default_rng(1_000 + seed))
        assert factors.shape[1] == len(variances) <= 1
        shown.extend(variances)
    assert len(shown) <= 4
    assert max(shown, default=0) < 0.015


def test_scores_move_factors_as_a_normal_posterior_does():
    """Oracle: one cell, one factor, precision added by hand; the sampling error widens the observation."""
    start = Factors.of(np.array([[0.2]]), np.array([[0.5]]))
    lam, gain, sampling, sigma, at = np.array([30.0]), np.array([0.4]), np.array([6.0]), 2.0, 0.1
    S = PooledRounds.none(1, 1).add(np.array([[5.0]]), np.array([[at]]), 1.0, sigma)
    found = start.with_scores(S, gain, lam, sampling)
    slope = lam[0] * gain[0]
    observed, error = at + 5.0 / slope, sigma**2 / slope**2 + sampling[0] / lam[0]
    precision = 1 / 0.5 + 1 / error
    assert found.variance[0, 0] == pytest.approx(1 / precision)
    assert found.mean[0, 0] == pytest.approx((0.2 / 0.5 + observed / error) / precision)


def test_a_cell_nobody_rated_keeps_its_prior():
    start = Factors.of(np.array([[0.2]]), np.array([[0.5]]))
    S = PooledRounds.none(1, 1).add(np.array([[50.0]]), np.zeros((1, 1)), 1.0, 2.0)
    found = start.with_scores(S, np.array([0.4]), np.zeros(1), np.array([6.0]))
    assert (found.mean[0, 0], found.variance[0, 0]) == pytest.approx((0.2, 0.5))
