"""Amounts: exact as they were written, and on the safe side where they are shown."""

import sys
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsr.certify.amounts import LONGEST, as_written, exact, float_below, written_down, written_up
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
