"""What to expect where people are protected: which way it moves, and how near it comes to what is measured."""

import numpy as np
import pytest

from dpsr import DPSR
from dpsr.certify.one_rating import WIDTH
from dpsr.data import realistic
from dpsr.data.raw_statistics import root_mean_square_error
from dpsr.engine.raw import RawTable
from dpsr.people import budget
from dpsr.people.budget import moments_larger, rating_weights
from dpsr.people.cells import MOST_CELLS
from dpsr.people.forecast import Population, _AskingRatings, forecast, people_for_factors
from dpsr.pipeline.plan_people import plan_people
from dpsr.privacy.noise import NoiseSource
from dpsr.privacy.vault.people import RatingVault

DELTA = 1e-5


@pytest.fixture(scope="module")
def known():
    return Population.declared(6_000, 4_000, 600_000)


def test_declared_totals_are_kept(known):
    assert known.people == pytest.approx(6_000)
    assert known.ratings.sum() == pytest.approx(600_000)
    assert (np.diff(known.ratings) <= 0).all()
    assert known.ratings[0] < 6_000, "nobody rates an item twice"


@pytest.mark.parametrize("unit", ["user", "rating"])
def test_more_budget_and_more_people_never_promise_less(known, unit):
    by_epsilon = [forecast(known, e, DELTA, unit=unit).total for e in (0.1, 0.5, 1, 3, 10)]
    by_people = [forecast(known.times(f), 1.0, DELTA, unit=unit).total for f in (0.1, 1, 10, 100)]
    for totals in (by_epsilon, by_people):
        assert (np.diff(totals) < 1e-9).all()


def test_protecting_a_rating_costs_less_than_protecting_a_person_with_a_hundred(known):
    for epsilon in (0.5, 2.0, 10.0):
        assert forecast(known, epsilon, DELTA, unit="rating").total < forecast(known, epsilon, DELTA).total


def test_second_moments_at_the_unit_rating_are_planned_with_the_noise_that_the_vault_would_draw():
    """The oracle is the vault itself, asked what its noise would be."""
    ratings = realistic(1, n_users=50, n_items=30, n_ratings=400)
    vault = RatingVault(RawTable.of(ratings), 2.0, DELTA, noise=NoiseSource.seeded(0))
    levels = Population.declared(5_000, 3_000, 200_000).as_levels()
    larger = moments_larger(levels, rating_weights(levels, 0.0, WIDTH))
    drawn = vault.moments_noise(budget.MOMENTS, MOST_CELLS) / larger
    assert _AskingRatings(levels).moments_noise(vault.mu) == pytest.approx(drawn, rel=1e-6)


def test_without_budget_for_items_own_means_are_left(known):
    """An extremal example: next to no epsilon, so all of the effects' variance is left."""
    found = forecast(known, 1e-3, DELTA)
    assert found.items == pytest.approx(known.effect_variance, rel=0.02)
    assert not found.factors


def test_the_number_of_people_for_factors_is_where_they_begin_to_pay(known):
    needed = people_for_factors(known, 3.0, DELTA)
    below, above = (forecast(known.times(f * needed / known.people), 3.0, DELTA).factors for f in (0.97, 1.03))
    assert (below, above) == (False, True)
    assert people_for_factors(known, 1.0, DELTA) > 2 * needed
    assert people_for_factors(known, 3.0, DELTA, declared=True) < needed, "a declared list has no empty cells"


@pytest.mark.parametrize("unit", ["user", "rating"])
def test_a_plan_from_the_file_is_near_what_is_measured(unit):
    """Within 5 % here; `python -m benchmarks.people_plan` has the real sets. Twice the noise would be further off."""
    ratings = realistic(2, n_users=1_500, n_items=200, n_ratings=40_000)
    train, test = ratings.split(0.2, seed=0)
    measured = root_mean_square_error(
        test, DPSR(2.0, unit=unit, delta=DELTA, random_state=0).fit(train).personalise(train).predict
    )
    plan = plan_people(ratings.scale, "2", DELTA, unit=unit, ratings=train)
    assert plan.rmse(plan.forecasts[0]) == pytest.approx(measured, rel=0.05)
    assert plan.raw
