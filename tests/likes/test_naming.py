"""Over how many cells names are asked, and what lists are worth that hold nothing else."""

import numpy as np
import pytest
from scipy.stats import norm

from dpsr.likes.activity import Activity
from dpsr.likes.foresight import Foresight
from dpsr.likes.naming import Naming
from dpsr.types.item_side import ACTIVITY_BINS

Y = 400.0 / (10 + np.arange(3_000))


def test_chances_are_those_of_drawn_weights():
    """Oracle: noise drawn on what each item weighs, counted."""
    rng, K, threshold, noise = np.random.default_rng(0), 40, 30.0, 5.0
    for by_person in (True, False):
        weights = Y[:K] / np.sqrt(Y[:K].sum() / Y.sum()) if by_person else Y[:K]
        passed = (weights + rng.normal(0, noise, (20_000, K)) > threshold).mean(axis=0)
        np.testing.assert_allclose(Naming(Y, by_person).chances(K, threshold, noise), passed, atol=0.015)


def test_the_number_of_cells_is_the_one_that_names_the_most():
    """Oracle: all numbers of cells."""
    naming, threshold, noise = Naming(Y, True), 40.0, 6.0
    chances, found = naming.best(threshold, noise, wanted=100)
    worth = [(Y[:k] * naming.chances(k, threshold, noise))[:100].sum() for k in range(10, 400)]
    assert (Y * chances)[:100].sum() == pytest.approx(max(worth), rel=0.02)
    assert 10 < found < 300
    assert not chances[found:].any()


def test_more_is_named_where_the_threshold_is_lower_and_all_where_there_is_hardly_one():
    naming = Naming(Y, True)
    named = [naming.best(threshold, threshold / 6, 100)[0].sum() for threshold in (200.0, 60.0, 20.0, 1.0)]
    assert named == sorted(named)
    assert named[0] < 10
    assert named[-1] > 100
    assert Naming(np.ones(1), True).best(9.0, 1.0, 1)[1] == 1, "one cell is one cell"


def test_lists_of_what_may_be_named_are_worth_less_and_nothing_where_nothing_may_be():
    counts = np.zeros(ACTIVITY_BINS)
    counts[5] = 5_000.0
    everything = Foresight(Y, Activity(counts), 1e5)
    some, none = (Foresight(Y, Activity(counts), 1e5, chances) for chances in (norm.sf(np.arange(3_000) - 30), 0 * Y))
    assert everything.plain == 1.0
    assert 0.5 < some.plain < 1.0
    assert none.plain < 1e-5
    assert everything.gain(200, 1.0) > some.gain(200, 1.0) > 1e-3 > none.gain(200, 1.0)
    assert Foresight(Y, Activity(counts), 1e5, np.ones(3_000)).gain(200, 1.0) == everything.gain(200, 1.0)
