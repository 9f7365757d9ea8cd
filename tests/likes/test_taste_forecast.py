"""How much lists are expected to gain by second moments, and over how many cells."""

import numpy as np
import pytest

from dpsr.likes import forecast
from dpsr.likes.activity import Activity
from dpsr.likes.forecast import TasteForecast, favour_of
from dpsr.likes.popularity import Popularity
from dpsr.likes.taste import STRONGEST, Moments, learn_taste
from dpsr.types.item_side import ACTIVITY_BINS

Y = 400.0 / (10 + np.arange(3_000))


def crowd(people=5_000.0, octave=5):
    counts = np.zeros(ACTIVITY_BINS)
    counts[octave] = people
    return Activity(counts)


def test_more_cells_are_asked_where_noise_is_smaller_and_none_where_popularity_is_drowned():
    ahead = TasteForecast(Y, crowd(), 1e5)
    found = [ahead.best(noise) for noise in (3_000.0, 100.0, 10.0, 1.0)]
    gains, sizes = zip(*found, strict=True)
    assert found[0] == (1.0, 0)
    assert list(gains) == sorted(gains)
    assert list(sizes) == sorted(sizes)
    assert 20 <= sizes[1] < sizes[-1] <= forecast.MOST_CELLS
    assert TasteForecast(0 * Y, crowd(), 1e5).best(1.0) == (1.0, 0)
    assert TasteForecast(Y, Activity(np.zeros(ACTIVITY_BINS)), 1e5).best(1.0) == (1.0, 0)


def test_a_small_sample_ends_the_gain_whatever_epsilon_is():
    """Interactions of few who did much tell more than those of many who did little."""
    heavy, light, drowned = (TasteForecast(Y, crowd(people), 1e4).best(0.01) for people in (100.0, 1e4, 1e5))
    assert heavy[0] > light[0] > 1
    assert drowned == (1.0, 0)


def test_the_number_of_cells_hardly_depends_on_the_noise_of_counts():
    truth, sizes = 25.0 / (1 + 0.05 * np.arange(9_000)) ** 1.2, []
    for seed in range(4):
        noisy = truth + np.random.default_rng(seed).normal(0, 1.5, 9_000)
        believed = Popularity.none(9_000).add(np.arange(9_000), noisy, 1.5).believed
        sizes.append(TasteForecast(np.sort(believed)[::-1], crowd(), 4e4).best(5.0)[1])
    assert max(sizes) <= 1.6 * min(sizes), sizes


def test_the_number_of_cells_hardly_depends_on_how_much_taste_is_believed(monkeypatch):
    ahead = TasteForecast(Y, crowd(), 1e5)
    usual = ahead.best(3.0)[1]
    monkeypatch.setattr(forecast, "TASTE", 2 * forecast.TASTE)
    assert usual <= ahead.best(3.0)[1] <= 1.6 * usual


def test_what_is_known_of_an_axis_is_what_a_drawn_matrix_tells():
    """Oracle: matrices with one axis of the prior's size, in noise; where `learn_taste` points."""
    rng, T, noise = np.random.default_rng(0), 300, 20.0
    ahead = TasteForecast(Y, crowd(people=1.0), 4e5)
    reach = float(Y[:T].sum() / Y.sum())
    p = Y[:T] / Y[:T].sum()
    g = favour_of(p)
    scale = np.sqrt(4e5 * reach / (p * g * g).sum()) * p * g
    tau = np.array([forecast.TASTE])
    known = ahead._known(p, reach, noise, tau)[0]
    found = []
    for _ in range(5):
        a = scale * rng.normal(0, tau**0.5, T)
        M = np.outer(a, a) + noise * np.sqrt(2) * (lambda Z: (Z + Z.T) / 2)(rng.normal(size=(T, T)))
        np.fill_diagonal(M, 0)
        moments = Moments(M, noise, 1.0, float((scale / (p * g))[0] ** 2), p, g)
        learned = scale[:, None] * learn_taste(moments, forecast.TASTE / STRONGEST).loadings
        found.append((np.linalg.svd(learned, full_matrices=False)[0][:, 0] @ a) ** 2 / (a @ a))
    expected = (known * scale**2).sum() / (scale**2).sum()
    assert 0.2 < expected < 0.98, "neither hopeless nor easy"
    assert np.mean(found) == pytest.approx(expected, abs=0.06)


def test_an_axis_below_the_threshold_of_detection_is_not_counted_on():
    ahead, p = TasteForecast(Y, crowd(people=1.0), 1e4), Y[:100] / Y[:100].sum()
    reach = float(Y[:100].sum() / Y.sum())
    g = favour_of(p)
    t = forecast.TASTE * 1e4 * reach / (p * g * g).sum() * (p * g) ** 2
    edge = float(np.sqrt((t * t).sum()))
    tau = np.array([forecast.TASTE])
    assert ahead._known(p, reach, 1.5 * edge, tau).max() < 1e-3
    assert ahead._known(p, reach, edge / 1.5, tau).max() > 0.1


def test_the_mass_of_a_list_is_that_of_drawn_lists():
    """Oracle: lists of people drawn one by one."""
    rng = np.random.default_rng(1)
    p = Y[:1_000] / Y.sum()
    u, missing = np.full(200, 0.3), np.full(1_000, 0.8)
    masses = []
    for _ in range(400):
        value = p.copy()
        value[:200] *= 1 + np.sqrt(0.3) * rng.normal(size=200)
        value[rng.random(1_000) > 0.8] = 0
        masses.append(np.sort(value)[::-1][: forecast.LIST].sum())
    assert forecast._mass(p, u, missing) == pytest.approx(np.mean(masses), rel=0.02)
    assert forecast._mass(p, np.zeros(0), np.ones(1_000)) == pytest.approx(p[: forecast.LIST].sum(), rel=1e-3)
