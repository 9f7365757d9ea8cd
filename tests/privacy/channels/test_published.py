"""What the paper's Stage 1 really costs: closed form, brute force, and the data sets that attain it."""

from itertools import combinations_with_replacement
from math import log

import numpy as np
import pytest

from dpsr import Scale
from dpsr.privacy.channels import AsPublished
from dpsr.privacy.channels.published import data_set_loss, epsilon_with_public_centre, pair_loss, worst_data_set

STARS = Scale(1, 5)
EPSILONS = [0.1, 0.5, 1.0, 1.2, 5.0, 10.0]


def density(scale, r, b, y):
    """Clipped Laplace at an interior point, or the atom at an end: the oracle's own code."""
    if y <= scale.low:
        return 0.5 * np.exp(-b * (r - scale.low))
    if y >= scale.high:
        return 0.5 * np.exp(-b * (scale.high - r))
    return b / 2 * np.exp(-b * abs(y - r))


@pytest.mark.parametrize(
    ("r", "s", "b", "c"), [(5, 3, 0.03, 0.02), (1, 5, 0.2, 0.3), (2, 4, 1.3, 1.0), (3, 3, 0.1, 0.2)]
)
def test_the_loss_of_a_pair_is_the_supremum_over_a_fine_grid_of_outputs(r, s, b, c):
    inner = np.linspace(1 + 1e-9, 5 - 1e-9, 40_001)
    grid = [log(density(STARS, r, b, y) / density(STARS, s, c, y)) for y in [1, 5, *inner]]
    assert pair_loss(STARS, r, s, b, c) == pytest.approx(max(grid), abs=1e-4)
    assert pair_loss(STARS, r, s, b, c) >= max(grid) - 1e-9


@pytest.mark.parametrize(("epsilon", "exact"), [(0.1, 0.30), (0.5, 0.50), (1.0, 1.00), (5.0, 5.00)])
def test_with_the_public_centre_three_the_price_is_known_to_two_digits(epsilon, exact):
    assert epsilon_with_public_centre(STARS, epsilon, 0.3, 3.0) == pytest.approx(exact, abs=0.005)


def test_with_a_public_centre_elsewhere_half_an_epsilon_costs_up_to_053():
    worst = max(epsilon_with_public_centre(STARS, 0.5, 0.3, centre) for centre in np.linspace(1, 5, 81))
    assert epsilon_with_public_centre(STARS, 0.5, 0.3, 3.5) == pytest.approx(0.53, abs=0.005)
    assert worst > 0.5


@pytest.mark.parametrize(
    ("epsilon", "exact"), [(0.1, 0.9393), (0.5, 1.2470), (1.0, 1.6316), (5.0, 7.3077), (10.0, 14.6154)]
)
def test_the_true_worst_case_with_the_moving_mean(epsilon, exact):
    assert AsPublished(STARS, epsilon).epsilon == pytest.approx(exact, abs=5e-5)


@pytest.mark.parametrize("scale", [STARS, Scale(0.5, 5, 0.5), Scale(0, 10), Scale(0, 100)], ids=str)
@pytest.mark.parametrize("alpha", [0.1, 0.3, 1.0])
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_worst_data_sets_approach_the_bound_from_below(scale, alpha, epsilon):
    bound = AsPublished(scale, epsilon, alpha).epsilon
    losses = [data_set_loss(scale, epsilon, alpha, *worst_data_set(scale, epsilon, alpha, n)) for n in (2_000, 20_000)]
    assert losses[0] < losses[1] <= bound
    assert losses[1] > bound * (1 - 1e-2 if scale.n_levels > 11 else 1 - 1e-3)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_no_small_data_set_exceeds_the_bound(epsilon, size):
    """Every data set of up to four ratings, every change: the oracle is enumeration."""
    scale = Scale(1, 4)
    bound = AsPublished(scale, epsilon, 0.3).epsilon
    for others in combinations_with_replacement(scale.values, size - 1):
        for old in scale.values:
            for new in scale.values:
                loss = data_set_loss(scale, epsilon, 0.3, np.array([old, *others]), 0, new)
                assert loss <= bound


def test_no_random_data_set_exceeds_the_bound():
    rng = np.random.default_rng(0)
    for _ in range(300):
        n = int(rng.integers(2, 60))
        ratings = STARS.values[rng.choice(5, size=n, p=rng.dirichlet(np.full(5, 0.3)))]
        epsilon = float(rng.uniform(0.01, 10))
        loss = data_set_loss(STARS, epsilon, 0.3, ratings, int(rng.integers(n)), float(rng.choice(STARS.values)))
        assert loss <= AsPublished(STARS, epsilon, 0.3).epsilon


@pytest.mark.parametrize("epsilon", [0.05, 0.1, 0.5, 1.0, 5.0, 10.0])
def test_as_published_always_exceeds_its_nominal_epsilon(epsilon):
    assert AsPublished(STARS, epsilon).epsilon > epsilon * 1.4


def test_the_table_it_draws_from_moves_with_the_mean():
    mechanism = AsPublished(STARS, 1.0)
    assert (mechanism.channel(3.0).weights != mechanism.channel(3.01).weights).any()
