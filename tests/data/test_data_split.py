"""Splits: exact sizes, shared codes, nothing lost, nothing twice."""

import numpy as np
import pytest

from dpsr.data import Ratings, realistic
from dpsr.errors import DataError, ParameterError
from dpsr.types.coordinates import Scale


@pytest.fixture(scope="module")
def ratings():
    return realistic(3, n_users=50, n_items=40, n_ratings=777, timestamps=True)


def cells(ratings):
    return set(zip(ratings.mask.users.tolist(), ratings.mask.items.tolist(), ratings.levels.tolist(), strict=True))


@pytest.mark.parametrize("by", ["random", "time"])
@pytest.mark.parametrize("test_size", [0.01, 0.2, 0.5, 0.9])
def test_the_parts_are_disjoint_complete_and_of_the_exact_size(ratings, by, test_size):
    train, test = ratings.split(test_size, seed=1, by=by)
    assert len(test) == round(test_size * 777)
    assert cells(train) | cells(test) == cells(ratings)
    assert not cells(train) & cells(test)


@pytest.mark.parametrize("by", ["random", "time"])
def test_both_parts_keep_the_vocabularies_so_codes_agree(ratings, by):
    for part in ratings.split(seed=0, by=by):
        assert type(part) is Ratings
        assert part.mask.user_ids.equals(ratings.mask.user_ids)
        assert part.mask.item_ids.equals(ratings.mask.item_ids)
        assert part.scale == ratings.scale
        assert len(part.mask.timestamps) == len(part) == part.mask.indptr[-1]


def test_the_test_part_is_a_permutation_of_the_canonical_order(ratings):
    chosen = np.sort(np.random.default_rng(11).permutation(777)[-155:])
    _, test = ratings.split(0.2, seed=11)
    np.testing.assert_array_equal(test.mask.users, ratings.mask.users[chosen])
    np.testing.assert_array_equal(test.mask.items, ratings.mask.items[chosen])
    np.testing.assert_array_equal(test.levels, ratings.levels[chosen])


def test_the_same_seed_gives_the_same_parts_and_another_seed_others(ratings):
    assert cells(ratings.split(seed=5)[1]) == cells(ratings.split(seed=5)[1])
    assert cells(ratings.split(seed=5)[1]) != cells(ratings.split(seed=6)[1])


def test_a_split_does_not_depend_on_the_order_of_the_input(ratings):
    table = ratings.to_arrow()
    shuffled = table.take(np.random.default_rng(0).permutation(len(table)))
    parts = [Ratings.from_frame(t, scale=ratings.scale).split(seed=5)[1].to_arrow() for t in (table, shuffled)]
    assert parts[0] == parts[1]


def test_every_rating_is_equally_likely_to_be_tested(ratings):
    table = ratings.to_arrow().to_pylist()
    counts = dict.fromkeys(((row["user"], row["item"]) for row in table), 0)
    for seed in range(200):
        for row in ratings.split(0.5, seed=seed)[1].to_arrow().select(["user", "item"]).to_pylist():
            counts[row["user"], row["item"]] += 1
    assert 60 < min(counts.values()) <= max(counts.values()) < 140  # 100 expected, five standard deviations are 35


def test_the_latest_ratings_are_tested(ratings):
    train, test = ratings.split(0.3, by="time")
    assert train.mask.timestamps.max() <= test.mask.timestamps.min()


def test_ties_in_time_are_settled_by_the_canonical_order():
    ratings = Ratings.from_arrays([3, 2, 1, 1], [1, 1, 1, 2], [4, 3, 1, 2], scale=Scale(1, 5), timestamps=[9, 9, 9, 9])
    train, test = ratings.split(0.5, by="time")
    assert (train.values.tolist(), test.values.tolist()) == ([1, 2], [3, 4])


def test_a_split_by_time_needs_timestamps():
    ratings = Ratings.from_arrays([1, 2], [1, 2], [1, 2], scale=Scale(1, 5))
    with pytest.raises(DataError, match=r"needs timestamps.*--timestamp COLUMN.*by=\"random\""):
        ratings.split(0.5, by="time")


@pytest.mark.parametrize("share", [0, 1, -0.1, 1.5, float("nan")])
def test_a_share_outside_zero_and_one_is_refused(ratings, share):
    with pytest.raises(ParameterError, match="between 0 and 1"):
        ratings.split(share)


def test_a_split_with_an_empty_side_or_of_unknown_kind_is_refused(ratings):
    with pytest.raises(DataError, match=r"a rating on either side.*Choose another test_size"):
        ratings.split(1e-9)
    with pytest.raises(ParameterError, match="found 'user'"):
        ratings.split(by="user")
