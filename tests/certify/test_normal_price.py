"""Prices of Gaussian noise: never understated, tight, and those of independent computations."""

from fractions import Fraction
from math import inf, nextafter

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsr.certify.normal_price import (
    SAMPLER_SLACK,
    affordable_squared_mu,
    chance_beyond,
    gaussian_delta,
    gaussian_epsilon,
    tail_up,
)

SQUARED = st.fractions(Fraction(1, 10_000), 100, max_denominator=10**6)


def exact_delta(squared_mu, epsilon):
    """The formula with 400 digits."""
    with mpmath.workdps(400):
        mu = mpmath.sqrt(mpmath.mpf(squared_mu.numerator) / squared_mu.denominator)
        e = mpmath.mpf(epsilon)
        return mpmath.ncdf(mu / 2 - e / mu) - mpmath.exp(e) * mpmath.ncdf(-mu / 2 - e / mu)


@given(SQUARED, st.floats(0, 30))
@settings(max_examples=60, deadline=None)
def test_delta_is_never_understated_and_tight_to_the_last_digits(squared_mu, epsilon):
    found, exact = gaussian_delta(squared_mu, epsilon), exact_delta(squared_mu, epsilon)
    assert mpmath.mpf(found) >= exact
    assert found <= float(exact) * (1 + 1e-14) + 1e-320


@given(SQUARED, st.floats(-14, -0.4))
@settings(max_examples=60, deadline=None)
def test_epsilon_is_the_first_at_which_delta_is_small_enough(squared_mu, log_delta):
    delta = 10.0**log_delta
    epsilon = gaussian_epsilon(squared_mu, delta)
    assert exact_delta(squared_mu, epsilon) <= delta
    if epsilon > 0:
        assert exact_delta(squared_mu, epsilon * (1 - 1e-9)) > delta * (1 - 1e-6)


@pytest.mark.parametrize("epsilon", [1e-4, 0.01, 1.0, 30.0])
@pytest.mark.parametrize("delta", [1e-5, 1e-20, 1e-22, 3e-24, 1.3e-24])
def test_a_budget_pays_for_its_noise_and_for_what_the_sampler_may_be_off(epsilon, delta):
    """Where delta is hardly more than the sampler's own, floats are a poor start: exact numbers say what fits."""
    squared_mu = affordable_squared_mu(epsilon, delta)
    assert Fraction(gaussian_delta(squared_mu, epsilon)) + Fraction(SAMPLER_SLACK) <= Fraction(delta)


@pytest.mark.parametrize("squared_mu", [1e-12, 1e-10, 1e-8])
@pytest.mark.parametrize("delta", [1e-8, 1e-12, 1e-20])
def test_epsilon_is_not_understated_where_floats_cancel(squared_mu, delta):
    """By a part in 10^8: less than the margin that a hypothesis about larger budgets leaves."""
    assert gaussian_delta(Fraction(squared_mu), gaussian_epsilon(Fraction(squared_mu), delta)) <= delta


def test_a_tenth_of_a_percent_less_noise_costs_more():
    """The planted error: sigma 0.1 % too small."""
    delta = gaussian_delta(Fraction(1), 1.0)
    assert gaussian_delta(Fraction(1) / Fraction(999, 1000) ** 2, 1.0) > delta * 1.0005


@pytest.mark.parametrize(("sigma", "epsilon", "delta"), [(0.5, 8.0, 1e-5), (2.0, 1.5, 1e-6), (10.0, 0.3, 1e-7)])
def test_the_price_is_that_of_googles_accountant_within_its_grid(sigma, epsilon, delta):
    from dp_accounting.pld import privacy_loss_distribution as pld

    loss = pld.from_gaussian_mechanism(sigma, value_discretization_interval=1e-4)
    theirs = loss.get_epsilon_for_delta(delta)
    ours = gaussian_epsilon(1 / Fraction(sigma) ** 2, delta)
    assert ours == pytest.approx(theirs, abs=2e-3)
    assert gaussian_delta(1 / Fraction(sigma) ** 2, epsilon) == pytest.approx(
        loss.get_delta_for_epsilon(epsilon), rel=0.01
    )


