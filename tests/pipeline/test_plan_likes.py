"""Plans of interactions: what lists would be worth, as the rule that spends the budget expects it."""

import numpy as np
import pytest

from dpsr import Interactions
from dpsr.data import realistic
from dpsr.errors import DpsrError
from dpsr.pipeline.plan_likes import MOST_MADE_UP, plan_likes

DELTA = 1e-5


def people(n_users, seed=0):
    table = realistic(seed, n_users=n_users, n_items=150, n_ratings=15 * n_users, selection=1.5)
    return Interactions.of_mask(table.mask, "made up")


@pytest.fixture(scope="module")
def crowd():
    return people(500)


@pytest.fixture(scope="module")
def plan(crowd):
    return plan_likes("0.1,1,10", DELTA, likes=crowd)


def test_more_budget_keeps_more_of_popularity_and_finds_more_taste(plan):
    least, some, much = plan.forecasts
    assert least.lists < some.lists < much.lists
    assert least.popularity < 0.9 < much.popularity <= 1
    assert least.taste <= some.taste <= much.taste
    assert least.lists == least.popularity * least.taste


def test_where_noise_drowns_everything_nothing_is_promised():
    """The rule that divides the budget believes there that all items are equally popular, and nothing lost."""
    few = Interactions.of_mask(realistic(0, n_users=200, n_items=50, n_ratings=1_800, selection=1.5).mask, "made up")
    least, some, much = plan_likes("0.1,0.5,3", DELTA, likes=few).forecasts
    assert least.popularity < 0.85 < some.popularity < much.popularity
    assert least.lists < some.lists < much.lists


def test_lists_of_items_that_must_be_named_first_are_worth_less_most_so_with_little_budget(plan):
    least, _, much = plan.forecasts
    assert least.unlisted < 0.5 * least.lists
    assert 0.8 * much.lists < much.unlisted <= 1.02 * much.lists


def test_what_noise_leaves_of_popularity_is_what_noisy_counts_would_keep(crowd, plan):
    """The oracle: lists of twenty by noisy counts of the crowd itself, by the popularity they have, over many draws."""
    forecast = plan.forecasts[1]
    exact = np.zeros(150)
    lengths = np.diff(crowd.mask.indptr)
    np.add.at(exact, crowd.mask.items, np.repeat(1 / np.sqrt(lengths), lengths))
    rng, best = np.random.default_rng(0), np.sort(exact)[::-1][:75].sum()
    noise = 1 / (0.27 * np.sqrt(0.5))  # of mu-GDP at epsilon = 1, delta = 1e-5, with half of mu^2 on counts
    kept = [exact[np.argsort(-(exact + noise * rng.normal(size=150)))[:75]].sum() / best for _ in range(50)]
    assert forecast.popularity == pytest.approx(np.mean(kept), abs=0.08)


def test_a_plan_of_totals_reads_nothing_and_says_so_and_one_of_a_file_is_not_private(plan):
    planned = plan_likes("1", DELTA, totals=(500, 150, 7_500))
    assert planned.to_dict()["private"]
    assert not plan.to_dict()["private"]
    assert planned.forecasts[0].lists == pytest.approx(plan.forecasts[1].lists, rel=0.15)


def test_single_interactions_are_cheaper_to_protect_than_whole_people(crowd, plan):
    assert plan_likes("1", DELTA, unit="rating", likes=crowd).forecasts[0].lists > plan.forecasts[1].lists


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"epsilons": "1", "delta": None, "totals": (9, 9, 9)}, "needs a delta"),
        ({"epsilons": "1", "delta": DELTA}, "needs totals"),
        ({"epsilons": "1", "delta": DELTA, "totals": (9, 9, 100)}, "cannot be"),
        ({"epsilons": "1", "delta": DELTA, "totals": (10**6, 10**6, MOST_MADE_UP + 1)}, "part of the people"),
        ({"epsilons": "1", "delta": DELTA, "unit": "value", "totals": (9, 9, 9)}, "would publish every row"),
        ({"epsilons": "-1", "delta": DELTA, "totals": (9, 9, 9)}, "epsilon"),
    ],
)
def test_what_cannot_be_planned_is_refused_with_what_to_do(arguments, words):
    with pytest.raises(DpsrError, match=words):
        plan_likes(**arguments)
