"""The optimal channel: as good as any, never dearer than asked."""

from itertools import product

import numpy as np
import pytest
from scipy.optimize import linprog

from dpsr import Scale
from dpsr.errors import PrivacyError
from dpsr.privacy.channels import laplace, optimal_channel, randomised_response
from dpsr.privacy.channels.optimal import pool_levels

STARS = Scale(1, 5)
MOVIES = np.array([0.06, 0.11, 0.26, 0.35, 0.22])
SCALES = [
    Scale(0, 1),
    STARS,
    Scale(0.5, 5, 0.5),
    Scale(0, 10),
    Scale(0, 100),
    Scale(-10, 10, 0.1, snap=True),
    Scale(0, 199),
]


def bell(scale, centre=0.6, spread=0.25):
    return np.exp(-0.5 * ((scale.values - scale.low - centre * scale.width) / (spread * scale.width)) ** 2)


def explained(channel, prior):
    prior = np.asarray(prior) / np.sum(prior)
    variance = prior @ (channel.scale.values - prior @ channel.scale.values) ** 2
    return 1 - channel.expected_error(prior, guess="posterior") ** 2 / variance


def full_programme(values, prior, epsilon):
    """The oracle: every one of the 2^k columns with cells 1 or e^epsilon, not only intervals."""
    columns = np.array(list(product([1.0, np.exp(epsilon)], repeat=len(values)))).T
    centred = values - prior @ values
    gain = (prior * centred @ columns) ** 2 / (prior @ columns)
    solution = linprog(-gain, A_eq=columns, b_eq=np.ones(len(values)), method="highs")
    return -solution.fun / (prior @ centred**2)


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 2.0, 3.0, 5.0])
@pytest.mark.parametrize(
    "prior", [MOVIES, np.full(5, 0.2), np.array([0.4, 0.1, 0.0, 0.1, 0.4])], ids=["movies", "flat", "U"]
)
def test_intervals_are_as_good_as_all_columns_for_five_levels(epsilon, prior):
    assert explained(optimal_channel(STARS, epsilon, prior), prior) == pytest.approx(
        full_programme(STARS.values, prior, epsilon), abs=1e-6
    )


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_intervals_are_as_good_as_all_columns_for_ten_levels(epsilon):
    scale = Scale(0.5, 5, 0.5)
    prior = bell(scale) / bell(scale).sum()
    assert explained(optimal_channel(scale, epsilon, prior), prior) == pytest.approx(
        full_programme(scale.values, prior, epsilon), abs=1e-6
    )


@pytest.mark.parametrize(("epsilon", "share"), [(0.5, 0.042), (1, 0.150), (2, 0.411), (3, 0.633), (5, 0.912)])
def test_the_share_of_a_ratings_variance_one_noisy_rating_explains(epsilon, share):
    assert explained(optimal_channel(STARS, epsilon, MOVIES), MOVIES) == pytest.approx(share, abs=1e-3)


@pytest.mark.parametrize("scale", SCALES, ids=str)
@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 3.0, 10.0, 20.0])
def test_the_exact_price_is_at_most_what_was_asked_and_hardly_less(scale, epsilon):
    price = optimal_channel(scale, epsilon, bell(scale)).epsilon
    assert epsilon * (1 - 1e-6) <= price <= epsilon


@pytest.mark.parametrize("scale", [STARS, Scale(0.5, 5, 0.5), Scale(0, 10)], ids=str)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0, 8.0])
def test_no_other_channel_explains_more(scale, epsilon):
    prior = bell(scale)
    best = explained(optimal_channel(scale, epsilon, prior), prior)
    assert best >= explained(laplace(scale, epsilon), prior) - 1e-9
    assert best >= explained(randomised_response(scale, epsilon), prior) - 1e-6


def test_a_channel_tuned_to_another_prior_explains_less():
    prior, other = bell(STARS, 0.2, 0.15), bell(STARS, 0.9, 0.15)
    assert (
        explained(optimal_channel(STARS, 2.0, prior), prior)
        > explained(optimal_channel(STARS, 2.0, other), prior) + 0.02
    )


def test_outputs_are_posterior_means():
    channel = optimal_channel(STARS, 2.0, MOVIES)
    np.testing.assert_allclose(channel.outputs, STARS.values @ channel.posterior(MOVIES), atol=1e-6)


def test_pooling_keeps_neighbours_together_and_loses_little():
    scale = Scale(0, 199)
    label = pool_levels(bell(scale))
    assert (np.diff(label) >= 0).all()
    assert label.max() == 31
    fine, coarse = optimal_channel(scale, 10.0, bell(scale)), optimal_channel(Scale(0, 31), 10.0, bell(Scale(0, 31)))
    assert explained(fine, bell(scale)) > explained(coarse, bell(Scale(0, 31))) - 0.02


@pytest.mark.parametrize("prior", [[1, 2], [0] * 5, [1, 1, 1, 1, np.nan], [-1, 1, 1, 1, 1]])
def test_a_prior_that_is_none_is_refused(prior):
    with pytest.raises(PrivacyError, match="a prior gives each of the 5 levels"):
        optimal_channel(STARS, 1.0, prior)


def test_a_level_the_prior_thinks_impossible_still_has_a_row():
    channel = optimal_channel(STARS, 1.0, [0, 0, 0, 0, 1])
    assert channel.epsilon <= 1.0


def test_a_channel_is_built_once_and_another_request_gets_another():
    """Remembered by scale, epsilon and prior: all three, and nothing else."""
    scale, prior = Scale(1, 5), np.array([1.0, 2, 3, 2, 1])
    channel = optimal_channel(scale, 1.0, prior)
    assert optimal_channel(Scale(1, 5), 1, 10 * prior) is channel, "a prior is a prior, however it is scaled"
    for other in ((Scale(0, 4), 1.0, prior), (scale, 1.1, prior), (scale, 1.0, prior**2)):
        assert optimal_channel(*other) is not channel
