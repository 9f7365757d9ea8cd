"""The optimal channel: as good as any, never dearer than asked."""

from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import product
from math import nextafter

import numpy as np
import pytest
from scipy.optimize import linprog

from dpsr import Scale
from dpsr.certify.amounts import MAX_EPSILON, MIN_EPSILON
from dpsr.certify.table_price import worst_ratio
from dpsr.errors import PrivacyError
from dpsr.privacy.channels import laplace, optimal_channel, randomised_response
from dpsr.privacy.channels.optimal import best_partition, pool_levels, response_table

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


def interval_programme(values, prior, epsilon):
    """The oracle: the linear programme over all mixtures of interval columns, not only over partitions."""
    k, gain = len(values), np.expm1(epsilon)
    low, high = np.triu_indices(k)
    columns = 1 + gain * ((np.arange(k)[:, None] >= low) & (np.arange(k)[:, None] <= high))
    mass, centred = prior @ columns, values - prior @ values
    explained = (prior * centred @ columns / mass) ** 2
    most = explained.max()  # numbers of one size, which the solver likes
    solution = linprog(-explained / most, A_eq=columns / mass, b_eq=np.ones(k), method="highs-ds")
    return -solution.fun * most / (prior @ centred**2)


def every_partition(values, prior, epsilon):
    """The oracle: randomised response on each of the 2^(k-1) partitions into intervals, moments in plain loops."""
    best = 0.0
    for cuts in product([0, 1], repeat=len(values) - 1):
        part = np.cumsum([0, *cuts])
        m = part[-1] + 1
        table = np.where(part[:, None] == np.arange(m), np.exp(epsilon), 1.0) / (np.exp(epsilon) + m - 1)
        joint = prior[:, None] * table
        means = values @ joint / joint.sum(axis=0)
        best = max(best, joint.sum(axis=0) @ (means - prior @ values) ** 2)
    return best / (prior @ (values - prior @ values) ** 2)


def some_priors(k, n, seed=0):
    """Spiky, flat, narrow and wide ones, with levels that hardly occur."""
    rng = np.random.default_rng(seed)
    for trial in range(n):
        if trial % 2:
            yield rng.dirichlet(np.full(k, 10.0 ** rng.uniform(-1.5, 1)))
        else:
            y = np.linspace(-1, 1, k)
            yield np.exp(-0.5 * ((y - rng.uniform(-1, 1)) / 10 ** rng.uniform(-1, 0.3)) ** 2)


@pytest.mark.parametrize("k", [2, 3, 5, 10, 17])
@pytest.mark.parametrize("epsilon", [0.01, 0.3, 1.0, 2.5, 4.0, 8.0])
def test_one_partition_is_as_good_as_any_mixture_of_intervals(k, epsilon):
    scale = Scale(0, k - 1)
    for prior in some_priors(k, 6):
        floored = (prior / prior.sum() + 1e-9 / k) / (1 + 1e-9)
        found = explained(optimal_channel(scale, epsilon, prior), floored)
        assert found == pytest.approx(interval_programme(scale.values, floored, epsilon), abs=1e-7)


@pytest.mark.parametrize("epsilon", [1e-6, 1e-3, 1.0, 5.0, 14.0, 26.0, 29.5, 30.0])
def test_no_partition_into_intervals_is_better(epsilon):
    scale = Scale(0, 7)
    for prior in some_priors(8, 6):
        floored = (prior / prior.sum() + 1e-9 / 8) / (1 + 1e-9)
        found = explained(optimal_channel(scale, epsilon, prior), floored)
        assert found == pytest.approx(every_partition(scale.values, floored, epsilon), rel=1e-6, abs=1e-12)


EDGES = (MIN_EPSILON, nextafter(MIN_EPSILON, 1), 24.0, 26.0, 28.0, 29.5, nextafter(MAX_EPSILON, 0), MAX_EPSILON)


@pytest.mark.parametrize("epsilon", [*np.geomspace(MIN_EPSILON, MAX_EPSILON, 12)[1:-1], *EDGES])
@pytest.mark.parametrize("levels", [2, 5, 10, 21, 101, 1001])
def test_every_budget_that_may_be_asked_has_a_channel_for_every_prior_and_scale(levels, epsilon):
    """From 26 on the programme failed for some priors, from 29.5 for nearly all: after the budget was charged."""
    scale = Scale(0, levels - 1)
    for prior in some_priors(levels, 4, seed=levels):
        price = optimal_channel(scale, float(epsilon), prior).epsilon
        assert epsilon * (1 - 1e-6) <= price <= epsilon


@pytest.mark.parametrize("m", [2, 3, 32])
@pytest.mark.parametrize("epsilon", [1e-6, 0.7, 20.0, 30.0])
def test_a_table_one_unit_less_noisy_would_be_too_dear(m, epsilon):
    """Tightness, in integers: `low` is the least there is."""
    table = response_table(np.arange(m), epsilon).tolist()
    low, high = table[0][1], table[0][0]
    with localcontext() as context:
        context.prec = 90
        most = Fraction(Decimal(epsilon).exp())
    assert worst_ratio(table) == Fraction(high, low) <= most
    assert Fraction(high + m - 1, low - 1) > most


def test_a_partition_is_told_by_its_lowest_level_first():
    assert best_partition(STARS.values, MOVIES, 30.0).tolist() == [0, 1, 2, 3, 4]
    assert best_partition(STARS.values, MOVIES, 0.01).tolist() == [0, 0, 0, 1, 1]


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
