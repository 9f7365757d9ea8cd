"""The window of a sum: moments against plain sums and sampling, the width against brute force."""

import numpy as np
import pytest

from dpsr.value.levels import choose_window, tabulate, window_moments, with_variance


def family_of(n, variance=0.15, seed=0):
    y = np.linspace(-1, 1, n)
    return with_variance(y, np.random.default_rng(seed).normal(0, 0.3, n), variance, np.array([0.2]))


def moments_by_hand(family, point, c):
    """Oracle: sums over levels, one at a time."""
    p, m, v, step = family.table[point], family.means[point], family.variance[point], family.y[1] - family.y[0]
    mean = second = covariance = inside = 0.0
    for q, y in zip(p, family.y, strict=True):
        cut = min(max(y - m, -c), c)
        mean, second, covariance = mean + q * cut, second + q * cut**2, covariance + q * cut * (y - m)
        low, high = max(y - m - step / 2, -c), min(y - m + step / 2, c)
        inside += q * max(high - low, 0) / step
    return mean, max(covariance / v, inside), second - mean**2


@pytest.mark.parametrize("n", [2, 5, 10, 101])
@pytest.mark.parametrize("c", [0.1, 0.4, 1.0, 2.0])
def test_window_moments_are_those_of_a_plain_sum(n, c):
    family = family_of(n)
    for point in (8, 30, 41):
        np.testing.assert_allclose(window_moments(family, point, c), moments_by_hand(family, point, c), atol=1e-9)


def test_window_moments_are_those_of_a_large_sample():
    """Distribution test: and a window five per cent wider would be rejected."""
    family, point, c = family_of(101), 36, 0.35
    d = np.random.default_rng(1).choice(family.y, 200_000, p=family.table[point]) - family.means[point]
    cut = np.clip(d, -c, c)
    mean, _, variance = window_moments(family, point, c)
    assert cut.mean() == pytest.approx(mean, abs=4 * cut.std() / np.sqrt(len(cut)))
    assert cut.var() == pytest.approx(variance, rel=0.01)
    assert cut.var() != pytest.approx(window_moments(family, point, 1.05 * c)[2], rel=0.01)


@pytest.mark.parametrize("c", [0.2, 0.7, 1.3])
def test_for_two_levels_the_slope_is_the_derivative_of_the_clipped_mean(c):
    family = tabulate(np.array([-1.0, 1.0]), np.zeros(2), 0.0)
    for point in (15, 30, 45):
        cut = np.clip(family.y - family.means[point], -c, c)
        derivative = (family.table[point + 1] - family.table[point - 1]) @ cut / (2 * family.spacing)
        assert window_moments(family, point, c)[1] == pytest.approx(derivative, rel=1e-6)


def test_the_slope_is_never_below_the_derivative_under_a_tilt():
    family = family_of(11)
    for c in (0.2, 0.5, 1.0):
        for point in range(10, 50, 5):
            cut = np.clip(family.y - family.means[point], -c, c)
            derivative = (family.table[point + 1] - family.table[point - 1]) @ cut / (2 * family.spacing)
            assert window_moments(family, point, c)[1] >= derivative - 0.01


def test_on_a_fine_scale_the_slope_is_the_share_of_mass_inside_the_window():
    """Moving a Gaussian by dm moves the clipped mean by P[inside] dm."""
    family = with_variance(np.linspace(-1, 1, 201), np.zeros(201), 0.04, np.zeros(1))
    slope = window_moments(family, 30, 0.2)[1]
    assert slope == pytest.approx(0.6827, abs=0.01)


def test_a_window_as_wide_as_the_scale_clips_nothing():
    family = family_of(5)
    mean, slope, variance = window_moments(family, 33, 2.0)
    assert mean == pytest.approx(0, abs=1e-9)
    assert slope == pytest.approx(1)
    assert variance == pytest.approx(family.variance[33], rel=1e-6)


def loss_by_hand(family, point, epsilon, counts, t, c):
    _, slope, variance = moments_by_hand(family, point, c)
    total = 0.0
    for n in counts:
        if n > 0:
            error = (2 * (2 * c / epsilon) ** 2 / n**2 + variance / n) / slope**2
            total += n * t * error / (t + error)
    return total


@pytest.mark.parametrize("n", [2, 5, 10, 101])
@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0, 5.0])
def test_the_chosen_window_is_as_good_as_brute_force_finds(n, epsilon):
    """Within two per cent of the least loss over two hundred widths from three quarters of a deviation on."""
    family, point = family_of(n), 36
    counts = np.r_[0, np.geomspace(1, 300, 25)]
    chosen = choose_window(family, point, epsilon, counts, 0.02)
    deviation = np.sqrt(family.variance[point])
    widths = np.minimum(np.geomspace(0.75, 4.5, 200) * deviation, 2.0)
    best = min(loss_by_hand(family, point, epsilon, counts, 0.02, c) for c in widths)
    assert 0.75 * deviation * (1 - 1e-9) <= chosen <= 2.0
    assert loss_by_hand(family, point, epsilon, counts, 0.02, chosen) <= 1.02 * best


@pytest.mark.parametrize("n", [5, 101])
def test_of_the_widths_it_tries_the_best_is_taken(n):
    """Exactly, at every epsilon: a wrong factor at the noise would shift the choice somewhere."""
    family, point, counts = family_of(n), 33, np.r_[0, 1, 2, 5, 9, 20, 40, 77, 150]
    tried = np.minimum(np.geomspace(0.75, 4.5, 10) * np.sqrt(family.variance[point]), 2.0)
    chosen = set()
    for epsilon in np.geomspace(0.02, 20, 25):
        best = min(tried, key=lambda c, e=epsilon: loss_by_hand(family, point, e, counts, 0.03, c))
        assert choose_window(family, point, epsilon, counts, 0.03) == pytest.approx(best)
        chosen.add(float(best))
    assert len(chosen) > 2


def test_the_window_is_narrower_the_smaller_epsilon():
    family, counts = family_of(101), np.geomspace(1, 300, 25)
    widths = [choose_window(family, 36, e, counts, 0.02) for e in (0.01, 0.1, 0.5, 2.0, 10.0, 100.0)]
    assert (np.diff(widths) >= 0).all()
    assert widths[-1] > 1.5 * widths[0]
