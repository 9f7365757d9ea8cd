"""How many items made-up people meet, and which: noisy counts are kept, nothing is met twice."""

import numpy as np
import pytest

from dpsr import synthesis
from dpsr.synthesis import MEAN_MET, items_met, numbers_met, plausible_activity, propensities
from dpsr.types.item_side import ACTIVITY_BINS, SIZES, activity_of

ACTIVITY = np.array([500.0, 300, 200, 100, 50, 20, 5] + [0] * 7)
EVEN, ROOT = np.ones(ACTIVITY_BINS), SIZES**-0.5


def zipf(n=400):
    return 1_000 / np.arange(1, n + 1)


def test_people_fall_into_octaves_as_noisy_counts_say_and_their_mean_is_the_octaves():
    counts = numbers_met(200_000, ACTIVITY, np.random.default_rng(0))
    shares = np.bincount(activity_of(counts), minlength=ACTIVITY_BINS) / 200_000
    np.testing.assert_allclose(shares, ACTIVITY / ACTIVITY.sum(), atol=0.005)
    for octave in range(1, 6):
        assert counts[activity_of(counts) == octave].mean() == pytest.approx(MEAN_MET[octave], rel=0.02)


def test_nobody_meets_an_item_twice_and_everybody_as_many_as_wanted():
    counts = numbers_met(3_000, ACTIVITY, np.random.default_rng(0))
    indptr, cells = items_met(counts, zipf() / zipf().sum(), np.random.default_rng(1))
    np.testing.assert_array_equal(np.diff(indptr), counts)
    owners = np.repeat(np.arange(3_000), counts)
    assert len(np.unique(owners * 400 + cells)) == len(cells)
    assert (np.diff(cells)[np.diff(owners) == 0] > 0).all()


@pytest.mark.parametrize("weights", [EVEN, ROOT])
def test_expected_weighted_counts_are_the_noisy_ones_and_counts_as_propensities_would_miss_them(weights):
    """The oracle is the draw itself. The planted error: counts taken for propensities fall short at the top."""
    rng, wanted = np.random.default_rng(2), zipf() / zipf().sum()
    counts = numbers_met(40_000, ACTIVITY, rng)
    weigh = weights[activity_of(counts)]
    errors = []
    for p in (propensities(zipf(), ACTIVITY, weights), wanted):
        indptr, cells = items_met(counts, p, rng)
        found = np.bincount(cells, np.repeat(weigh, np.diff(indptr)), minlength=400)
        errors.append(abs(found / found.sum() / wanted - 1)[:10].max())
    assert errors[0] < 0.06
    assert errors[1] > 2 * errors[0]


def test_where_nothing_was_learned_every_cell_is_as_likely():
    np.testing.assert_array_equal(propensities(np.zeros(5), ACTIVITY, EVEN), np.full(5, 0.2))


def test_somebody_who_must_meet_what_hardly_anybody_meets_does(monkeypatch):
    """Nearly all of the weight on three cells: drawing again would not end. The same law as drawing one by one."""
    p = np.array([0.4, 0.3, 0.3 - 3e-9, 2e-9, 1e-9])
    indptr, cells = items_met(np.full(3_000, 4), p / p.sum(), np.random.default_rng(0))
    assert (np.diff(indptr) == 4).all()
    assert (cells == 3).sum() == pytest.approx(2_000, abs=110)


def test_a_catalogue_smaller_than_a_persons_appetite_ends_the_meal():
    indptr, cells = items_met(np.array([50, 2]), np.full(4, 0.25), np.random.default_rng(0))
    assert np.diff(indptr).tolist() == [4, 2]
    assert sorted(cells[:4].tolist()) == [0, 1, 2, 3]


def test_people_served_in_many_small_groups_are_the_people_they_were_and_meet_what_they_like(monkeypatch):
    """Everybody likes the cells of their own parity alone; groups of some twenty people and of all."""
    counts, p = np.arange(500) % 7 + 1, np.full(60, 1 / 60)

    def own(people, cells):
        assert len(people) == len(cells)
        return (people % 2 == cells % 2).astype(np.float64)

    for at_once in (synthesis._AT_ONCE, 1_000):
        monkeypatch.setattr(synthesis, "_AT_ONCE", at_once)
        indptr, cells = items_met(counts, p, np.random.default_rng(0), own)
        owners = np.repeat(np.arange(500), np.diff(indptr))
        np.testing.assert_array_equal(np.diff(indptr), counts)
        np.testing.assert_array_equal(owners % 2, cells % 2)
        assert (np.diff(owners * 60 + cells) > 0).all(), "ascending, none twice"


def test_people_whom_noise_invents_far_from_all_others_are_not_made_up():
    """As seen on a release: a few thousandths of people with thousands of ratings would have had most of them."""
    counts = np.array([7417.0, 3595, 2318, 1629, 943, 437, 120, 28, 11, 0, 8, 20, 0, 17])
    found = plausible_activity(counts)
    assert (found[9:] == 0).all()
    assert found.sum() == pytest.approx(counts.sum())
    np.testing.assert_allclose(found[:8], counts[:8], rtol=0.02)


def test_a_law_that_is_log_concave_stays_as_it_is():
    counts = 600 * np.exp(-0.5 * ((np.arange(14) - 5.5) / 1.7) ** 2)
    np.testing.assert_allclose(plausible_activity(counts), counts)
