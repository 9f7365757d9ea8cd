"""Prices are exact, and every rounding favours privacy."""

from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import pairwise, permutations
from math import inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsr.certify.amounts import float_up
from dpsr.certify.table_price import delta_of, epsilon_of, exp_down, log_up, worst_ratio

BITS = 10


def tables(least=1):
    @st.composite
    def build(draw):
        k, s = draw(st.integers(2, 4)), draw(st.integers(2, 5))
        table = []
        for _ in range(k):
            cuts = sorted(draw(st.lists(st.integers(0, 2**BITS - s * least), min_size=s - 1, max_size=s - 1)))
            edges = [0, *cuts, 2**BITS - s * least]
            table.append([b - a + least for a, b in pairwise(edges)])
        return table

    return build()


def slow_ratio(table):
    """The oracle: every pair of rows, every column, in fractions."""
    return max(
        Fraction(table[x][y], table[z][y]) for x, z in permutations(range(len(table)), 2) for y in range(len(table[0]))
    )


def slow_delta(table, factor):
    return max(
        sum(max(Fraction(0), Fraction(a) - factor * b) for a, b in zip(table[x], table[z], strict=True))
        for x, z in permutations(range(len(table)), 2)
    ) / Fraction(2**BITS)


def e_to(epsilon):
    """e^epsilon to ninety digits."""
    with localcontext() as context:
        context.prec = 90
        return Fraction(Decimal(epsilon).exp())


@given(tables())
def test_epsilon_is_the_worst_log_ratio_over_all_pairs_and_symbols(table):
    assert worst_ratio(table) == slow_ratio(table)


@given(tables())
def test_epsilon_is_never_understated_and_tight_to_the_last_digit(table):
    ratio = slow_ratio(table)
    with localcontext() as context:
        context.prec = 80
        exact = (Decimal(ratio.numerator) / Decimal(ratio.denominator)).ln()
    epsilon = epsilon_of(table)
    assert Decimal(epsilon) >= exact
    assert epsilon <= float(exact) * (1 + 1e-15) + 1e-50


@given(tables(least=0), st.floats(0, 4))
@settings(max_examples=200)
def test_delta_is_the_hockey_stick_sum_and_errs_only_upwards(table, epsilon):
    delta = delta_of(table, BITS, epsilon)
    assert Fraction(delta) >= slow_delta(table, e_to(epsilon) * (1 + Fraction(1, 10**80)))
    assert delta <= float_up(slow_delta(table, exp_down(epsilon)))


@given(tables())
def test_delta_vanishes_just_above_epsilon_and_not_below_it(table):
    epsilon = epsilon_of(table)
    assert delta_of(table, BITS, epsilon + 1e-12) == 0
    if epsilon > 1e-6:
        assert delta_of(table, BITS, epsilon - 1e-6) > 0


def test_an_output_that_rules_a_level_out_costs_infinitely_much():
    table = [[1024, 0], [512, 512]]
    assert epsilon_of(table) == inf
    assert delta_of(table, BITS, 20.0) == 0.5


def test_an_output_that_never_happens_costs_nothing():
    assert epsilon_of([[512, 512, 0], [512, 512, 0]]) == 0


@pytest.mark.parametrize("ratio", [Fraction(3), Fraction(2**60 + 1, 2**60), Fraction(10**18, 7)])
def test_logarithms_round_up_by_less_than_one_float(ratio):
    up = log_up(ratio)
    with localcontext() as context:
        context.prec = 80
        exact = (Decimal(ratio.numerator) / Decimal(ratio.denominator)).ln()
    assert Decimal(up) >= exact
    assert Decimal(np.nextafter(up, -inf)) < exact


def test_exponentials_round_down_by_next_to_nothing():
    for epsilon in (0.01, 1.0, 20.0):
        assert e_to(epsilon) * (1 - Fraction(1, 10**50)) < exp_down(epsilon) < e_to(epsilon)