def test_several_answers_compose_by_adding_squares():
    """Two answers at mu = 3 and mu = 4 are one at mu = 5, by the accountant's convolution too."""
    from dp_accounting.pld import privacy_loss_distribution as pld

    parts = [pld.from_gaussian_mechanism(1 / mu, value_discretization_interval=1e-3) for mu in (0.3, 0.4)]
    both = parts[0].compose(parts[1]).get_epsilon_for_delta(1e-5)
    assert gaussian_epsilon(Fraction(1, 4), 1e-5) == pytest.approx(both, abs=5e-3)


@pytest.mark.parametrize("x", [-3.0, 0.0, 0.5, 4.0, 12.0, 37.0])
def test_a_tail_is_never_understated(x):
    with mpmath.workdps(60):
        exact = mpmath.ncdf(-mpmath.mpf(x))
    assert mpmath.mpf(tail_up(x)) >= exact
    assert tail_up(x) <= float(exact) * (1 + 1e-14)


@pytest.mark.parametrize("x", [38.39, 38.4, 38.41, 38.45, 38.49, 38.5, 38.51])
def test_a_tail_is_not_understated_where_floats_end(x):
    """Tails from 38.4 to 38.46 deviations are more than the smallest float; they were called that."""
    with mpmath.workdps(60):
        exact = mpmath.ncdf(-mpmath.mpf(x))
    assert exact <= mpmath.mpf(tail_up(x)) <= exact + mpmath.mpf(5e-324)
    assert mpmath.mpf(gaussian_delta(Fraction(1), x + 0.5)) >= exact_delta(Fraction(1), x + 0.5)


def test_what_no_float_can_hold_is_not_called_impossible():
    assert gaussian_delta(Fraction(1, 10**8), 30.0) > 0
    assert tail_up(50.0) > 0
    assert gaussian_epsilon(Fraction(1), 0.0) == inf
    assert gaussian_delta(Fraction(0), 0.0) == 0
    assert gaussian_epsilon(Fraction(1, 100), 0.5) == 0
    assert nextafter(gaussian_delta(Fraction(10**4), 0.0), 2) > 0.999


@pytest.mark.parametrize(("squared_mu", "epsilon"), [(4, 2.0), (1, 0.5), (16, 8.0)])
def test_an_epsilon_at_the_middle_of_the_loss_is_computed_and_does_not_take_for_ever(squared_mu, epsilon):
    """epsilon = mu^2 / 2: one of the two tails is at zero, where every term of its series vanishes."""
    found, exact = gaussian_delta(Fraction(squared_mu), epsilon), exact_delta(Fraction(squared_mu), epsilon)
    assert exact <= found <= float(exact) * (1 + 1e-14)


def passes(mu, epsilon):
    """Exactly: the chance that ln P/Q of N(mu, 1) and N(0, 1), a N(mu^2 / 2, mu^2), leaves [-epsilon, epsilon]."""
    return mpmath.ncdf(mu / 2 - epsilon / mu) + mpmath.ncdf(-mu / 2 - epsilon / mu)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0, 30.0])
@pytest.mark.parametrize("delta", [1e-9, 1e-5, 0.05])
def test_odds_pass_the_factor_more_often_than_delta_and_no_more_often_than_stated(epsilon, delta):
    """Tight within a factor of three, by what one question alone does."""
    with mpmath.workdps(50):
        mu = mpmath.sqrt(mpmath.mpf(float(affordable_squared_mu(epsilon, delta))))
        once = passes(mu, epsilon)
    assert delta < once <= chance_beyond(epsilon, delta) <= 3 * float(once)


def test_whoever_stops_asking_once_odds_have_passed_the_factor_stays_below_what_is_stated_and_comes_near():
    """The extremal course of answers: a thousand small questions, and no more of them once the odds are there."""
    epsilon, delta, steps, people = 1.0, 0.05, 1_000, 20_000
    squared_mu = float(affordable_squared_mu(epsilon, delta))
    rng, loss, passed = np.random.default_rng(0), np.zeros(people), np.zeros(people, dtype=bool)
    for _ in range(steps):
        loss += np.where(passed, 0.0, squared_mu / steps / 2 + np.sqrt(squared_mu / steps) * rng.normal(size=people))
        passed |= np.abs(loss) > epsilon
    stated = chance_beyond(epsilon, delta) - delta
    assert float(passes(mpmath.sqrt(squared_mu), epsilon)) * 1.5 < passed.mean() < stated * 1.03
    assert passed.mean() > 0.85 * stated
