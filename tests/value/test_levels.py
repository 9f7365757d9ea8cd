"""Distributions of levels: the mean is the mean, the score is (y - m) / V, the spread is what was asked for."""

import numpy as np
import pytest
from scipy.optimize import brentq

from dpsr.value.levels import GRID, tabulate, with_variance

SIZES = [2, 3, 5, 10, 101, 201]


def base(n, seed=0):
    """A bumpy base measure, as people make: some levels three times as frequent as their neighbours."""
    return np.random.default_rng(seed).normal(0, 0.6, n)


def by_hand(y, log_base, t1, t2):
    weights = [np.exp(b + t1 * v + t2 * v * v) for v, b in zip(y, log_base, strict=True)]
    return np.array(weights) / sum(weights)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("curvature", [-3.0, 0.0, 2.0])
def test_the_mean_of_every_row_is_the_mean_it_is_tabulated_for(n, curvature):
    y = np.linspace(-1, 1, n)
    family = tabulate(y, base(n), curvature)
    assert len(family.means) == GRID
    np.testing.assert_allclose(family.table.sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_allclose(family.table @ y, family.means, atol=1e-9)


@pytest.mark.parametrize("n", SIZES)
def test_the_variance_is_the_second_moment_about_the_mean(n):
    y = np.linspace(-1, 1, n)
    family = tabulate(y, base(n), -1.0)
    for m, row, v in zip(family.means, family.table, family.variance, strict=True):
        assert v == pytest.approx(sum(p * (x - m) ** 2 for p, x in zip(row, y, strict=True)), rel=1e-6)


@pytest.mark.parametrize("n", [2, 5, 21])
def test_each_row_is_the_base_measure_tilted_by_the_root_of_the_mean_equation(n):
    """Oracle: a scalar root finder and a loop over levels."""
    y, log_base, t2 = np.linspace(-1, 1, n), base(n, 1), -1.5
    family = tabulate(y, log_base, t2)
    for g in (0, 7, 30, 44, GRID - 1):
        m = family.means[g]
        t1 = brentq(lambda t, m=m: by_hand(y, log_base, t, t2) @ y - m, -60, 60, xtol=1e-13)
        np.testing.assert_allclose(family.table[g], by_hand(y, log_base, t1, t2), rtol=1e-7, atol=1e-13)


@pytest.mark.parametrize("n", [2, 5, 11])
def test_the_score_in_the_mean_is_the_deviation_over_the_variance(n):
    """d/dm log P(y | m) = (y - m) / V(m), by five-point differences of the table itself."""
    y = np.linspace(-1, 1, n)
    family = tabulate(y, base(n, 2), -1.0)
    f, h = np.log(family.table), family.spacing
    for g in range(12, GRID - 12):
        slope = (f[g - 2] - 8 * f[g - 1] + 8 * f[g + 1] - f[g + 2]) / (12 * h)
        score = (y - family.means[g]) / family.variance[g]
        np.testing.assert_allclose(slope, score, rtol=5e-3, atol=5e-3)


@pytest.mark.parametrize(("n", "variance"), [(5, 0.1), (5, 0.25), (11, 0.05), (11, 0.3), (201, 0.02), (201, 0.3)])
def test_the_asked_variance_is_reached_on_average_over_the_centres(n, variance):
    y, centres = np.linspace(-1, 1, n), np.random.default_rng(3).normal(0.2, 0.15, 200)
    family = with_variance(y, base(n, 3), variance, centres)
    reached = np.mean([np.interp(c, family.means, family.variance) for c in centres])
    assert reached == pytest.approx(variance, rel=5e-3)
    np.testing.assert_allclose(family.table @ y, family.means, atol=1e-9)


def test_a_variance_beyond_the_scale_is_approached_as_nearly_as_the_scale_allows():
    """Two levels have one variance, 1 - m^2; five levels at the same mean have no more than that and not nothing."""
    centres = np.zeros(1)
    two = with_variance(np.array([-1.0, 1.0]), np.zeros(2), 0.1, centres)
    np.testing.assert_allclose(two.variance, 1 - two.means**2, rtol=1e-6)
    wide = with_variance(np.linspace(-1, 1, 5), np.zeros(5), 5.0, centres)
    assert wide.at(wide.variance, centres)[0] == pytest.approx(1.0, rel=1e-3)
    narrow = with_variance(np.linspace(-1, 1, 5), np.zeros(5), 1e-3, centres)
    assert narrow.at(narrow.variance, centres)[0] < 0.01


def test_the_shape_of_the_base_measure_survives_a_change_of_variance():
    """log P minus log base is a parabola in y: half stars stay rare whatever the spread."""
    y, log_base = np.linspace(-1, 1, 10), np.log(np.tile([1.0, 3.0], 5))
    family = with_variance(y, log_base, 0.08, np.array([0.3]))
    for row in family.table[5:-5:10]:
        fit = np.polynomial.Polynomial.fit(y, np.log(row) - log_base, 2)
        np.testing.assert_allclose(fit(y), np.log(row) - log_base, atol=1e-6)


@pytest.mark.parametrize("n", [2, 3, 5, 101])
@pytest.mark.parametrize("side", [1, -1])
def test_the_means_are_right_however_lopsided_the_base_measure(n, side):
    """Everybody gives the top mark: the lowest level is e^-70 as likely, and still there are rows for low means."""
    y = np.linspace(-1, 1, n)
    family = tabulate(y, 35.0 * side * y, 0.0)
    np.testing.assert_allclose(family.table @ y, family.means, atol=1e-9)


def test_the_nearest_row_is_the_nearest_mean_and_stays_inside_the_table():
    family = tabulate(np.linspace(-1, 1, 5), np.zeros(5), 0.0)
    m = np.random.default_rng(4).uniform(-1.5, 1.5, 300)
    wanted = [int(np.argmin(np.abs(family.means - one))) for one in m]
    assert family.nearest(m).tolist() == wanted


def test_between_the_tabulated_means_everything_is_interpolated_linearly():
    family = tabulate(np.linspace(-1, 1, 5), np.zeros(5), 0.0)
    between = (family.means[20] + family.means[21]) / 2
    halfway = (family.variance[20] + family.variance[21]) / 2
    assert family.at(family.variance, np.array([between]))[0] == pytest.approx(halfway)
    assert family.spacing == pytest.approx(family.means[33] - family.means[32])
