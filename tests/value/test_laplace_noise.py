"""Sums with Laplace noise as normal observations: against integrals, and what must hold wherever the answer lies."""

import numpy as np
import pytest

from dpsr.value.laplace_noise import as_normal


def posterior_by_hand(T, v, b, m, q):
    """Oracle: mean and variance of s ~ N(m, q) after T = s + N(0, v) + Laplace(b), by two plain sums over grids."""
    wide = 12 * np.sqrt(q)
    s = np.linspace(m - wide, m + wide, 8001)
    log_chance = -((s - m) ** 2) / (2 * q)
    if v > 0:
        e = np.linspace(-9, 9, 601) * np.sqrt(v)
        inside = -np.abs(T - s[:, None] - e) / b - e**2 / (2 * v)
        most = inside.max(axis=1)
        log_chance += most + np.log(np.exp(inside - most[:, None]).sum(axis=1))
    else:
        log_chance += -np.abs(T - s) / b
    p = np.exp(log_chance - log_chance.max())
    p /= p.sum()
    mean = p @ s
    return mean, p @ (s - mean) ** 2


def left_by(T, v, b, m, q):
    """What N(m, q) becomes by the normal observation."""
    value, variance = as_normal(*(np.array([x]) for x in (T, v + 2 * b**2, b, m, q)))
    after = 1 / (1 / q + 1 / variance[0])
    return after * (m / q + value[0] / variance[0]), after


@pytest.mark.parametrize("v", [0.0, 0.3, 4.0])
@pytest.mark.parametrize("b", [0.2, 1.0, 3.0])
@pytest.mark.parametrize("T", [-6.0, -0.4, 0.1, 1.5, 9.0])
def test_a_normal_observation_leaves_mean_and_variance_of_the_exact_posterior(T, v, b):
    """And a scale that is a twentieth off is told from it."""
    mean, variance = posterior_by_hand(T, v, b, 0.1, 1.3)
    found = left_by(T, v, b, 0.1, 1.3)
    assert found == pytest.approx((mean, variance), rel=1e-3, abs=2e-4)
    wrong = left_by(T, v, 1.05 * b, 0.1, 1.3)
    assert T == 0.1 or abs(wrong[0] - mean) > 3 * abs(found[0] - mean)


def test_an_answer_far_from_what_is_expected_moves_it_by_no_more_than_one_that_is_less_far():
    """A normal reading would follow it for ever; this one stops at q / b."""
    far = [left_by(T, 0.5, 1.0, 0.0, 2.0)[0] for T in (2.0, 5.0, 20.0, 1e3, 1e6)]
    assert (np.diff(far) > -1e-9).all()
    assert far[-1] == pytest.approx(2.0 / 1.0, rel=1e-3)
    assert 1e6 * 2 / (2 + 0.5 + 2) > 1e5


def test_an_answer_near_what_is_expected_tells_more_than_a_normal_one_would():
    value, variance = as_normal(*(np.array([x]) for x in (0.05, 2.0, 1.0, 0.0, 0.1)))
    assert variance[0] < 2.0
    assert left_by(0.05, 0.0, 1.0, 0.0, 0.1)[1] < 1 / (1 / 0.1 + 1 / 2.0)
    assert value[0] * 0.05 > 0


def test_where_noise_is_nothing_next_to_what_is_open_an_observation_stays_as_it_is():
    values, variance = np.array([3.0, -2.0, 7.0]), np.array([0.5, 1e12, 2.0])
    scale = np.array([0.0, 0.0, 0.001])
    found = as_normal(values, variance, scale, np.zeros(3), np.ones(3))
    np.testing.assert_array_equal(found[0], values)
    np.testing.assert_array_equal(found[1], variance)
    near = as_normal(np.array([0.7]), np.array([25.0 + 2.0]), np.ones(1), np.zeros(1), np.full(1, 850.0))
    assert near[0] == pytest.approx(0.7, rel=0.01), "29.6 times the noise: read exactly, and the same"
    assert near[1] == pytest.approx(27.0, rel=0.03)


def test_variances_stay_above_those_of_the_ratings_and_nothing_overflows():
    rng = np.random.default_rng(1)
    n = 20_000
    scale, believed, v = (np.exp(rng.uniform(-8, 8, n)) for _ in range(3))
    mean = rng.normal(0, 3, n)
    T = mean + rng.choice([-1, 1], n) * np.exp(rng.uniform(-12, 14, n))
    with np.errstate(all="raise", under="ignore"):
        value, variance = as_normal(T, v + 2 * scale**2, scale, mean, believed)
    assert np.isfinite(value).all()
    assert (variance > v * (1 - 1e-6) - 1e-6 * believed).all()
    after = 1 / (1 / believed + 1 / variance)
    moved = after * (mean / believed + value / variance) - mean
    assert (np.sign(moved) * np.sign(T - mean) >= -1e-9).all()
    assert (np.abs(moved) <= np.abs(T - mean) * (1 + 1e-6) + 1e-6).all()
