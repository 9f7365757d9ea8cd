"""How the scale is used: a noisy histogram read with the right amount of trust."""

import numpy as np
import pytest

from dpsr.value.levels import level_bins, mean_usage, scale_usage

STARS = np.linspace(-1, 1, 5)
PEOPLE = np.array([600.0, 1100.0, 2700.0, 3400.0, 2200.0])


def test_a_histogram_without_noise_gives_its_own_frequencies_and_moments_back():
    N = int(PEOPLE.sum())
    usage = scale_usage(STARS, np.arange(5), PEOPLE, 0.0, N)
    p = PEOPLE / N
    mean = sum(a * b for a, b in zip(p, STARS, strict=True))
    np.testing.assert_allclose(np.exp(usage.log_base), p, rtol=1e-6)
    assert usage.mean == pytest.approx(mean, abs=1e-9)
    assert usage.variance == pytest.approx(sum(a * (b - mean) ** 2 for a, b in zip(p, STARS, strict=True)), rel=1e-6)
    assert usage.mean_variance == 0


@pytest.mark.parametrize("n", [2, 5, 10, 101])
def test_enormous_noise_gives_the_middle_of_the_scale_and_not_noise(n):
    y, N = np.linspace(-1, 1, n), 100
    bins = level_bins(n, N, 0.01)
    for seed in range(5):
        counts = np.random.default_rng(seed).laplace(0, 1e6, bins.max() + 1)
        usage = scale_usage(y, bins, counts, 2e12, N)
        assert abs(usage.mean) < 0.02
        assert 0.5 * 0.16 < usage.variance <= 1
        assert usage.mean_variance == pytest.approx(0.1, rel=0.01), "what was known before"


def test_moderate_noise_moves_the_mean_by_as_much_as_is_stated():
    """Distribution test: the spread of the mean over many noises is the stated one, and not half or double of it."""
    N, scale = 10_000, 300.0
    rng, found, stated = np.random.default_rng(0), [], 0.0
    for _ in range(600):
        usage = scale_usage(STARS, np.arange(5), PEOPLE + rng.laplace(0, scale, 5), 2 * scale**2, N)
        found.append(usage.mean)
        stated = usage.mean_variance
    assert 0.6 < np.var(found) / stated < 1.4
    assert np.mean(found) == pytest.approx(PEOPLE @ STARS / N, abs=0.02)


@pytest.mark.parametrize("noise", [0.0, 0.02, 0.1, 5.0])
def test_a_mean_bought_alone_is_weighed_against_the_middle_of_the_scale_by_their_precisions(noise):
    """Oracle: two Gaussians, the prior's variance a tenth of a half-width squared."""
    N = 50
    usage = mean_usage(STARS, 0.4 * N, noise * N**2, N)
    assert usage.mean == pytest.approx(0.4 * 0.1 / (0.1 + noise))
    assert usage.mean_variance == pytest.approx(0.1 * noise / (0.1 + noise))
    base = np.exp(usage.log_base)
    assert base.sum() == pytest.approx(1)
    assert usage.variance == pytest.approx(base @ STARS**2 - (base @ STARS) ** 2)
    assert 0.05 < usage.variance < 0.2


def test_less_noise_is_believed_more():
    counts = np.array([0.0, 0.0, 0.0, 0.0, 1000.0])
    means = [scale_usage(STARS, np.arange(5), counts, v, 1000).mean for v in (0.0, 1e4, 1e5, 1e6, 1e8)]
    assert (np.diff(means) < 0).all()
    assert means[0] > 0.95
    assert means[-1] < 0.1


def test_pooled_bins_keep_their_mass_and_are_smooth_inside():
    y, bins = np.linspace(-1, 1, 101), np.arange(101) * 8 // 101
    truth = np.exp(-((y - 0.2) ** 2) / 0.2)
    counts = np.bincount(bins, truth / truth.sum()) * 50_000
    usage = scale_usage(y, bins, counts, 0.0, 50_000)
    base = np.exp(usage.log_base)
    np.testing.assert_allclose(np.bincount(bins, base), counts / counts.sum(), rtol=1e-3)
    assert usage.mean == pytest.approx(truth @ y / truth.sum(), abs=0.01)
    bends = np.diff(usage.log_base, 2)[(np.diff(bins)[1:] == 0) & (np.diff(bins)[:-1] == 0)]
    np.testing.assert_allclose(bends, bends.mean(), rtol=1e-3)  # a parabola inside every bin: the Gaussian
    assert bends.mean() < 0


@pytest.mark.parametrize("n_levels", [2, 3, 4, 5, 10, 11, 101, 201])
@pytest.mark.parametrize("wealth", [1.0, 100.0, 500.0, 1e6])
def test_bins_are_neighbouring_levels_none_empty_and_worth_their_noise(n_levels, wealth):
    n_ratings, epsilon = 10_000, wealth / 10_000
    bins = level_bins(n_levels, n_ratings, epsilon)
    size = bins.max() + 1
    assert bins[0] == 0
    assert set(np.diff(bins)) <= {0, 1}
    assert size <= min(24, n_levels)
    if n_levels <= 4:
        assert size == n_levels
    if size > 4:
        assert n_ratings / size >= 14 * np.sqrt(2) * 2 / epsilon, "a bin's count is fourteen deviations of its noise"
    assert np.bincount(bins).max() - np.bincount(bins).min() <= 1


@pytest.mark.parametrize("n", [2, 3, 5, 10, 101, 201])
@pytest.mark.parametrize("top", [True, False])
def test_no_level_is_believed_impossible_even_if_everybody_gives_the_same_mark(n, top):
    """Otherwise the variance is zero and everything after divides by it."""
    y, N = np.linspace(-1, 1, n), 5_000
    bins = level_bins(n, N, 1.0)
    counts = np.zeros(bins.max() + 1)
    counts[-1 if top else 0] = N
    usage = scale_usage(y, bins, counts, 8.0, N)
    mass = np.bincount(bins, np.exp(usage.log_base))
    assert np.isfinite(usage.log_base).all()
    assert mass.min() > 0.5e-3 / len(mass)
    assert usage.variance > 1e-4
    assert usage.mean == pytest.approx(1 if top else -1, abs=0.1)


def test_negative_and_wild_counts_never_leave_the_scale():
    rng = np.random.default_rng(1)
    for scale in (1.0, 1e2, 1e4, 1e7):
        for _ in range(50):
            usage = scale_usage(STARS, np.arange(5), rng.laplace(0, scale, 5), 2 * scale**2, 300)
            assert np.exp(usage.log_base).sum() == pytest.approx(1)
            assert -1 <= usage.mean <= 1
            assert 0 < usage.variance <= 1
