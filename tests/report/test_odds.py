"""Epsilon in words: Bayes' rule by brute force, and every figure rounded to the side that promises less."""

from math import exp, log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsr.report.odds import at_least, at_most, factor, people, posterior_bounds, price, ratings_until, remaining

EPSILONS = st.floats(1e-6, 50)
PRIORS = st.floats(0.001, 0.999)


@given(PRIORS, EPSILONS)
def test_no_pair_of_likelihoods_within_epsilon_leaves_the_bounds(prior, epsilon):
    low, high = posterior_bounds(prior, epsilon)
    for log_ratio in np.linspace(-epsilon, epsilon, 7):
        odds = prior / (1 - prior) * exp(log_ratio)
        assert low * (1 - 1e-12) <= odds / (1 + odds) <= high * (1 + 1e-12)


def test_the_bounds_are_attained_and_a_twentieth_more_epsilon_would_leave_them():
    low, high = posterior_bounds(0.3, 1.0)
    odds = [0.3 / 0.7 * exp(e) for e in (-1, 1, 1.05)]
    assert [o / (1 + o) for o in odds[:2]] == pytest.approx([low, high])
    assert odds[2] / (1 + odds[2]) > high


@given(st.floats(1e-9, 1 - 1e-9))
def test_percentages_never_promise_more(probability):
    slack = 1e-12  # of a float's own rounding
    if not (up := at_most(probability)).startswith(">"):
        assert float(up.removesuffix(" %")) >= 100 * probability - slack
    assert float(at_least(probability).removesuffix(" %")) <= 100 * probability + slack


@given(st.floats(1e-9, 1e9))
def test_a_price_is_never_rounded_down_nor_by_more_than_its_last_digit(epsilon):
    shown = float(price(epsilon).replace(",", ""))
    assert shown >= epsilon
    assert shown <= epsilon * 1.0011 or shown <= epsilon + 1


@given(st.floats(0, 1e6))
def test_what_is_left_is_never_rounded_up(left):
    assert float(remaining(left)) <= left


@given(st.floats(0.001, 13))
def test_a_factor_is_never_rounded_down(epsilon):
    assert float(factor(epsilon).replace(",", "")) >= exp(epsilon)


def test_large_epsilons_have_words():
    assert factor(1000.0) == "more than a million"
    assert factor(float("inf")) == "without bound"
    assert posterior_bounds(0.5, 1e6) == (0.0, 1.0)


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 3.0, 10.0])
def test_the_number_of_ratings_that_passes_a_certainty_is_the_first_that_does(epsilon):
    k = ratings_until(0.95, epsilon)
    assert posterior_bounds(0.5, k * epsilon)[1] > 0.95
    assert k == 1 or posterior_bounds(0.5, (k - 1) * epsilon)[1] <= 0.95
    assert k == int(log(19) / epsilon) + 1


def test_people_are_a_rating_the_median_user_and_the_heaviest(release):
    counts = sorted(n for n in np.bincount(release.mask.users).tolist() if n)
    rows = people(release.certificate, release.mask.census)
    assert [row.ratings for row in rows] == [1, counts[len(counts) // 2], counts[-1]]
