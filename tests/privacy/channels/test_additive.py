"""The mechanisms: right distribution, exact price, at most what was asked and hardly less."""

import dp_accounting
import numpy as np
import pytest
from scipy.stats import laplace as continuous_laplace
from scipy.stats import norm

from dpsr import Scale
from dpsr.certify.amounts import MAX_EPSILON, MIN_EPSILON
from dpsr.errors import PrivacyError
from dpsr.privacy.channels import calibrated_laplace, gaussian, gaussian_classical, laplace, randomised_response
from dpsr.privacy.channels.additive import analytic_sigma, information_weights

SCALES = [Scale(1, 5), Scale(0.5, 5, 0.5), Scale(0, 10), Scale(0, 100), Scale(-10, 10, 0.1, snap=True), Scale(0, 1)]
EPSILONS = [0.01, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0]
STARS = SCALES[0]


@pytest.mark.parametrize("scale", SCALES, ids=str)
@pytest.mark.parametrize("build", [laplace, calibrated_laplace, randomised_response])
def test_the_exact_price_is_at_most_what_was_asked_and_hardly_less(build, scale):
    for epsilon in EPSILONS:
        price = build(scale, epsilon).epsilon
        assert epsilon * (1 - 1e-6) <= price <= epsilon


@pytest.mark.parametrize("scale", [Scale(0, 1), STARS, Scale(0, 100)], ids=str)
@pytest.mark.parametrize("build", [laplace, calibrated_laplace, randomised_response])
def test_every_budget_that_may_be_asked_has_its_table(build, scale):
    """Below a thousandth no alpha was feasible and none was found; near 30 cells are so small that rounding is dear."""
    for epsilon in (MIN_EPSILON, 1e-5, 1e-4, 1e-3, 26.0, 29.5, np.nextafter(MAX_EPSILON, 0), MAX_EPSILON):
        price = build(scale, float(epsilon)).epsilon
        assert epsilon * (1 - 1e-6) <= price <= epsilon


def cells(channel):
    """Edges of the output cells, the outer ones open: rounding to the grid after clipping."""
    middle = (channel.outputs[:-1] + channel.outputs[1:]) / 2
    return np.concatenate([[-np.inf], middle, [np.inf]])


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
def test_laplace_is_the_continuous_mechanism_clipped_and_rounded(epsilon):
    channel = laplace(STARS, epsilon)
    assert channel.settings["base"] == pytest.approx(epsilon, rel=1e-3)  # rounding saves a little, and it is spent
    for x, r in enumerate(STARS.values):
        expected = np.diff(continuous_laplace.cdf(cells(channel), loc=r, scale=STARS.width / channel.settings["base"]))
        np.testing.assert_allclose(channel.probabilities[x], expected, rtol=1e-6, atol=1e-12)


def test_calibrated_laplace_has_more_budget_far_from_the_public_midpoint():
    channel = calibrated_laplace(STARS, 1.0, 0.3)
    base = channel.settings["base"]
    for x, r in enumerate(STARS.values):
        budget = base * (1 + 0.3 * abs(r - 3) / 2)
        expected = np.diff(continuous_laplace.cdf(cells(channel), loc=r, scale=4 / budget))
        np.testing.assert_allclose(channel.probabilities[x], expected, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
def test_gaussian_is_the_continuous_mechanism_rounded(epsilon):
    channel = gaussian(STARS, epsilon, 1e-5)
    for x, r in enumerate(STARS.values):
        expected = np.diff(norm.cdf(cells(channel), loc=r, scale=channel.settings["sigma"]))
        np.testing.assert_allclose(channel.probabilities[x], expected, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("epsilon", [0.05, 0.1, 0.5, 1.0, 5.0, 10.0])
@pytest.mark.parametrize("delta", [1e-3, 1e-5, 1e-8])
def test_the_analytic_sigma_agrees_with_an_independent_library(epsilon, delta):
    assert analytic_sigma(epsilon, delta) == pytest.approx(dp_accounting.get_sigma_gaussian(epsilon, delta), rel=1e-6)


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 5.0, 10.0])
def test_the_gaussian_table_keeps_its_delta_and_nearly_spends_it(epsilon):
    delta = gaussian(STARS, epsilon, 1e-5).delta(epsilon)
    assert 0.99e-5 < delta <= 1e-5


def test_the_classical_gaussian_breaks_its_promise_at_the_papers_epsilon_ten():
    true = gaussian_classical(STARS, 10.0, 1e-5).delta(10.0)
    assert true == pytest.approx(2.27e-5, abs=0.005e-5)
    assert gaussian_classical(STARS, 0.5, 1e-5).delta(0.5) < 1e-5


def test_randomised_response_tells_the_truth_as_often_as_epsilon_allows():
    channel = randomised_response(STARS, np.log(4))
    np.testing.assert_allclose(channel.probabilities, (np.full((5, 5), 1.0) + 3 * np.eye(5)) / 8, rtol=1e-6)


def test_an_infeasible_alpha_is_lowered_and_reported():
    """At epsilon = 0.1, log(1.3) alone is 0.26: the density itself would betray the rating."""
    channel = calibrated_laplace(STARS, 0.1, 0.3)
    assert channel.settings["alpha_asked"] == 0.3
    assert 0.05 < channel.settings["alpha"] < 0.06
    assert calibrated_laplace(STARS, 1.0, 0.3).settings["alpha"] == 0.3


def test_the_base_budget_is_at_least_the_papers_own():
    for epsilon in EPSILONS:
        settings = calibrated_laplace(STARS, epsilon, 0.3).settings
        assert settings["base"] >= epsilon / (1 + settings["alpha"]) * (1 - 1e-8)


def test_alpha_zero_is_plain_laplace():
    np.testing.assert_allclose(
        calibrated_laplace(STARS, 1.0, 0.0).probabilities, laplace(STARS, 1.0).probabilities, rtol=1e-7
    )


def test_information_weights_follow_algorithm_one_and_not_the_misprinted_equation():
    np.testing.assert_allclose(information_weights(STARS, 3.0), [1, 0.5, 0, 0.5, 1])
    np.testing.assert_allclose(information_weights(STARS, 4.5), [1, 1, 0.75, 0.25, 0.25])


@pytest.mark.parametrize(
    "epsilon",
    [0, -1, 5e-324, 1e-9, np.nextafter(MIN_EPSILON, 0), np.nextafter(30, 31), np.inf, np.nan, 31, "one", None],
)
def test_an_epsilon_that_promises_nothing_is_refused_with_advice(epsilon):
    with pytest.raises(PrivacyError, match=r"above 0, from 0.000001 to 30.*Common choices"):
        laplace(STARS, epsilon)


@pytest.mark.parametrize("delta", [0, 0.5, -1e-5, np.nan])
def test_a_delta_that_promises_nothing_is_refused(delta):
    with pytest.raises(PrivacyError, match="delta must be above 0"):
        gaussian(STARS, 1.0, delta)


def test_a_delta_that_no_gaussian_noise_is_known_for_is_refused():
    with pytest.raises(PrivacyError, match="no Gaussian noise is known for epsilon = 1e-06 with delta = 1e-300"):
        gaussian(STARS, 1e-6, 1e-300)


@pytest.mark.parametrize("alpha", [-0.1, 1.5, np.nan])
def test_an_alpha_outside_the_papers_range_is_refused(alpha):
    with pytest.raises(PrivacyError, match="alpha must lie between 0 and 1"):
        calibrated_laplace(STARS, 1.0, alpha)
