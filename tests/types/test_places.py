"""Places in the order of ids: weights stand before, tents add up to one."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsr.types.places import Tents, places_of


@given(st.lists(st.floats(0.001, 10), min_size=1, max_size=30), st.randoms())
def test_a_place_is_the_weight_before_and_half_of_the_own(weights, random):
    """Oracle: sums over all that stand before, one by one."""
    ids = random.sample(range(1_000), len(weights))
    expected = [
        (sum(w for w, i in zip(weights, ids, strict=True) if i < own) + weight / 2) / sum(weights)
        for weight, own in zip(weights, ids, strict=True)
    ]
    found = places_of(pa.array(ids), np.array(weights))
    np.testing.assert_allclose(found, expected, atol=1e-12)
    assert ((found > 0) & (found < 1)).all()


def test_an_item_without_weight_stands_between_its_neighbours_and_nothing_is_needed():
    assert places_of(pa.array([1, 2, 3]), np.array([1.0, 0.0, 1.0])).tolist() == [0.25, 0.5, 0.75]
    assert places_of(pa.array([1, 2]), np.zeros(2)).tolist() == [0, 0]
    assert len(places_of(pa.array([], pa.string()), np.zeros(0))) == 0


@pytest.mark.parametrize("stretches", [2, 3, 10])
def test_tents_add_up_to_one_everywhere_and_have_the_same_area(stretches):
    places = (np.arange(60_000) + 0.5) / 60_000
    shares = Tents.at(places, stretches).shares(stretches)
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    np.testing.assert_allclose(shares.mean(axis=0), 1 / stretches, rtol=1e-6)
    centres = Tents.at((np.arange(stretches) + 0.5) / stretches, stretches).shares(stretches)
    np.testing.assert_allclose(centres, np.eye(stretches), atol=1e-12)
    ends = Tents.at(np.array([0.0, 1.0]), stretches).shares(stretches)
    np.testing.assert_array_equal(ends, np.eye(stretches)[[0, -1]])
