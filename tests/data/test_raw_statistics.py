"""How ratings vary, from the raw table."""

import numpy as np
import pytest

from dpsr import Ratings
from dpsr.data.raw_statistics import raw_spread


def test_variances_that_were_put_in_are_found():
    rng = np.random.default_rng(0)
    users, items = (index.ravel() for index in np.meshgrid(np.arange(800), np.arange(60), indexing="ij"))
    keep = rng.random(len(users)) < 0.4
    users, items = users[keep], items[keep]
    y = rng.normal(0, 2.0, 800)[users] + rng.normal(0, 1.5, 60)[items] + rng.normal(0, 3.0, len(users))
    ratings = Ratings.from_arrays(users, items, np.clip(np.round(y + 50), 0, 100), scale="0:100:1")
    found = raw_spread(ratings)
    within = 1.5**2 + 3.0**2
    assert found.spread == pytest.approx(within**0.5, rel=0.03)
    assert found.level_variance == pytest.approx(4 / within, rel=0.15)
    assert found.effect_variance == pytest.approx(1.5**2 / within, rel=0.3)


def test_one_rating_each_and_equal_ratings_are_no_accident():
    alone = Ratings.from_arrays(np.arange(5), np.arange(5), [1, 2, 3, 4, 5], scale="1:5:1")
    same = Ratings.from_arrays([0, 0, 1, 1], [0, 1, 0, 1], [3, 3, 3, 3], scale="1:5:1")
    for ratings in (alone, same):
        found = raw_spread(ratings)
        assert np.isfinite([found.spread, found.level_variance, found.effect_variance]).all()
