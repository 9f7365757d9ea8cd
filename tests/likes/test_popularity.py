"""Popularity from rounds of counts, and what is asked next."""

from dataclasses import replace

import numpy as np
import pytest

from dpsr.likes import plan
from dpsr.likes.activity import Activity
from dpsr.likes.forecast import favour_of
from dpsr.likes.plan import Loss, Prospect
from dpsr.likes.popularity import Popularity
from dpsr.types.item_side import ACTIVITY_BINS, SIZES


def rounds(*asked, n=50):
    found = Popularity.none(n)
    for cells, values, noise in asked:
        found = found.add(np.asarray(cells), np.asarray(values, float), noise)
    return found


def test_two_rounds_over_the_same_cells_are_their_precision_weighted_mean():
    y, z = np.linspace(10, 1, 50), np.linspace(10, 1, 50)[::-1] * 0 + 5.5
    found = rounds((range(50), y, 1.0), (range(50), z, 0.5))
    np.testing.assert_allclose(found.weighted / found.precision, (y + 4 * z) / 5)
    np.testing.assert_allclose(found.deviation, 5**-0.5)


def test_a_round_over_fewer_cells_is_read_in_units_of_the_first_and_tells_more():
    """Its weights are twice as large, so its noise is half as much."""
    y = np.linspace(10, 1, 50)
    found = rounds((range(50), y, 1.0), (range(10), 2 * y[:10], 1.0))
    np.testing.assert_allclose(found.estimate[:10], y[:10])
    np.testing.assert_allclose(found.precision[:10], 5.0)


def test_a_cell_that_was_left_out_is_not_above_one_that_was_kept():
    y = np.ones(50)
    y[30] = 9.0
    found = rounds((range(50), y, 1.0), (range(10), np.full(10, 1.0), 0.1))
    assert found.estimate[30] <= found.estimate[:10].min()
    assert (found.shown > 0).all()


def test_rounds_narrow_to_a_half_and_end_with_the_cells_that_must_be_told_apart():
    n = 9_000
    loud = Popularity.none(n).add(np.arange(n), np.linspace(90, 0, n), 1.0)
    assert len(plan.next_cells(loud, n)) == n // 2
    assert len(plan.next_cells(loud.add(np.arange(400), np.ones(400), 1.0), n)) == 200
    assert len(plan.next_cells(loud.add(np.arange(120), np.ones(120), 1.0), n)) == plan.RANK
    assert plan.rank_of(1) == 1


@pytest.mark.parametrize("n", [2, 40, 2 * plan.RANK])
def test_all_of_a_small_catalogue_is_asked_in_every_round(n):
    """Half of it is what must be told apart: no later round could bring back what one round's noise put outside."""
    loud = Popularity.none(n).add(np.arange(n), np.linspace(9, 1, n), 1.0)
    again = loud.add(plan.next_cells(loud, n), np.linspace(9, 1, n), 1.0)
    for one in (loud, again):
        np.testing.assert_array_equal(plan.next_cells(one, n), np.arange(n))


