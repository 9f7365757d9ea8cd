"""What the reference implementation of DP-ALS really costs (docs/peers.md): movements measured, figures computed."""

import re
from math import sqrt
from pathlib import Path

import dp_accounting
import numpy as np
import pytest

from dpsr.evaluate.peers.accounting import gaussian_epsilon
from dpsr.evaluate.peers.reference_price import CENTRING, ENTRIES, ML_10M, ORDERS, renyi_epsilon

PAGE = Path(__file__).parents[3] / "docs" / "peers.md"
SECTION = re.search(r"### Does the reference keep.*?(?=\n## )", PAGE.read_text("utf-8"), re.S)[0]
K, STARS, CENTRE = 100, np.arange(0.5, 5.5, 0.5), 3.5


def accounted(parts, delta):
    """The epsilon that dp-accounting gives on the reference's orders, for parts of Gaussian noise by their mu^2."""
    accountant = dp_accounting.rdp.RdpAccountant(list(ORDERS))
    for squared_mu in parts:
        accountant.compose(dp_accounting.GaussianDpEvent(1 / sqrt(squared_mu)))
    return accountant.get_epsilon(delta)


@pytest.mark.parametrize("setting", ML_10M)
def test_the_noise_is_what_the_references_own_accounting_chooses(setting):
    z = setting.multiplier
    s, k, steps = setting.count_deviation, setting.per_user, setting.steps
    events = [s**-2, s**-2, (sqrt(k) / s) ** 2, *([z**-2] * (2 * steps))]
    assert accounted(events, setting.delta) == pytest.approx(setting.nominal, rel=1e-6)


@pytest.mark.parametrize("squared_mu", [1e-4, 0.01, 0.3, 5.0])
def test_renyi_accounting_agrees_with_dp_accounting_and_is_never_below_the_exact_price(squared_mu):
    assert renyi_epsilon(squared_mu, 1e-5) == pytest.approx(accounted([squared_mu], 1e-5), rel=1e-9)
    assert renyi_epsilon(squared_mu, 1e-5) >= gaussian_epsilon(sqrt(squared_mu), 1e-5)


def test_the_document_states_the_computed_figures():
    table = SECTION.split("| nominal ε |", 1)[1].split("\n\n", 1)[0]
    stated = [[float(cell) for cell in line.strip("| ").split("|")] for line in table.splitlines()[2:]]
    for row, setting in zip(stated, ML_10M, strict=True):
        repaired = ((), CENTRING, ENTRIES, (*CENTRING, *ENTRIES))
        assert row == [setting.nominal, *(round(setting.epsilon(*parts), 2) for parts in repaired)]


def test_the_published_settings_cost_about_three_twenty_and_a_hundred_and_twenty_seven():
    true = [setting.epsilon(*CENTRING, *ENTRIES) for setting in ML_10M]
    np.testing.assert_allclose(true, [3.1, 19.6, 127], rtol=0.005)


def moved(statistic, user):
    """How far a statistic moves when the user joins somebody else."""
    other = np.full(K, 3.0)
    return np.linalg.norm(statistic([other, user]) - statistic([other]))


def test_a_user_moves_the_sum_of_ratings_by_k_times_the_largest_and_their_number_by_k():
    """The extremal user rates everything with five stars: both bounds are attained, and charged as sqrt k and one."""
    user = np.full(K, STARS.max())
    in_sum = moved(lambda people: np.array([np.concatenate(people).sum()]), user)
    in_number = moved(lambda people: np.array([len(np.concatenate(people))]), user)
    assert in_sum == K * STARS.max()
    assert in_number == K
    for setting in ML_10M:
        s, true = setting.count_deviation, setting.true(setting.multiplier)
        assert true["sum"] == pytest.approx((in_sum / (STARS.max() * sqrt(K) * s)) ** 2)
        assert true["number"] == pytest.approx((in_number / s) ** 2)


def test_a_user_moves_grams_as_charged_and_right_sides_by_three_times_as_much():
    """All ratings half a star, about a mean of 3.5; weights with sum c^2 = B, a vector of length one."""
    u, weights = np.array([0.6, 0.8]), np.ones(K)
    entries = np.full(K, STARS.min() - CENTRE)
    grams = weights[:, None, None] * np.outer(u, u)
    rights = (weights * entries)[:, None] * u
    assert np.linalg.norm(grams) == pytest.approx(sqrt((weights**2).sum()))
    assert np.linalg.norm(rights) == pytest.approx(np.abs(STARS - CENTRE).max() * sqrt((weights**2).sum()))
    setting, z = ML_10M[0], ML_10M[0].multiplier
    assert setting.true(z)["grams"] == setting.charged(z)["grams"]
    assert setting.true(z)["rights"] == pytest.approx(9 * setting.charged(z)["rights"])


def test_a_user_moves_counts_as_charged():
    items = moved(
        lambda people: sum(np.bincount(np.arange(len(one)), minlength=K) for one in people).astype(float), np.ones(K)
    )
    assert items == sqrt(K)


def test_one_user_decides_which_items_are_frequent_where_counts_are_exact():
    counts, user = np.array([10, 10, 3]), np.array([0, 1, 0])
    assert np.argmax(counts) != np.argmax(counts + user), "ties go to the first: any fixed rule has such a neighbour"
