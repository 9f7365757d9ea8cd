"""Lower bounds for normal noise and for one run: their risk, and how near they come."""

from fractions import Fraction
from math import comb, exp

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import binom

from dpsr.audit.bounds import epsilon_of_mu, epsilon_of_one_run, mu_at_least, surprise


def test_the_bound_on_mu_holds_at_its_risk_whatever_event_is_counted():
    """The oracle: all counts of 40 trials on each side, enumerated."""
    n, alpha, k = 40, 0.1, np.arange(41)
    for mu in (0.2, 1.0, 2.5):
        for cut in (-0.5, 0.4, 1.5):
            p, q = 1 - ndtr(cut - mu), 1 - ndtr(cut)
            bounds = np.array([[mu_at_least(h, n, a, n, alpha) for a in k] for h in k])
            chance = np.outer(binom.pmf(k, n, p), binom.pmf(k, n, q))
            assert chance[bounds > mu].sum() <= alpha


def test_the_bound_on_mu_is_near_the_truth_for_many_trials():
    n = 1_000_000
    hits, alarms = round(n * ndtr(0.35)), round(n * ndtr(-0.35))
    assert 0.68 < mu_at_least(hits, n, alarms, n, 0.05) < 0.7


def test_without_delta_one_run_is_the_binomial_bound_and_a_delta_costs_something():
    assert surprise(80, 100, 1_000, 1.0, 0.0) == pytest.approx(binom.sf(79, 100, 1 / (1 + np.exp(-1.0))))
    assert surprise(80, 100, 1_000, 1.0, 1e-4) > surprise(80, 100, 1_000, 1.0, 0.0)
    assert epsilon_of_one_run(80, 100, 1_000, 0.0, 0.05) > epsilon_of_one_run(80, 100, 1_000, 1e-4, 0.05) > 0.8


@pytest.mark.parametrize(("m", "delta"), [(50, 1e-2), (200, 1e-3), (1_000, 1e-5)])
def test_one_run_holds_for_a_mechanism_that_uses_all_of_its_epsilon_and_delta(m, delta):
    """Randomised response that tells the truth outright with probability delta, all counts enumerated; and it is tight
    to a few parts of the risk where there is next to no delta."""
    epsilon, k = 1.0, np.arange(1, m + 1)
    p = delta + (1 - delta) / (1 + np.exp(-epsilon))
    refuted = np.array([surprise(int(one), m, m, epsilon, delta) <= 0.05 for one in k])
    risk = binom.pmf(k, m, p)[refuted].sum()
    assert risk <= 0.05
    if delta < 1e-4:
        assert risk > 0.02


def enumerated(correct, guesses, canaries, epsilon, delta):
    """The bound of the paper, term by term: binomial coefficients and fractions, nothing of scipy."""
    q = Fraction(1 / (1 + exp(-epsilon)))
    mass = [comb(guesses, k) * q**k * (1 - q) ** (guesses - k) for k in range(guesses + 1)]
    tail = sum(mass[correct:])
    slopes = [sum(mass[max(correct - i, 0) : correct]) / i for i in range(1, canaries + 1)]
    return float(min(tail + 2 * canaries * Fraction(delta) * max(slopes), Fraction(1)))


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 2.0])
@pytest.mark.parametrize("delta", [0.0, 1e-5, 1e-3])
@pytest.mark.parametrize(("correct", "guesses", "canaries"), [(1, 1, 1), (18, 20, 60), (30, 30, 45), (9, 20, 20)])
def test_one_run_is_the_papers_bound_term_by_term(correct, guesses, canaries, epsilon, delta):
    wanted = enumerated(correct, guesses, canaries, epsilon, delta)
    assert surprise(correct, guesses, canaries, epsilon, delta) == pytest.approx(wanted, rel=1e-9)


PRINTED = [((1_000, 100, 75, 1e-4), 0.673), ((100_000, 1_510, 1_439, 1e-5), 2.675)]
"""Canaries, guesses, correct ones and delta of the two examples that the paper works out, and what it prints."""


@pytest.mark.parametrize(("example", "printed"), PRINTED)
def test_one_run_gives_the_figures_that_the_paper_prints_and_half_of_its_delta_term_does_not(example, printed):
    canaries, guesses, correct, delta = example
    assert epsilon_of_one_run(correct, guesses, canaries, delta, 0.05) == pytest.approx(printed, abs=1e-3)
    assert abs(epsilon_of_one_run(correct, guesses, canaries, delta / 2, 0.05) - printed) > 2e-3, "a planted error"


@pytest.mark.parametrize("delta", [1e-2, 1e-3])
def test_one_run_holds_for_a_mechanism_that_gives_everybody_away_at_once_with_probability_delta(delta):
    """The other extreme: all coins are told together, so that right guesses are far from independent."""
    m, epsilon, k = 60, 1.0, np.arange(1, 61)
    refuted = np.array([surprise(int(one), m, m, epsilon, delta) <= 0.05 for one in k])
    law = (1 - delta) * binom.pmf(k, m, 1 / (1 + np.exp(-epsilon))) + delta * (k == m)
    assert law[refuted].sum() <= 0.05


def test_nothing_right_refutes_nothing():
    assert epsilon_of_one_run(50, 100, 100, 1e-5, 0.05) == 0.0
    assert epsilon_of_mu(0.0, 1e-5) == 0.0
    assert mu_at_least(0, 10, 0, 10, 0.05) == 0.0
