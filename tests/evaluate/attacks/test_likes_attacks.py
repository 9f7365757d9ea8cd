"""Attacks on lists: canaries are where the coins put them, a leak is found, and private sides stay within bounds."""

from math import tanh

import numpy as np
import pytest

from dpsr.data import realistic
from dpsr.evaluate.attacks.likes import ITEMS, attack_likes, plant_interactions, plant_people
from dpsr.evaluate.likes.contract import baskets_of
from dpsr.evaluate.likes.peers import noisy_popularity
from dpsr.evaluate.likes.registry import LIST_METHODS
from dpsr.evaluate.measure import LIKES_ATTACK
from dpsr.evaluate.measure.likes import measure_likes_attack
from dpsr.evaluate.peers.accounting import gaussian_multiplier
from dpsr.evaluate.registry import built
from dpsr.evaluate.runner.jobs import Job
from dpsr.evaluate.sets import RatingSet


@pytest.fixture(scope="module")
def likes():
    return realistic(0, n_users=400, n_items=50, n_ratings=5000).liked(at_least=1)


def advantage(planted, name, epsilon=None, seeds=range(3)):
    """Of the attacker on the item side, averaged over fits."""
    fits = [built(LIST_METHODS[name], epsilon, 1e-5, seed).fit for seed in seeds]
    return np.mean([attack_likes(fit, planted, 0)["folder"].advantage for fit in fits])


def test_planted_people_are_there_if_and_only_if_their_coin_says_so(likes):
    planted = plant_people(likes, 3)
    counts = planted.likes.mask.item_counts
    assert planted.items.shape == (100, ITEMS)
    np.testing.assert_array_equal(counts[planted.items], np.repeat(planted.coins[:, None].astype(int), ITEMS, axis=1))
    assert planted.likes.n_users == 400 + planted.coins.sum(), "who is not there leaves no name behind"
    assert planted.likes.n_items == 50 + planted.items.size, "the catalogue does not depend on coins"
    assert 20 < planted.coins.sum() < 80


def test_planted_interactions_are_one_more_item_of_somebody_who_shows_another(likes):
    planted = plant_interactions(likes, 3)
    assert planted.likes.n_users == 400
    assert planted.likes.n_interactions == likes.n_interactions + planted.coins.sum()
    baskets = baskets_of(planted.likes.mask).tocsc()
    for item, known, coin in zip(planted.items[:, 0], planted.known, planted.coins, strict=True):
        people = baskets[:, item].nonzero()[0]
        assert len(people) == coin
        if coin:
            assert baskets[people[0], known] == 1


@pytest.mark.parametrize("plant", [plant_people, plant_interactions])
def test_without_privacy_the_item_side_gives_everybody_away(likes, plant):
    assert advantage(plant(likes, 1), "popularity", seeds=[0]) > 0.95


@pytest.mark.parametrize("name", ["noisy-popularity", "dp-ials", "dpsr-likes"])
def test_a_private_item_side_gives_away_no_more_than_epsilon_allows(likes, name):
    planted = plant_people(likes, 2)
    assert advantage(planted, name, 1.0) < tanh(0.5) + 0.15, "a hundred coins have a margin of some hundredths"


def test_counts_without_noise_beside_private_ones_would_be_found(likes, monkeypatch):
    """A planted error: a fiftieth of the noise that is charged for."""
    honest = gaussian_multiplier
    monkeypatch.setattr(noisy_popularity, "gaussian_multiplier", lambda *given, **named: honest(*given, **named) / 50)
    assert advantage(plant_people(likes, 2), "noisy-popularity", 1.0) > tanh(0.5) + 0.15


def test_rows_hold_both_targets_and_both_attackers_beside_their_bounds(tmp_path):
    job = Job(LIKES_ATTACK, RatingSet("realistic"), "noisy-popularity", 1.0, 0, 1, 1, "held-out people")
    rows = measure_likes_attack(job, tmp_path)
    ways = [f"{what}, from the {where}" for what in ("person", "interaction") for where in ("folder", "lists")]
    assert [row["attack"] for row in rows] == ways
    assert rows[0]["bound"] == pytest.approx(tanh(0.5), abs=1e-4)
    assert rows[2]["bound"] == pytest.approx(tanh(1.0), abs=1e-4), "a replaced person is two neighbours away"
    assert {row["unit"] for row in rows} == {"user"}
    assert all(row["advantage"] <= 1 for row in rows)
