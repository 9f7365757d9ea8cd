"""Composition of receipts: against dp-accounting, on the safe side, and tight."""

from __future__ import annotations

from math import inf

import dp_accounting
import numpy as np
import pytest
from dp_accounting import pld, rdp

from dpsr.errors import PrivacyError
from dpsr.evaluate.peers import accounting
from dpsr.evaluate.peers.accounting import (
    epsilon_of,
    gaussian_epsilon,
    gaussian_multiplier,
    sampled_epsilon,
    sampled_multiplier,
)
from dpsr.evaluate.peers.floating import Price

DELTA = 1e-5


def gaussian(multiplier, sampling=1.0):
    return Price("gaussian", 1.0, multiplier, inf, sampling)


@pytest.mark.parametrize("multiplier", [0.3, 1.0, 5.0, 40.0])
def test_gaussian_epsilon_is_that_of_dp_accounting(multiplier):
    expected = dp_accounting.get_epsilon_gaussian(multiplier, DELTA)
    assert gaussian_epsilon(1 / multiplier, DELTA) == pytest.approx(expected, rel=1e-6, abs=1e-9)


def test_noise_large_enough_for_delta_alone_costs_no_epsilon():
    assert gaussian_epsilon(1e-6, DELTA) == 0


def test_gaussian_releases_compose_like_one_with_less_noise():
    parts = [gaussian(3.0), gaussian(4.0), gaussian(4.0)]
    mu = np.sqrt(1 / 9 + 2 / 16)
    assert epsilon_of(parts, DELTA) == pytest.approx(gaussian_epsilon(mu, DELTA))
    accountant = pld.PLDAccountant(value_discretization_interval=1e-4)
    for price in parts:
        accountant.compose(dp_accounting.GaussianDpEvent(price.multiplier))
    assert epsilon_of(parts, DELTA) <= accountant.get_epsilon(DELTA) <= 1.01 * epsilon_of(parts, DELTA)


def test_pure_prices_add_up_and_add_to_gaussian_ones():
    pure = [Price("laplace", 2.0, 4.0, 0.5), Price("laplace", 2.0, 4.0, 0.5), Price("local report", 2.0, 1.0, 0.25)]
    assert epsilon_of(pure, DELTA) == 1.25
    assert epsilon_of([*pure, gaussian(2.0)], DELTA) == pytest.approx(1.25 + gaussian_epsilon(0.5, DELTA))


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 10.0, 300.0])
def test_the_gaussian_multiplier_is_on_the_safe_side_and_tight(epsilon):
    shares = (0.1, 0.3, 0.6)
    spent = epsilon_of([gaussian(gaussian_multiplier(epsilon, DELTA, share=share)) for share in shares], DELTA)
    assert 0.999 * epsilon <= spent <= epsilon * (1 + 1e-9)


@pytest.mark.parametrize("epsilon", [0.2, 2.0, 10.0])
def test_the_sampled_multiplier_is_on_the_safe_side_and_tight(epsilon):
    releases = ((1.0, 0.3, 20), (2.0, 1.0, 1))
    z = sampled_multiplier(epsilon, DELTA, releases)
    spent = epsilon_of([gaussian(z, 0.3)] * 20 + [gaussian(2 * z)], DELTA)
    assert 0.99 * epsilon <= spent <= epsilon
    assert sampled_epsilon(((z / 2, 0.3, 20), (z, 1.0, 1)), DELTA) > 1.5 * epsilon, "half the noise must cost more"


def test_sampled_prices_lie_below_renyi_accounting_and_above_what_one_step_costs():
    """Renyi accounting is an upper bound by another road; forgetting all steps but one would be cheaper."""
    accountant = rdp.RdpAccountant()
    accountant.compose(dp_accounting.PoissonSampledDpEvent(0.3, dp_accounting.GaussianDpEvent(5.0)), 60)
    price = sampled_epsilon(((5.0, 0.3, 60),), DELTA)
    assert sampled_epsilon(((5.0, 0.3, 1),), DELTA) < price <= accountant.get_epsilon(DELTA)
    assert price >= 0.7 * accountant.get_epsilon(DELTA)


def test_the_grid_of_losses_is_fine_enough():
    """Ten times finer changes the price by less than a thousandth."""
    for z in (2.0, 30.0):
        price = sampled_epsilon(((z, 0.3, 60),), DELTA)
        fine = pld.PLDAccountant(value_discretization_interval=accounting._interval(((z, 0.3, 60),)) / 10)
        fine.compose(dp_accounting.PoissonSampledDpEvent(0.3, dp_accounting.GaussianDpEvent(z)), 60)
        assert fine.get_epsilon(DELTA) <= price <= 1.005 * fine.get_epsilon(DELTA)


def test_without_dp_accounting_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "dp_accounting", None)
    with pytest.raises(PrivacyError, match=r"dpsr\[peers\]"):
        sampled_epsilon(((1.2345, 0.5, 2),), DELTA)
