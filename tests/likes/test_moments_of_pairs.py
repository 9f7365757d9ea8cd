"""Second moments from pairs of cells: what popularity explains is taken out, taste is left."""

import numpy as np
import pytest

from dpsr.likes.activity import Activity
from dpsr.likes.taste import learn_taste, moments_of_pairs
from dpsr.types.item_side import ACTIVITY_BINS, activity_of

T = 60


def crowd(loading, n_people=4_000, seed=0):
    """Pairs of drawn people whose taste moves one axis, and how many of them have how many cells."""
    rng = np.random.default_rng(seed)
    centre = 1 / (4.0 + np.arange(T))
    centre /= centre.sum()
    x = np.zeros((n_people, T))
    for row in x:
        own = centre * np.exp(loading * rng.normal())
        row[np.argsort(rng.exponential(size=T) / own)[: rng.integers(2, 13)]] = 1
    n = x.sum(axis=1).astype(int)
    pairs = (x / np.sqrt(n)[:, None]).T @ x
    np.fill_diagonal(pairs, 0)
    counts = np.bincount(activity_of(n), minlength=ACTIVITY_BINS).astype(float)
    return pairs, x.sum(axis=0) / x.sum(), Activity(counts)


def test_without_taste_hardly_anything_is_left_of_pairs():
    pairs, centre, activity = crowd(np.zeros(T))
    left = moments_of_pairs(pairs, 0.1, centre, activity)
    assert np.abs(left.values).sum() < 0.2 * pairs.sum()
    assert not left.values.diagonal().any()
    assert left.values.sum() == pytest.approx(0, abs=1e-6 * pairs.sum())


def test_an_axis_of_taste_is_found_in_what_is_left():
    loading = np.where(np.arange(T) % 2 == 0, 0.6, -0.6)
    pairs, centre, activity = crowd(loading)
    found = learn_taste(moments_of_pairs(pairs, 0.1, centre, activity), 1.0).loadings[:, 0]
    assert abs(np.corrcoef(found, loading)[0, 1]) > 0.9


def test_nobody_with_a_pair_is_no_error():
    centre = np.full(T, 1 / T)
    none = moments_of_pairs(np.zeros((T, T)), 1.0, centre, Activity(np.zeros(ACTIVITY_BINS)))
    assert np.isfinite(none.values).all()
    assert none.people == none.squares == 1.0
