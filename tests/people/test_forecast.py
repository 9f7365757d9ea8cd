"""What to expect where people are protected: which way it moves, and how near it comes to what is measured."""

import numpy as np
import pytest

from dpsr import DPSR
from dpsr.data import realistic
from dpsr.data.score import root_mean_square_error
from dpsr.people.forecast import Population, forecast, people_for_factors
from dpsr.pipeline.plan_people import plan_people

DELTA = 1e-5


@pytest.fixture(scope="module")
def known():
    return Population.declared(6_000, 4_000, 600_000)


def test_declared_totals_are_kept(known):
    assert known.people == pytest.approx(6_000)
    assert known.ratings.sum() == pytest.approx(600_000)
    assert (np.diff(known.ratings) <= 0).all()
    assert known.ratings[0] < 6_000, "nobody rates an item twice"


def test_more_budget_and_more_people_never_promise_less(known):
    by_epsilon = [forecast(known, e, DELTA).total for e in (0.1, 0.5, 1, 3, 10)]
    by_people = [forecast(known.times(f), 1.0, DELTA).total for f in (0.1, 1, 10, 100)]
    for totals in (by_epsilon, by_people):
        assert (np.diff(totals) < 1e-9).all()


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


def test_a_plan_from_the_file_is_near_what_is_measured():
    """Within 5 % here; `python -m benchmarks.people_plan` has the real sets. Twice the noise would be further off."""
    ratings = realistic(2, n_users=1_500, n_items=200, n_ratings=40_000)
    train, test = ratings.split(0.2, seed=0)
    measured = root_mean_square_error(
        test, DPSR(2.0, unit="user", delta=DELTA, random_state=0).fit(train).personalise(train).predict
    )
    plan = plan_people(ratings.scale, "2", DELTA, ratings=train)
    assert plan.rmse(plan.forecasts[0]) == pytest.approx(measured, rel=0.05)
    assert plan.raw
