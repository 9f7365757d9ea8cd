"""The linear algebra of one person, against dense and naive Bayesian regression."""

import numpy as np
import pytest
from scipy.linalg import block_diag
from scipy.stats import multivariate_normal

from dpsr.release.personalise.kernels import ItemVectors, Readings, cavity
from dpsr.release.personalise.mask_kernel import mask_kernel
from dpsr.release.personalise.posterior import Choice, WithoutOwn, coefficients, without_own
from dpsr.release.personalise.released_side import People, ReleasedSide

PLAIN = Choice(tau=0.01, slope_spread=0.0, family=False)
SPREAD = Choice(tau=0.01, slope_spread=1.0, family=False, factors=0.5)


def side_of(fitted):
    return ReleasedSide(fitted.release.model, fitted.release.noisy, mask_kernel(fitted.release.mask).features)


def one_person(fitted, user):
    mask = fitted.release.mask
    places = np.arange(mask.indptr[user], mask.indptr[user + 1])
    scale = fitted.train.scale
    y = (fitted.train.values[places] - scale.midpoint) / (scale.width / 2)
    return People(np.array([user]), np.array([0, len(places)]), mask.items[places], places), y


def naive(side, choice, person, own, y):
    """theta by the textbook formula at every grid point, averaged by the evidence of a multivariate normal."""
    p, q, k = side.prior.widths
    features, kernel = side.features
    X = np.hstack([features[person.items], own.factors, kernel[person.items]])
    x = side.model.user_factors[person.users[0], :p]
    mean = np.zeros(X.shape[1])
    mean[: side.prior.weights.shape[1]] = x @ side.prior.weights
    noise = np.diag(side.residual + own.item_variance)
    effects, chances = side.prior.effect_chances or ([None], [0.0])
    slopes = np.linspace(-2, 2, 5) if choice.slope_spread else [0.0]
    found, evidence = [], []
    for effect, chance in zip(effects, chances, strict=True):
        for slope in slopes:
            L = side.prior.covariance.copy()
            if effect is not None:
                L[0, 0] = np.exp(effect)
            D = np.diag(
                np.r_[1, np.full(q - 1, np.exp(choice.slope_spread * slope / 2)), np.full(k, choice.factors**0.5)]
            )
            S = block_diag(D @ L @ D, choice.tau * np.eye(kernel.shape[1]))
            around = X @ S @ X.T + noise
            rest = y - own.base - X @ mean
            found.append(mean + S @ X.T @ np.linalg.solve(around, rest))
            evidence.append(multivariate_normal.logpdf(rest, cov=around) + chance - 0.5 * slope**2)
    weight = np.exp(np.array(evidence) - max(evidence))
    return weight @ np.array(found) / weight.sum()


@pytest.mark.parametrize("choice", [PLAIN, SPREAD])
@pytest.mark.parametrize("heavy", [False, True])
def test_coefficients_are_those_of_a_dense_bayesian_regression(either, choice, heavy):
    """A heavy rater is solved by coefficients and a light one by ratings: the answer is the same formula."""
    side = side_of(either)
    counts = either.release.mask.user_counts
    person, y = one_person(either, int(np.argmax(counts) if heavy else np.argmax(counts == 7)))
    if heavy:  # more ratings than coefficients, so that the other way of solving is taken
        copies = 1 + (side.prior.widths.own + side.features.kernel.shape[1]) // len(y)
        person = People(
            person.users, np.array([0, copies * len(y)]), np.tile(person.items, copies), np.tile(person.places, copies)
        )
        y = np.tile(y, copies)
    own = without_own(side, person)
    theta = coefficients(side, choice, person, own, y)[0]
    np.testing.assert_allclose(theta, naive(side, choice, person, own, y), rtol=1e-5, atol=1e-7)


def test_a_five_per_cent_error_in_the_noise_would_be_seen(with_readings):
    side = side_of(with_readings)
    person, y = one_person(with_readings, int(np.argmax(with_readings.release.mask.user_counts)))
    own = without_own(side, person)
    wrong = own._replace(item_variance=own.item_variance + 0.05 * (own.item_variance + side.residual))
    theta = coefficients(side, PLAIN, person, wrong, y)[0]
    assert np.abs(theta - naive(side, PLAIN, person, own, y)).max() > 1e-4


def learned(C, b, a, t, w):
    """An item's posterior after a reading t of weight w at a . b: the textbook update."""
    gain = C @ a * w / (1 + w * a @ C @ a)
    return C - np.outer(gain, C @ a), b + gain * (t - a @ b)


def packed(C):
    return C[np.tril_indices(len(C))].astype(np.float32)[None]


def test_the_cavity_undoes_exactly_what_one_reading_taught_the_item():
    rng = np.random.default_rng(0)
    p, k = 4, 3
    root = rng.normal(size=(p + k, p + k))
    C, b, a = 0.05 * root @ root.T, rng.normal(size=p + k), rng.normal(size=p + k)
    w, t = 0.3, 0.8
    after_C, after_b = learned(C, b, a, t, w)
    side = ItemVectors(after_b[None], packed(after_C), p, p + k)
    one = np.array([0, 1]), np.array([0], dtype=np.int32), a[None]
    readings = Readings(np.array([a @ after_b]), np.array([t]), np.array([w]))
    base, factors, variance = cavity(*one, side, readings)
    np.testing.assert_allclose(base, b[:p] @ a[:p], rtol=1e-4)
    np.testing.assert_allclose(factors[0], b[p:], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(variance, a @ C @ a, rtol=1e-4)
    left_in = cavity(*one, side, readings._replace(weight=np.zeros(1)))
    assert abs(left_in[0][0] - b[:p] @ a[:p]) > 1e-2, "an own reading that is left in would be seen"


def test_a_rating_that_taught_almost_all_that_is_known_leaves_a_finite_variance():
    """The extreme: nothing but this reading is known of an item, and the weight claims more than there is."""
    side = ItemVectors(np.ones((1, 1)), np.full((1, 1), 0.5, np.float32), 1, 1)
    readings = Readings(np.zeros(1), np.ones(1), np.array([1e9]))
    found = cavity(np.array([0, 1]), np.array([0], dtype=np.int32), np.ones((1, 1)), side, readings)
    assert all(np.isfinite(part).all() for part in found)
    assert found[2][0] == pytest.approx(0.5 / 0.05)


def test_an_item_known_badly_moves_a_person_less(with_readings):
    """The safe side: more uncertainty about items never makes own ratings weigh more."""
    side = side_of(with_readings)
    person, y = one_person(with_readings, int(np.argmax(with_readings.release.mask.user_counts)))
    own = without_own(side, person)
    prior = coefficients(side, PLAIN, person, own._replace(item_variance=np.full(len(y), 1e9)), y)[0]
    sizes = [
        np.linalg.norm(coefficients(side, PLAIN, person, WithoutOwn(own.base, own.factors, variance), y)[0] - prior)
        for variance in (
            own.item_variance,
            own.item_variance + 10 * side.residual,
            own.item_variance + 1000 * side.residual,
        )
    ]
    assert sizes[0] > sizes[1] > sizes[2]


def test_the_family_variance_weighs_ratings_by_their_place_on_the_scale(with_readings):
    side = side_of(with_readings)
    person, y = one_person(with_readings, int(np.argmax(with_readings.release.mask.user_counts)))
    own = without_own(side, person)
    plain, family = (coefficients(side, PLAIN._replace(family=one), person, own, y) for one in (False, True))
    assert np.isfinite(family).all()
    assert np.abs(plain - family).max() > 1e-6
