"""Amounts: exact as they were written, on the safe side where they are shown; as odds, Bayes' rule by brute force."""

import sys
from decimal import Decimal
from fractions import Fraction
from math import exp, log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsr.certify.amounts import (
    LONGEST,
    as_written,
    belief_at_least,
    belief_at_most,
    epsilon_text,
    exact,
    factor_text,
    float_below,
    guess_right,
    left_text,
    percent_down,
    percent_up,
    ratings_until,
    written_down,
    written_up,
)
from dpsr.errors import PrivacyError


@settings(max_examples=200, deadline=None)
@given(st.lists(st.floats(1e-9, 50), min_size=1, max_size=12))
def test_sums_of_prices_are_exact_and_are_shown_on_the_safe_side(prices):
    total = sum((exact(price, "epsilon") for price in prices), Fraction(0))
    assert total == sum(Decimal(price).as_integer_ratio()[0] * Fraction(1, Decimal(price).as_integer_ratio()[1])
                        for price in prices)  # fmt: skip
    assert Fraction(written_down(total)) <= total <= Fraction(written_up(total))
    assert Fraction(float_below(total)) <= total
    assert float_below(total) >= float(total) * (1 - 1e-15)


@settings(max_examples=300, deadline=None)
@given(st.fractions(0, 1), st.integers(-400, 100))
def test_amounts_of_every_size_are_shown_on_the_safe_side_and_within_a_millionth(share, place):
    """Also where a float has fewer digits or none: a price of 1e-400 is not shown as 0."""
    amount = share * Fraction(10) ** place
    low, high = Fraction(written_down(amount)), Fraction(written_up(amount))
    assert low <= amount <= high
    assert high - low <= amount / 10**5


@given(st.floats(1e-300, 1e300))
def test_amounts_are_written_as_floats_are(number):
    for text in (written_down(Fraction(number)), written_up(Fraction(number))):
        assert text == f"{float(text):g}"


@given(st.floats(1e-6, 50))
def test_a_number_as_it_was_written_is_the_shortest_decimal_of_its_float(price):
    assert float(as_written(price)) == price
    assert as_written(0.1) == Fraction(1, 10)


@pytest.mark.parametrize(
    ("amount", "value"),
    [
        *(("0.1", Fraction(1, 10)), (Decimal("0.1"), Fraction(1, 10)), (0.1, Fraction(0.1)), (0, Fraction(0))),
        *((2**60 + 1, Fraction(2**60 + 1)), (np.int64(2**60 + 1), Fraction(2**60 + 1))),
        *((np.float32(0.1), Fraction(float(np.float32(0.1)))), (Fraction(1, 3), Fraction(1, 3))),
        (5e-324, Fraction(1, 2**1074)),
    ],
)
def test_an_amount_is_taken_exactly(amount, value):
    assert exact(amount, "epsilon") == value


@pytest.mark.parametrize(
    "amount",
    [
        *(True, np.bool_(True), None, [1], "", "one", "nan", "inf", "-inf", "sNaN", float("nan"), float("inf")),
        *(-1, "-0.1", -1e-300, Fraction(-1, 3), 10**101, 10**5000, -(10**5000), "1e101", "1e999999999", "1e-401"),
        *("9" * 401, "0." + "3" * 401, Fraction(1, 3**5000), 1 + 0j, b"1"),
    ],
    ids=lambda amount: type(amount).__name__,
)
def test_what_is_no_amount_is_refused_in_a_short_sentence(amount):
    with pytest.raises(PrivacyError, match=r"epsilon is a finite number.*Write it like 0\.5") as refused:
        exact(amount, "epsilon")
    assert len(str(refused.value)) < 220


def test_the_longest_amounts_that_are_taken_fit_into_a_ledger():
    for amount in ("0." + "0" * 399 + "3" * 400, 5e-324, sys.float_info.min, 1.1e-300):
        assert len(str(exact(amount, "epsilon"))) <= LONGEST


def test_what_is_above_every_float_is_the_largest_one():
    assert float_below(Fraction(10**400)) == sys.float_info.max


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
