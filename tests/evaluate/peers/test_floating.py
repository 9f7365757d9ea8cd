"""Continuous noise for experiments: the law on the receipt is the law of the draws, and no value turns noise off."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import gamma, kstest

from dpsr.errors import PrivacyError
from dpsr.evaluate.peers.floating import (
    gaussian_noise,
    laplace_noise,
    local_reports,
    one_bit_bound,
    piecewise_bound,
    report_variance,
    vector_laplace_noise,
)

N = 100_000


def rng():
    return np.random.default_rng(11)


@pytest.mark.parametrize("factor", [1.0, 1.05])
def test_laplace_draws_fit_their_scale_and_a_five_percent_error_is_rejected(factor):
    noisy, price = laplace_noise(np.full(N, 7.0), sensitivity=3.0, epsilon=0.5, rng=rng())
    assert (price.sensitivity, price.scale, price.epsilon) == (3.0, 6.0, 0.5)
    fit = kstest((noisy - 7) / (factor * price.scale), "laplace").pvalue
    assert (fit > 1e-3) == (factor == 1)


@pytest.mark.parametrize("factor", [1.0, 1.05])
def test_gaussian_draws_fit_their_scale_and_a_five_percent_error_is_rejected(factor):
    noisy, price = gaussian_noise(np.full(N, 7.0), sensitivity=3.0, multiplier=2.0, rng=rng(), sampling=0.5)
    assert (price.scale, price.multiplier, price.epsilon, price.sampling) == (6.0, 2.0, np.inf, 0.5)
    fit = kstest((noisy - 7) / (factor * price.scale), "norm").pvalue
    assert (fit > 1e-3) == (factor == 1)


@pytest.mark.parametrize("factor", [1.0, 1.05])
def test_vector_noise_has_gamma_lengths_and_no_direction(factor):
    noisy, price = vector_laplace_noise(np.zeros((N, 3)), sensitivity=2.0, epsilon=4.0, rng=rng())
    length = np.linalg.norm(noisy, axis=1)
    assert (kstest(length, gamma(3, scale=factor * 0.5).cdf).pvalue > 1e-3) == (factor == 1)
    cosines = noisy[:, 0] / length  # uniform in three dimensions, by Archimedes
    assert kstest(cosines, "uniform", args=(-1, 2)).pvalue > 1e-3
    assert price.scale == 0.5


def test_vector_noise_costs_its_epsilon_by_the_ratio_of_densities():
    """log density(z - a) - log density(z - a') = (|z - a'| - |z - a|) / b <= |a - a'| / b = epsilon, attained."""
    a, b = np.zeros(4), np.array([2.0, 0, 0, 0])
    _, price = vector_laplace_noise(np.zeros((1, 4)), sensitivity=2.0, epsilon=0.7, rng=rng())
    z = rng().normal(0, 5, (1000, 4))
    loss = (np.linalg.norm(z - b, axis=1) - np.linalg.norm(z - a, axis=1)) / price.scale
    assert np.abs(loss).max() <= 0.7 + 1e-12
    behind = (np.linalg.norm(-3 * b - b) - np.linalg.norm(-3 * b - a)) / price.scale
    assert behind == pytest.approx(0.7)


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 3.0, 8.0])
def test_local_reports_are_unbiased_bounded_and_keep_epsilon(epsilon):
    bounds = {one_bit_bound(epsilon), piecewise_bound(epsilon)}
    draws = {x: local_reports(np.full(6 * N, x), epsilon=epsilon, rng=rng()) for x in (-1.0, 0.0, 0.4, 1.0)}
    for x, (reports, price) in draws.items():
        assert price.epsilon == epsilon
        assert price.scale in bounds
        assert np.abs(reports).max() <= price.scale * (1 + 1e-12)
        assert reports.mean() == pytest.approx(x, abs=5 * reports.std() / np.sqrt(len(reports)))
    edges = np.linspace(-price.scale, price.scale * (1 + 1e-9), 9)
    counts = {x: np.histogram(reports, edges)[0] for x, (reports, _) in draws.items()}
    for x in draws:
        for y in draws:
            both = (counts[x] > 200) & (counts[y] > 200)
            loss = np.log(counts[x][both] / counts[y][both])
            doubt = 5 * np.sqrt(1 / counts[x][both] + 1 / counts[y][both])
            assert (loss <= epsilon + doubt).all()
    assert draws[0.0].values.var() == pytest.approx(report_variance(epsilon), rel=0.05)


def test_local_reports_of_extreme_numbers_attain_their_epsilon():
    high, low = (local_reports(np.full(2 * N, x), epsilon=0.5, rng=rng()).values for x in (1.0, -1.0))
    assert np.log((high > 0).mean() / (low > 0).mean()) == pytest.approx(0.5, abs=0.03)


def test_the_error_of_local_reports_vanishes_as_epsilon_grows():
    reports, _ = local_reports(np.full(1000, 0.3), epsilon=1000.0, rng=rng())
    np.testing.assert_allclose(reports, 0.3, atol=1e-6)


@pytest.mark.parametrize("wrong", [0.0, -1.0, np.inf, np.nan])
def test_no_value_means_no_noise(wrong):
    for draw in (
        lambda: laplace_noise(np.zeros(1), sensitivity=1.0, epsilon=wrong, rng=rng()),
        lambda: laplace_noise(np.zeros(1), sensitivity=wrong, epsilon=1.0, rng=rng()),
        lambda: vector_laplace_noise(np.zeros((1, 1)), sensitivity=1.0, epsilon=wrong, rng=rng()),
        lambda: gaussian_noise(np.zeros(1), sensitivity=1.0, multiplier=wrong, rng=rng()),
        lambda: local_reports(np.zeros(1), epsilon=wrong, rng=rng()),
    ):
        with pytest.raises(PrivacyError, match="no value means 'no noise'"):
            draw()
    with pytest.raises(PrivacyError, match="sampling"):
        gaussian_noise(np.zeros(1), sensitivity=1.0, multiplier=1.0, rng=rng(), sampling=0.0)
