"""The unit `rating` against the larger promise `user`: it is no less accurate, also where items differ widely."""

from itertools import product

import numpy as np
import pyarrow as pa
import pytest

from dpsr import DPSR, Ratings, Scale
from dpsr.data.raw_statistics import root_mean_square_error


def wide_apart(seed):
    """Stars, most of whose variance is the item's: scores asked before anything is known of items saturate."""
    rng, n = np.random.default_rng(seed), 24_000
    cells = rng.choice(1_500 * 100, n, replace=False)
    users, items = np.divmod(cells, 100)
    y = 3.3 + 0.4 * rng.normal(size=1_500)[users] + 1.3 * rng.normal(size=100)[items] + 0.7 * rng.normal(size=n)
    return Ratings.from_arrays(users, items, np.rint(y).clip(1, 5), scale=Scale(1, 5)).split(0.2, seed=seed)


@pytest.mark.parametrize("epsilon", [1.0, 10.0])
def test_one_rating_is_cheaper_to_protect_than_a_person_where_items_differ_widely(epsilon):
    """Of three sets, because one may differ by half a per cent by chance."""
    error = {"user": 0.0, "rating": 0.0}
    for seed, unit in product(range(3), error):
        train, test = wide_apart(seed)
        model = DPSR(epsilon, unit=unit, delta=1e-5, random_state=seed + 1).fit(train)
        error[unit] += root_mean_square_error(test, model.personalise(train).predict)
    assert error["rating"] < 1.002 * error["user"]


def few_people(seed):
    """Half stars of 300 people, who differ, on 100 items, which differ."""
    rng, n = np.random.default_rng(seed), 12_000
    users, items = np.divmod(rng.choice(300 * 100, n, replace=False), 100)
    y = 3.4 + 0.5 * rng.normal(size=300)[users] + 0.5 * rng.normal(size=100)[items] + 0.9 * rng.normal(size=n)
    values = (np.rint(2 * y) / 2).clip(0.5, 5)
    return Ratings.from_arrays(users, items, values, scale=Scale(0.5, 5, 0.5)).split(0.2, seed=seed)


def test_a_few_hundred_people_have_enough_ratings_to_learn_from_at_a_small_epsilon():
    """Levels asked as of people take most of such a budget; asked by rating they leave it to the items."""
    error = {"user": 0.0, "rating": 0.0}
    for seed, unit in product(range(3), error):
        train, test = few_people(seed)
        items = pa.array(np.arange(100))
        model = DPSR(0.2, unit=unit, delta=1e-5, items=items, random_state=seed + 1).fit(train)
        error[unit] += root_mean_square_error(test, model.personalise(train).predict)
    assert error["rating"] < 0.97 * error["user"]
