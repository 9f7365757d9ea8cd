"""Made-up people: reproducible, as noisy answers say, and with the tastes of the model they come from."""

import numpy as np
import pytest

from dpsr import Scale
from dpsr.errors import ParameterError
from dpsr.synthesis import MOST_PEOPLE, USUAL_RATINGS, Synthesis, make_up, planned_ratings, usual_people
from dpsr.types.item_side import ACTIVITY_BINS, Crowd, ItemSide


def item_side(cells=40, factors=1):
    rng = np.random.default_rng(0)
    effects = rng.normal(0, 0.4, cells)
    features = np.column_stack([effects, np.zeros(cells), rng.normal(0, 1, (cells, factors))])
    activity = np.zeros(ACTIVITY_BINS)
    activity[3:5] = 100, 50
    crowd = Crowd(150.0, activity, np.linspace(30, 60, cells), np.ones(ACTIVITY_BINS))
    covariance = np.diag([0.2, 0.05, 0.01, *[0.3] * factors])
    level, mean, variance = np.full(ACTIVITY_BINS, 0.2), np.zeros(3 + factors), np.full(cells, 0.02)
    return ItemSide(Scale(1, 5, 0.5), effects, variance, features, 0.7, 0.3, level, mean, covariance, crowd)


@pytest.fixture(scope="module")
def side():
    return item_side()


@pytest.fixture(scope="module")
def people(side):
    return make_up(side, Synthesis(6_000))


def test_the_same_seed_gives_the_same_people_and_another_gives_others(side, people):
    again, other = make_up(side, Synthesis(6_000)), make_up(side, Synthesis(6_000, seed=1))
    assert (again.cells == people.cells).all()
    assert (again.places == people.places).all()
    assert len(other.cells) != len(people.cells) or (other.cells != people.cells).any()
    assert planned_ratings(side.crowd, Synthesis(6_000)) == len(people.cells)


def test_means_of_items_are_the_models(side, people):
    y = people.places * 2 / 8 - 1
    means = np.bincount(people.cells, y) / np.bincount(people.cells)
    np.testing.assert_allclose(means, side.spread * side.effects + 0.2, atol=0.04)


def test_directions_of_taste_show_in_second_moments_of_residuals(side, people):
    """Pairs of items with like factors are rated alike; without factors they are not."""
    for one, expected in ((people, True), (make_up(item_side(factors=0), Synthesis(6_000)), False)):
        y = np.full((6_000, 40), np.nan)
        y[one.owners, one.cells] = one.places
        z = y - np.nanmean(y, axis=1, keepdims=True)
        z -= np.nanmean(z, axis=0)
        both = np.nan_to_num(z).T @ np.nan_to_num(z) / ((~np.isnan(z)).T.astype(float) @ ~np.isnan(z))
        off = ~np.eye(40, dtype=bool)
        factor = np.outer(side.features[:, 2], side.features[:, 2])
        assert (np.corrcoef(both[off], factor[off])[0, 1] > 0.8) == expected


def test_levels_of_people_vary_as_the_covariance_says(side, people):
    y = people.places * 2 / 8 - 1 - side.spread * side.effects[people.cells]
    counts = np.diff(people.indptr)
    own = np.bincount(people.owners, y) / counts
    expected = side.spread**2 * (0.2 + 1.05 / counts.mean())  # own level, and the mean of the rest
    assert own.var() == pytest.approx(expected, rel=0.25)


def test_the_usual_number_is_the_noisy_one_unless_they_would_fill_a_disk(side):
    assert usual_people(side.crowd) == 150
    many = Crowd(1e7, side.crowd.activity, side.crowd.counts, side.crowd.weights)
    assert usual_people(many) < USUAL_RATINGS / 8


@pytest.mark.parametrize(("people", "seed"), [(0, 0), (-3, 0), (MOST_PEOPLE + 1, 0), (5, -1)])
def test_numbers_that_are_none_are_refused(people, seed):
    with pytest.raises(ParameterError, match="from 1 to"):
        Synthesis(people, seed)
