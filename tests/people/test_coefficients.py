"""People's coefficients: a prior that is right stays, a wrong one moves the right way, noise moves nothing."""

import numpy as np
import pytest

from dpsr.people.learning import CoefficientPrior, read_coefficients

K, PEOPLE = 3, 20_000


def prior():
    return CoefficientPrior(np.zeros(K), np.diag([0.5, 0.2, 0.02]), np.full(K, 0.5))


def answer(mean=0.0, stretch=1.0, known=0.8, seed=0, people=PEOPLE):
    """The exact sums over people whose ratings tell `known` of each coefficient, in coordinates of the prior."""
    rng = np.random.default_rng(seed)
    true = mean + np.sqrt(stretch) * rng.normal(size=(people, K))
    e = known * true + np.sqrt(known * (1 - known)) * rng.normal(size=(people, K))
    products = [(e[:, a] * e[:, b]).sum() - people * known * (a == b) for a in range(K) for b in range(a + 1)]
    return np.concatenate([e.sum(0), products, np.full(K, people * known), np.full(K, people * known**2)])


def test_a_prior_that_is_right_stays():
    found = read_coefficients(answer(), 1.0, PEOPLE, prior())
    np.testing.assert_allclose(found.mean, 0, atol=0.02)
    np.testing.assert_allclose(found.covariance, prior().covariance, atol=0.03)


def test_a_mean_that_is_off_is_found():
    found = read_coefficients(answer(mean=0.3), 1.0, PEOPLE, prior())
    expected = 0.3 * np.sqrt(np.diag(prior().covariance))
    np.testing.assert_allclose(found.mean[1:], expected[1:], rtol=0.1)


@pytest.mark.parametrize("stretch", [0.5, 2.0])
def test_people_who_lie_wider_or_closer_than_believed_move_the_variance_that_way(stretch):
    found = read_coefficients(answer(stretch=stretch), 1.0, PEOPLE, prior())
    np.testing.assert_allclose(np.diag(found.covariance)[1:] / [0.2, 0.02], stretch, rtol=0.15)
    assert (np.linalg.eigvalsh(found.covariance) > 0).all()


@pytest.mark.parametrize("seed", range(3))
def test_where_noise_drowns_the_answer_nothing_moves(seed):
    noise = 1e7
    drowned = answer() + noise * np.random.default_rng(seed).normal(size=len(answer())).clip(-1.9, 1.9)
    found = read_coefficients(drowned, noise, PEOPLE, prior())
    np.testing.assert_allclose(found.mean, prior().mean)
    np.testing.assert_allclose(found.covariance, prior().covariance, rtol=1e-9)
    np.testing.assert_allclose(found.known, prior().known)


def test_an_absurd_answer_moves_variances_by_a_factor_of_five_at_most():
    """Whatever noise did: eigenvalues are kept between a fifth and four times what was believed."""
    wild = answer() * np.array([1] * K + [50] * 6 + [1] * (2 * K))
    ratio = np.diag(read_coefficients(wild, 1.0, PEOPLE, prior()).covariance) / np.diag(prior().covariance)
    assert ((ratio > 0.19) & (ratio < 4.01)).all()


def test_factors_are_added_beside_what_is_known():
    found = prior().with_factors(np.array([0.03, 0.01]))
    assert found.covariance.shape == (K + 2, K + 2)
    np.testing.assert_array_equal(found.covariance[:K, :K], prior().covariance)
    np.testing.assert_array_equal(np.diag(found.covariance)[K:], [0.03, 0.01])
