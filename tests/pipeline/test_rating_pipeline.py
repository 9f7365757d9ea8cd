"""The unit `rating` against the larger promise `user`: it is no less accurate, also where items differ widely."""

import numpy as np
import pytest

from dpsr import DPSR, Ratings, Scale
from dpsr.data.raw_statistics import root_mean_square_error


@pytest.fixture(scope="module")
def wide_apart():
    """Stars, most of whose variance is the item's: scores asked before anything is known of items saturate."""
    rng, n = np.random.default_rng(0), 24_000
    cells = rng.choice(1_500 * 100, n, replace=False)
    users, items = np.divmod(cells, 100)
    y = 3.3 + 0.4 * rng.normal(size=1_500)[users] + 1.3 * rng.normal(size=100)[items] + 0.7 * rng.normal(size=n)
    return Ratings.from_arrays(users, items, np.rint(y).clip(1, 5), scale=Scale(1, 5)).split(0.2, seed=0)


@pytest.mark.parametrize("epsilon", [1.0, 10.0])
def test_one_rating_is_cheaper_to_protect_than_a_person_where_items_differ_widely(wide_apart, epsilon):
    train, test = wide_apart
    error = {}
    for unit in ("user", "rating"):
        model = DPSR(epsilon, unit=unit, delta=1e-5, random_state=1).fit(train)
        error[unit] = root_mean_square_error(test, model.personalise(train).predict)
    assert error["rating"] < 1.005 * error["user"]
