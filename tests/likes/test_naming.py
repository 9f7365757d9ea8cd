"""Over how many cells names are asked, by how many items of a person, and what lists of named items are worth."""

from functools import partial

import numpy as np
import pytest
from scipy.stats import norm

from dpsr.certify.people import MOST_NAMED, NAMED_TRIED, near_threshold
from dpsr.likes.activity import Activity
from dpsr.likes.forecast import TasteForecast
from dpsr.likes.naming import NameQuestion, Naming
from dpsr.types.item_side import ACTIVITY_BINS, SIZES

Y = 400.0 / (10 + np.arange(3_000))


def people(octave=3, n=500.0):
    """As many as said, all with about as many interactions."""
    return Activity(n * np.eye(ACTIVITY_BINS)[octave])


def level(threshold):
    """The same however many items of a person count."""
    return lambda most: threshold


def test_chances_are_those_of_drawn_weights():
    """Oracle: noise drawn on what each item weighs, counted."""
    rng, K, threshold, noise = np.random.default_rng(0), 40, 30.0, 5.0
    for activity in (people(), None):
        weights = Y[:K] / np.sqrt(Y[:K].sum() / Y.sum()) if activity else Y[:K]
        passed = (weights + rng.normal(0, noise, (20_000, K)) > threshold).mean(axis=0)
        asked = NameQuestion(K, MOST_NAMED)
        np.testing.assert_allclose(Naming(Y, activity).chances(asked, threshold, noise), passed, atol=0.015)


def test_the_number_of_cells_is_the_one_that_names_the_most():
    """Oracle: all numbers of cells."""
    naming, threshold, noise = Naming(Y, people()), 40.0, 6.0
    chances, found = naming.best(level(threshold), noise, wanted=100)
    worth = [
        (Y[:k] * naming.chances(NameQuestion(k, MOST_NAMED), threshold, noise))[:100].sum() for k in range(10, 400)
    ]
    assert (Y * chances)[:100].sum() == pytest.approx(max(worth), rel=0.02)
    assert 10 < found.n_cells < 300
    assert not chances[found.n_cells :].any()


def test_more_is_named_where_the_threshold_is_lower_and_all_where_there_is_hardly_one():
    naming = Naming(Y, people())
    named = [naming.best(level(threshold), threshold / 6, 100)[0].sum() for threshold in (200.0, 60.0, 20.0, 1.0)]
    assert named == sorted(named)
    assert named[0] < 10
    assert named[-1] > 100
    assert Naming(np.ones(1), people()).best(level(9.0), 1.0, 1)[1].n_cells == 1, "one cell is one cell"


@pytest.mark.parametrize("noise", [0.5, 5.0, 8.0])
@pytest.mark.parametrize("octave", [1, 4, 7, 10])
def test_cells_and_items_of_a_person_are_those_that_name_the_most_together(octave, noise):
    """Oracle: all pairs of a number of cells and a number of items, tried or not; never worse than all items."""
    naming, threshold = Naming(Y, people(octave)), partial(near_threshold, noise, 1e-6)
    chances, found = naming.best(threshold, noise, wanted=100)
    worth = {
        (K, most): float((Y[:K] * naming.chances(NameQuestion(K, most), threshold(most), noise))[:100].sum())
        for K in range(10, 600, 10)
        for most in (*NAMED_TRIED, 3, 12, 50, 100, 400)
    }
    reached = float((Y * chances)[:100].sum())
    assert reached >= 0.97 * max(worth.values())
    assert reached >= 0.999 * max(value for (_, most), value in worth.items() if most == MOST_NAMED)
    assert found.most < 2 * found.n_cells, "nobody has more cells than were asked about"


def test_fewer_items_of_a_person_count_where_people_have_few_and_where_noise_is_large():
    """With hardly any noise one item of somebody with one decides about the threshold, and nothing is cut."""

    def most(octave, noise):
        return Naming(Y, people(octave)).best(partial(near_threshold, noise, 1e-6), noise, 100)[1]

    assert most(1, 5.0).most <= 4
    assert most(4, 5.0).most <= 32
    busy = most(12, 0.05)
    assert busy.most >= busy.n_cells


def test_what_is_cut_from_people_with_more_items_than_count_is_what_drawn_people_lose():
    """Oracle: people drawn by popularity, with weights 1 / sqrt of how many of their items count."""
    rng, K, octave, popularity = np.random.default_rng(1), 200, 7, np.full(1_000, 1.0)
    n = round(SIZES[octave])
    inside = [np.count_nonzero(rng.choice(1_000, n, replace=False) < K) for _ in range(2_000)]
    for most in (4, 16, 64):
        drawn = np.sqrt(np.minimum(inside, most)).sum() / np.sqrt(inside).sum()
        full, cut = (Naming(popularity, people(octave))._weight(NameQuestion(K, one)) for one in (MOST_NAMED, most))
        assert cut / full == pytest.approx(drawn, rel=0.05)


def test_where_nothing_is_known_of_people_nothing_is_cut():
    """All numbers of people drowned."""
    unknown = Naming(Y, Activity(np.zeros(ACTIVITY_BINS)))
    known = Naming(Y, people(1))
    for K in (10, 100):
        assert unknown._weight(NameQuestion(K, 1)) == known._weight(NameQuestion(K, MOST_NAMED))


def test_interactions_that_count_one_by_one_have_no_number_of_items_to_choose():
    asked = Naming(Y, None).best(level(20.0), 3.0, 100)[1]
    assert asked.most == MOST_NAMED
    assert asked.n_cells > 1_000


def test_lists_of_what_may_be_named_are_worth_less_and_nothing_where_nothing_may_be():
    counts = np.zeros(ACTIVITY_BINS)
    counts[5] = 5_000.0
    lists, some, none = TasteForecast(Y, Activity(counts), 1e5), norm.sf(np.arange(3_000) - 30), 0 * Y
    assert lists.plain(np.ones(3_000)) == 1.0
    assert 0.5 < lists.plain(some) < 1.0
    assert lists.plain(none) < 1e-5
    assert lists.gain(200, 1.0) > lists.gain(200, 1.0, some) > 1e-3 > lists.gain(200, 1.0, none)
    assert lists.gain(200, 1.0, np.ones(3_000)) == lists.gain(200, 1.0)
