"""Intervals hold whatever the probability is, and are no wider than that takes."""

from math import exp, log

import numpy as np
import pytest
from scipy.stats import binom

from dpsr.audit.bounds import at_least, at_most, epsilon_at_least, epsilon_of_guesses


@pytest.mark.parametrize(("hits", "trials"), [(1, 10), (5, 10), (10, 10), (37, 1000), (999, 1000), (3, 10**6)])
def test_the_lower_end_is_where_so_many_hits_become_a_one_in_alpha_surprise(hits, trials):
    """The oracle is the binomial tail itself: P[at least `hits`] at the lower end is alpha."""
    for alpha in (0.05, 1e-4):
        low = float(at_least(hits, trials, alpha))
        assert binom.sf(hits - 1, trials, low) == pytest.approx(alpha, rel=1e-6)


@pytest.mark.parametrize(("hits", "trials"), [(0, 10), (5, 10), (9, 10), (37, 1000), (0, 10**6)])
def test_the_upper_end_is_where_so_few_hits_become_a_one_in_alpha_surprise(hits, trials):
    for alpha in (0.05, 1e-4):
        high = float(at_most(hits, trials, alpha))
        assert binom.cdf(hits, trials, high) == pytest.approx(alpha, rel=1e-6)


def test_the_ends_of_the_range_are_safe():
    assert at_least(0, 10, 0.05) == 0
    assert at_most(10, 10, 0.05) == 1


@pytest.mark.parametrize("trials", [1, 7, 40])
def test_the_exact_risk_of_an_interval_never_exceeds_alpha(trials):
    """Enumerated over every outcome: no sampling, no approximation."""
    hits = np.arange(trials + 1)
    low, high = at_least(hits, trials, 0.05), at_most(hits, trials, 0.05)
    for p in np.linspace(0.001, 0.999, 333):
        mass = binom.pmf(hits, trials, p)
        assert mass[low > p].sum() <= 0.05 + 1e-12
        assert mass[high < p].sum() <= 0.05 + 1e-12


def test_the_exact_risk_of_a_bound_on_epsilon_never_exceeds_alpha():
    """All pairs of outcomes of two experiments of 25 trials; a bound that skips the intervals fails the same check."""
    n, alpha = 25, 0.05
    hits = np.arange(n + 1)
    bounds = epsilon_at_least(hits[:, None], hits[None, :], n, alpha)
    naive = np.log((hits[:, None] + 0.5) / (hits[None, :] + 0.5))
    worst = 0.0
    for p, q in [(0.5, 0.5), (0.6, 0.3), (0.9, 0.2), (0.2, 0.1), (0.05, 0.01)]:
        mass = np.outer(binom.pmf(hits, n, p), binom.pmf(hits, n, q))
        assert mass[bounds > log(p / q) + 1e-12].sum() <= alpha
        worst = max(worst, mass[naive > log(p / q)].sum())
    assert worst > 0.3


def test_a_bound_on_epsilon_is_tight_when_there_is_much_to_count():
    n = 10**8
    assert float(epsilon_at_least(0.5 * n, 0.5 * n / exp(1), n, 0.05)) == pytest.approx(1, abs=1e-3)


def test_a_delta_is_taken_off_before_the_ratio():
    n = 10**9
    bound = float(epsilon_at_least(0.3 * n, 0.1 * n, n, 0.05, delta=0.1))
    assert bound == pytest.approx(log(0.2 / 0.1), abs=1e-3)
    assert float(epsilon_at_least(0.05 * n, 0.1 * n, n, 0.05, delta=0.1)) == 0


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_the_exact_risk_of_the_one_run_bound_never_exceeds_alpha(epsilon):
    r = 400
    correct = np.arange(r + 1)
    p = exp(epsilon) / (1 + exp(epsilon))
    mass = binom.pmf(correct, r, p)
    risk = mass[epsilon_of_guesses(correct, r, 0.05) > epsilon].sum()
    assert 0.02 < risk <= 0.05, "safe, and not idle"


def test_guessing_like_a_coin_says_nothing():
    assert epsilon_of_guesses(500, 1000, 0.05) == 0
    assert epsilon_of_guesses(100, 1000, 0.05) == 0
    assert np.isfinite(epsilon_of_guesses(10**6, 10**6, 0.05))
