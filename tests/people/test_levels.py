"""Levels of people: planted totals come back without noise, and beliefs where noise drowns everything."""

import numpy as np
import pytest

from dpsr.certify.one_rating import LEVELS_RAMP
from dpsr.people.levels import (
    LEVEL_VARIANCE,
    SPREAD,
    PeopleLevels,
    Totals,
    Weights,
    pooled,
    read_counts,
    read_levels,
)
from dpsr.types.item_side import ACTIVITY_BINS, CENTRE, SIZES

PEOPLE, SPREAD2, BETWEEN = 50_000.0, 0.09, 0.03
COUNTS = PEOPLE * np.array([1, 2, 4, 6, 5, 3, 2, 1, *np.zeros(ACTIVITY_BINS - 8)]) / 24
LEVELS = 0.1 - 0.02 * np.arange(ACTIVITY_BINS)


def planted():
    """Totals and table of people whose levels, spread and numbers of ratings are these."""
    mix = COUNTS / PEOPLE
    a = mix @ LEVELS
    square = mix @ (LEVELS**2 + BETWEEN + SPREAD2 / SIZES)
    nu = mix @ ((SIZES - 1) / (SIZES + 1))
    totals = PEOPLE * np.array([1, a, square, nu * SPREAD2, nu])
    return totals, np.column_stack([COUNTS, COUNTS * LEVELS])


def of_people(totals, noise):
    return Totals.of_people([(totals, noise)])


def planted_ratings():
    """The same people, drawn one by one, asked for at the unit `rating`: what the vault adds up, and the table."""
    rng = np.random.default_rng(0)
    octave = np.repeat(np.arange(ACTIVITY_BINS), COUNTS.astype(int))
    n = np.concatenate([_drawn(rng, k, many) for k, many in enumerate(COUNTS.astype(int))])
    means = LEVELS[octave] + rng.normal(size=len(n)) * np.sqrt(BETWEEN + SPREAD2 / n)
    within = SPREAD2 * rng.chisquare(np.maximum(n - 1, 1e-9))
    c, q = LEVELS_RAMP / (n + LEVELS_RAMP), 0.4
    numbers = [c * n, c * n * means, q * c * n * means**2, q * c * within, q * c * (n - 1), n / 10]
    table = np.column_stack([np.bincount(octave, w, ACTIVITY_BINS) for w in (np.ones(len(n)), means)])
    return np.array([one.sum() for one in numbers]), table, int(n.sum())


def _drawn(rng, k, many):
    """Numbers of ratings in an octave, with a density ~ 1/n."""
    numbers = np.arange(1 << k, 2 << k)
    return rng.choice(numbers, many, p=(1 / numbers) / (1 / numbers).sum())


def test_levels_of_ratings_come_back_without_noise():
    totals, table, _ = planted_ratings()
    found = read_levels(Totals.of_ratings([(totals, 1e-3)]), table, 1e-3)
    assert found.people == pytest.approx(PEOPLE, rel=0.02)
    np.testing.assert_allclose(found.counts, table[:, 0], rtol=0.02, atol=1)
    np.testing.assert_allclose(found.level[:8], CENTRE + LEVELS[:8], atol=0.01)
    assert found.spread == pytest.approx(np.sqrt(SPREAD2), rel=0.02)
    assert found.variance == pytest.approx(BETWEEN / SPREAD2, rel=0.1)


@pytest.mark.parametrize("seed", range(3))
def test_where_noise_drowns_numbers_by_activity_the_number_of_ratings_still_says_how_active_people_are(seed):
    """Noise of a tenth of all people in every octave: by itself it would put thousands at thousands of ratings."""
    totals, table, ratings = planted_ratings()
    noise = 0.1 * PEOPLE
    noisy = table + noise * np.random.default_rng(seed).normal(size=table.shape)
    found = read_levels(Totals.of_ratings([(totals, 100.0)]), noisy, noise)
    assert found.ratings.sum() == pytest.approx(ratings, rel=0.3)
    assert found.people == pytest.approx(PEOPLE, rel=0.3)
    assert noisy[:, 0] @ SIZES > 5 * ratings or noisy[:, 0] @ SIZES < 0


def test_numbers_by_activity_are_believed_as_far_as_they_are_no_noise():
    """People of two kinds, which no log-normal law has: without noise they come back."""
    totals, table, _ = planted_ratings()
    table[2], table[3] = 0.0, table[3] + table[2]
    found = read_counts(Totals.of_ratings([(totals, 1e-3)]), table[:, 0], 1e-3)
    np.testing.assert_allclose(found / found.sum(), table[:, 0] / table[:, 0].sum(), atol=1e-3)


def test_answers_of_ratings_come_out_of_their_weights():
    found = Totals.of_ratings([(np.ones(6), 1.0)])
    assert found.weight == 1.0
    assert found.level_error == pytest.approx(1 / LEVELS_RAMP)
    assert found.ratings == (pytest.approx(10.0), pytest.approx(10.0))