@pytest.mark.parametrize(("octave", "narrows"), [(0, False), (8, True)])
def test_rounds_narrow_only_where_people_weigh_more_among_fewer_cells(octave, narrows):
    """Whoever has one interaction weighs the same wherever it is: half of the cells would be dropped for nothing."""
    n, people = 6_000, np.zeros(ACTIVITY_BINS)
    people[octave] = 3_000.0
    truth = 2_000.0 / (10 + np.arange(n))
    loud = Popularity.none(n).add(np.arange(n), truth + np.random.default_rng(0).normal(0, 100, n), 100.0)
    outlook = plan.Outlook(Activity(people), "user", 0.8, 100.0**-2 / plan.ROUND)
    assert len(plan.next_cells(loud, n, outlook)) == (n // 2 if narrows else n)
    alone = plan.Outlook(Activity(people), "rating", 0.8, 100.0**-2 / plan.ROUND)
    assert len(plan.next_cells(loud, n, alone)) == n, "an interaction counts whole there, whatever else was done"


def test_an_interaction_weighs_more_among_fewer_cells_by_what_else_its_person_has_there():
    """Oracle: people with n of the cells, a share of which is asked about."""
    rng, people = np.random.default_rng(0), np.zeros(ACTIVITY_BINS)
    people[[0, 4]] = 500.0, 300.0
    sums = np.zeros(2)
    for n, many in ((1, 500), (int(SIZES[4]), 300)):
        there = rng.binomial(n, 0.3, size=many * 40)
        sums += np.sqrt(there).sum() / 40, 0.3 * n / np.sqrt(n) * many
    assert Activity(people).weight(0.3) == pytest.approx(sums[0] / sums[1], rel=0.05)
    assert Activity(people).weight(1.0) == pytest.approx(1.0)
    people[4] = 0.0
    assert Activity(people).weight(0.1) == pytest.approx(1.0)
    assert Activity(people).in_company == 0.0


def test_more_rounds_are_expected_to_find_more_and_what_they_find_is_there():
    """Oracle: the truth, read again."""
    n, rng = 1_000, np.random.default_rng(1)
    truth = 500.0 / (5 + np.arange(n))
    one = Popularity.none(n).add(np.arange(n), truth + rng.normal(0, 8, n), 8.0).with_total(truth.sum())
    masses = [one.mass_after(100, sizes, lambda _: 8.0**-2) for sizes in ([], [n], [n, n, n])]
    assert masses == sorted(masses)
    again = one
    for _ in range(3):
        again = again.add(np.arange(n), truth + rng.normal(0, 8, n), 8.0)
    assert masses[2] == pytest.approx(truth[again.order[:100]].sum(), rel=0.1)


def test_the_loss_by_noise_in_counts_is_what_the_best_guess_misses_of_the_truth():
    """Oracle: the truth itself, from which the noisy counts were drawn; what one draw misses varies, so six are."""
    truth = 25.0 / (1 + 0.05 * np.arange(3_000)) ** 1.2
    losses = []
    for noise in (0.2, 1.0, 4.0):
        expected, missed = [], []
        for seed in range(6):
            y = truth + np.random.default_rng(seed).normal(0, noise, 3_000)
            found = Popularity.none(3_000).add(np.arange(3_000), y, noise)
            expected.append(found.loss(100))
            missed.append(1 - truth[np.argsort(-y)[:100]].sum() / truth[:100].sum())
            assert 0 <= found.losses(100, [np.arange(300)])[0] <= found.loss(100)
            assert found.losses(100, [np.arange(3_000)])[0] == pytest.approx(0.0, abs=1e-9)
        assert np.mean(expected) == pytest.approx(np.mean(missed), abs=0.05)
        losses.append(np.mean(expected))
    assert losses == sorted(losses)
    assert losses[0] < plan.KNOWN_WELL < losses[1]


def test_what_lists_are_worth_before_and_after_a_round_follows_by_hand():
    loss, spent = Loss(0.2, 0.05, 0.2), 0.24
    assert Prospect(1.1, 50).worth(loss, spent) == pytest.approx(0.8 * 1.1)
    assert Prospect(1.1, 50).worth_later(loss, spent) == pytest.approx((1 - 0.05 - 0.15 * 0.24 / 0.36) * 1.1)
    nothing_to_repair = Loss(0.4, 0.4, 0.4)
    assert Prospect(1.1, 50).worth_later(nothing_to_repair, spent) == Prospect(1.1, 50).worth(nothing_to_repair, spent)


def test_names_are_counts_of_the_cells_that_they_are_in():
    """A loss that names cannot repair is what no weight of a named item tells; a round of counts repairs both."""
    loss, spent, names = Loss(0.4, 0.1, 0.3), 0.12, 0.5
    assert loss.after_names(spent, names) == pytest.approx(0.3 + 0.1 * 0.12 / 0.62)
    after = loss.after_round(spent, plan.ROUND)
    assert (after.now, after.unnamed) == pytest.approx((0.25, 0.2))
    assert loss.after_names(spent, 0.0) == loss.now


def test_drowned_cells_add_up_to_what_there_is():
    """Without the total a law over many cells below the noise believes in several times as much."""
    truth = np.concatenate([np.linspace(60, 20, 40), np.full(2_000, 0.5), np.zeros(18_000)])
    noisy = truth + np.random.default_rng(5).normal(0, 10, len(truth))
    found = Popularity.none(len(truth)).add(np.arange(len(truth)), noisy, 10.0)
    told = found.with_total(1.1 * truth.sum())
    assert told.believed.sum() == pytest.approx(truth.sum(), rel=0.25)
    assert told.possible.sum() == pytest.approx(truth.sum(), rel=0.35)
    assert replace(found, total=1e9).believed.sum() > 2 * truth.sum(), "the planted error: a total nobody has"
    np.testing.assert_allclose(np.sort(told.believed)[-20:].mean(), truth[:20].mean(), rtol=0.25)


def test_the_better_known_of_two_totals_weighs_more():
    y = np.full(10_000, 1.0)
    clear, drowned = (Popularity.none(10_000).add(np.arange(10_000), y, noise) for noise in (0.01, 100.0))
    assert clear.with_total(5_000).total == pytest.approx(10_000, rel=0.01)
    assert drowned.with_total(5_000).total == pytest.approx(5_000, rel=0.05)


def test_activity_counts_people_and_fades_below_its_noise():
    counts = np.zeros(ACTIVITY_BINS)
    counts[3] = 100.0
    exact = Activity.of(counts, 1e-9)
    assert exact.people == exact.pairs == pytest.approx(100.0)
    assert exact.interactions == pytest.approx(100 * SIZES[3])
    assert Activity.of(-counts, 1.0).people == 1.0
    everywhere = np.full(ACTIVITY_BINS, 50.0)
    assert np.flatnonzero(Activity.of(everywhere, 1.0, 300).counts)[-1] == 8, "256 to 511: nobody has 512 of 300 cells"
    assert np.flatnonzero(Activity.of(everywhere, 1.0, 255).counts)[-1] == 7
    assert Activity.of(np.full(ACTIVITY_BINS, 0.1), 10.0).people == 1.0


def test_the_scale_of_second_moments_is_what_drawn_people_have():
    """Oracle: rows of people with n of T cells, drawn by popularity; n^2 c^2 of each by its definition."""
    rng = np.random.default_rng(0)
    T, n = 60, int(SIZES[3])
    centre = rng.dirichlet(np.ones(T))
    favour = favour_of(centre)
    total = 0.0
    for _ in range(400):
        x = np.zeros(T)
        x[np.argsort(rng.exponential(size=T) / centre)[:n]] = 1
        r = favour * (x - n * centre)
        total += n * n / np.sqrt((r @ r) ** 2 - (r**4).sum())
    counts = np.zeros(ACTIVITY_BINS)
    counts[3] = 400
    found = Activity(counts).squares(centre, favour) * (n / SIZES[3]) ** 2
    assert found == pytest.approx(total, rel=0.15)


def test_posterior_means_are_those_of_the_law_that_popularities_have():
    """The oracle: two values, of known shares, read with noise; Bayes' rule by hand."""
    rng = np.random.default_rng(0)
    truth = np.where(rng.random(4_000) < 0.1, 6.0, 0.0)
    y = truth + rng.normal(size=4_000)
    found = Popularity.none(4_000).add(np.arange(4_000), y, 1.0).believed
    odds = 0.1 / 0.9 * np.exp(6 * y - 18)
    exact = 6 * odds / (1 + odds)
    assert np.abs(found - exact).mean() < 0.15
    assert ((found - truth) ** 2).mean() < 1.5 * ((exact - truth) ** 2).mean() < 0.1 * ((y - truth) ** 2).mean()


def test_the_luckiest_of_many_drowned_cells_is_not_believed():
    """What made the number of frequent cells swing: the tallest noise of ten thousand cells stood for popularity."""
    rng = np.random.default_rng(1)
    found = Popularity.none(10_000).add(np.arange(10_000), rng.normal(size=10_000), 1.0)
    assert found.estimate.max() > 3.5
    assert found.believed.max() < 0.5
    assert found.believed.min() >= 0


def test_posterior_means_keep_the_sum_of_what_was_there_and_read_rounds_of_several_precisions():
    rng = np.random.default_rng(2)
    truth = 200 / (10 + np.arange(3_000.0))
    one = Popularity.none(3_000).add(np.arange(3_000), truth + rng.normal(size=3_000), 1.0)
    cells = plan.next_cells(one, 3_000)
    two = one.add(cells, truth[cells] + 0.3 * rng.normal(size=len(cells)), 0.3)
    assert two.believed.sum() == pytest.approx(truth.sum(), rel=0.1)
    assert ((two.believed - truth) ** 2).sum() < 0.8 * ((two.shown - truth) ** 2).sum()


def test_second_moments_get_everything_at_once_only_where_more_counts_would_change_no_list():
    y = 400.0 / (10 + np.arange(3_000))
    known, roughly = (Popularity.none(3_000).add(np.arange(3_000), y, noise) for noise in (0.02, 5.0))
    assert plan.first_moments(known, 3_000) == 1.0
    assert plan.first_moments(roughly, 3_000) == plan.FIRST_MOMENTS
