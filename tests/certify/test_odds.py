"""Epsilon in words: Bayes' rule by brute force, and every figure rounded to the side that promises less."""

from math import exp, log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsr.certify.odds import (
    belief_at_least,
    belief_at_most,
    epsilon_text,
    factor_text,
    guess_right,
    left_text,
    percent_down,
    percent_up,
    ratings_until,
)

EPSILONS = st.floats(1e-6, 50)
PRIORS = st.floats(0.001, 0.999)


@given(PRIORS, EPSILONS)
def test_no_pair_of_likelihoods_within_epsilon_leaves_the_bounds(prior, epsilon):
    low, high = belief_at_least(prior, epsilon), belief_at_most(prior, epsilon)
    for log_ratio in np.linspace(-epsilon, epsilon, 7):
        odds = prior / (1 - prior) * exp(log_ratio)
        assert low <= odds / (1 + odds) * (1 + 1e-15)
        assert odds / (1 + odds) * (1 - 1e-15) <= high


def test_the_bounds_are_attained_and_a_twentieth_more_epsilon_would_leave_them():
    low, high = belief_at_least(0.3, 1.0), belief_at_most(0.3, 1.0)
    odds = [0.3 / 0.7 * exp(e) for e in (-1, 1, 1.05)]
    assert [o / (1 + o) for o in odds[:2]] == pytest.approx([low, high])
    assert odds[2] / (1 + odds[2]) > high


@given(st.floats(1e-9, 1 - 1e-9))
def test_percentages_never_promise_more(probability):
    slack = 1e-12  # of a float's own rounding
    if not (up := percent_up(probability)).startswith(">"):
        assert float(up.removesuffix(" %")) >= 100 * probability - slack
    assert float(percent_down(probability).removesuffix(" %")) <= 100 * probability + slack


@given(st.floats(1e-9, 1e9))
def test_a_price_is_never_rounded_down_nor_by_more_than_its_last_digit(epsilon):
    shown = float(epsilon_text(epsilon).replace(",", ""))
    assert shown >= epsilon
    assert shown <= epsilon * 1.0011 or shown <= epsilon + 1


@given(st.floats(0, 1e6))
def test_what_is_left_is_never_rounded_up(left):
    assert float(left_text(left)) <= left


@given(st.floats(0.001, 13))
def test_a_factor_is_never_rounded_down(epsilon):
    assert float(factor_text(epsilon).replace(",", "")) >= exp(epsilon)


def test_large_epsilons_have_words():
    assert factor_text(1000.0) == "more than a million"
    assert factor_text(float("inf")) == "without bound"
    assert belief_at_most(0.5, 1e6) == 1.0
    assert 0.0 <= belief_at_least(0.5, 1e6) < 1e-300


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 3.0, 10.0])
def test_the_number_of_ratings_that_passes_a_certainty_is_the_first_that_does(epsilon):
    k = ratings_until(0.95, epsilon)
    assert belief_at_most(0.5, k * epsilon) > 0.95
    assert k == 1 or belief_at_most(0.5, (k - 1) * epsilon) <= 0.95
    assert k == int(log(19) / epsilon) + 1


def test_a_belief_that_is_shown_is_never_the_smaller_of_two_roundings():
    """73.106 % is at most 73.11 %, never 73 %."""
    assert percent_up(belief_at_most(0.5, 1.0)) == "73.11 %"
    assert percent_down(belief_at_least(0.5, 1.0)) == "26.89 %"


def test_the_best_guess_is_found_by_trying_all_of_them():
    rng = np.random.default_rng(0)
    for _ in range(20):
        table = rng.multinomial(1 << 20, rng.dirichlet(np.ones(4)), size=5).tolist()
        right = sum(max(row[y] for row in table) for y in range(4)) / (5 * (1 << 20))
        assert right <= guess_right(table) <= right * (1 + 1e-15)