def test_without_noise_planted_totals_come_back():
    totals, table = planted()
    found = read_levels(of_people(totals, 1e-3), table, 1e-3)
    assert found.people == pytest.approx(PEOPLE)
    np.testing.assert_allclose(found.counts, COUNTS, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(found.level[:8], CENTRE + LEVELS[:8], atol=0.01)
    assert found.spread == pytest.approx(np.sqrt(SPREAD2), rel=0.02)
    assert found.variance == pytest.approx(BETWEEN / SPREAD2, rel=0.1)


def test_a_planted_twentieth_more_spread_would_be_seen():
    totals, table = planted()
    found = read_levels(of_people(totals * [1, 1, 1, 1.1025, 1], 1e-3), table, 1e-3)
    assert found.spread != pytest.approx(np.sqrt(SPREAD2), rel=0.02)


@pytest.mark.parametrize("seed", range(5))
def test_where_noise_drowns_everything_beliefs_are_kept(seed):
    """Answers that are noise alone, ten thousand times the people there are."""
    rng, noise = np.random.default_rng(seed), 1e6
    totals = of_people(np.array([100.0, 0, 0, 0, 0]) + noise * rng.normal(size=5), noise)
    found = read_levels(totals, noise * rng.normal(size=(ACTIVITY_BINS, 2)), noise)
    assert np.abs(found.level - CENTRE).max() < 0.35
    assert SPREAD / 2.5 < found.spread < 2.5 * SPREAD
    assert LEVEL_VARIANCE / 5 < found.variance < 5 * LEVEL_VARIANCE
    assert found.counts.sum() == pytest.approx(found.people)
    assert (found.counts >= 0).all()


@pytest.mark.parametrize("seed", range(5))
def test_people_whom_noise_puts_at_thousands_of_ratings_are_not_most_ratings(seed):
    """3,000 people with at most fifteen ratings each, and noise of a dozen people in every octave."""
    rng, people, noise = np.random.default_rng(seed), 3_000.0, 12.0
    truth = people * np.array([0.15, 0.4, 0.35, 0.1, *np.zeros(ACTIVITY_BINS - 4)])
    table = np.column_stack([truth, 0.1 * truth]) + noise * rng.normal(size=(ACTIVITY_BINS, 2))
    totals = of_people(people * np.array([1, 0.1, 0.07, 0.03, 0.4]), noise)
    found = read_levels(totals, table, noise)
    assert found.ratings.sum() == pytest.approx(truth @ SIZES, rel=0.1)


def test_more_noise_never_makes_levels_wilder():
    totals, table = planted()
    spreads = []
    for noise in (1e-3, 1e3, 1e5):
        found = read_levels(of_people(totals, noise), table, noise)
        spreads.append(np.abs(found.level - CENTRE).max())
    assert spreads[2] < spreads[0] + 1e-6


def test_pooled_answers_are_the_precision_weighted_mean():
    """Oracle: weighted least squares of a constant."""
    rng = np.random.default_rng(0)
    asked = [(rng.normal(size=5), 2.0), (rng.normal(size=5), 0.5), (rng.normal(size=5), 1.0)]
    values, noise = pooled(asked)
    design = np.array([[1 / noise] for _, noise in asked])
    right = np.array([values / noise for values, noise in asked])
    expected, *_ = np.linalg.lstsq(design, right, rcond=None)
    np.testing.assert_allclose(values, expected[0])
    assert noise == pytest.approx(1 / np.sqrt((design**2).sum()))


def test_weights_are_those_of_people_drawn_by_activity():
    """Oracle: the sums written out, below and above the floor."""
    levels = PeopleLevels(PEOPLE, COUNTS, CENTRE + LEVELS, 0.3, 0.3)
    w = 1 / np.sqrt(np.maximum(1.5 * SIZES, 8.0))
    found = Weights.of(levels, 1.5, 8.0)
    assert found.mean == pytest.approx((COUNTS * SIZES * w).sum() / (COUNTS * SIZES).sum())
    assert found.kappa == pytest.approx((COUNTS * SIZES * w**2).sum() / (COUNTS * SIZES * w).sum())
    assert found.most == pytest.approx((COUNTS * w).sum())


@pytest.mark.parametrize("known", [0.1, 0.5, 0.9])
def test_what_is_known_behind_a_rating_is_more_than_on_average_because_active_people_know_more(known):
    levels = PeopleLevels(PEOPLE, COUNTS, CENTRE + LEVELS, 0.3, 0.3)
    assert known < levels.known_per_rating(known) <= 1


@pytest.mark.parametrize("seed", range(20))
def test_whatever_noise_answers_at_the_unit_rating_there_are_people_and_finite_levels(seed):
    """A hundred people, and noise of up to a hundred million of them: nothing may fail after it was paid for."""
    rng, noise = np.random.default_rng(seed), 10.0 ** (seed % 5 + 4)
    table = noise * rng.normal(size=(ACTIVITY_BINS, 2)) - 30 * noise * (seed % 2)
    found = read_levels(Totals.of_ratings([(noise * rng.normal(size=6), noise)]), table, noise)
    assert found.people >= 1
    assert (found.counts >= 0).all()
    assert np.isfinite([*found.level, found.spread, found.variance]).all()
