"""Ratings on levels with given means and variances."""

import numpy as np
import pytest

from dpsr.synthesis import draw_levels

N = 40_000


def drawn(mean, variance, n_levels):
    rng = np.random.default_rng(3)
    places = draw_levels(np.full(N, mean), np.full(N, variance), n_levels, rng)
    assert places.min() >= 0
    assert places.max() < n_levels
    return places * 2 / (n_levels - 1) - 1


@pytest.mark.parametrize("n_levels", [2, 5, 10])
@pytest.mark.parametrize("mean", [-0.8, 0.0, 0.4, 0.85])
def test_means_are_kept_also_near_the_ends_of_the_scale(mean, n_levels):
    """Cutting a normal number at the ends would miss 0.85 by 0.07 at ten levels."""
    assert drawn(mean, 0.15, n_levels).mean() == pytest.approx(mean, abs=0.02)


def test_cutting_alone_would_be_noticed():
    cut = np.clip(np.random.default_rng(0).normal(0.85, 0.15**0.5, N), -1, 1).mean()
    assert abs(cut - 0.85) > 0.05


@pytest.mark.parametrize("n_levels", [5, 10])
def test_variances_are_kept_in_the_middle_of_the_scale(n_levels):
    assert drawn(0.0, 0.15, n_levels).var() == pytest.approx(0.15, rel=0.06)


def test_a_mean_beyond_the_scale_is_its_end():
    assert (drawn(3.0, 0.1, 5) == 1.0).mean() > 0.99
