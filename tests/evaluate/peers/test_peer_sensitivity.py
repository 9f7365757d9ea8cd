"""Every private peer on neighbours: given the same answers so far, no statistic moves by more than is paid for.

A neighbour differs in the unit the method claims: one value, the presence of one rating, or all ratings of one user.
Ratings and users that come and go are the last ones, so that the random sample of the others stays what it was.
"""

from __future__ import annotations

import numpy as np
import pytest
from transcript import movement, record, replay

from dpsr.data import Ratings
from dpsr.evaluate.contract import JOINT
from dpsr.evaluate.peers import berlioz, dp_als, dp_als_tuned, dp_sgd, dp_sgd_user, noisy_bias
from dpsr.evaluate.peers.dp_als_tuned import PublishedDPALS
from dpsr.types import Scale

VALUE = (
    "objective-mf",
    "objective-mf-local",
    "berlioz-input",
    "berlioz-als",
    "mcsherry-mironov",
    "mcsherry-mironov-svd",
)
RATING = ("dp-sgd-mf", "denoised-dp-mf")
USER = ("dp-als", "dp-als-tuned", "dp-sgd-user", "noisy-bias", "shin-ldp-mf")
SCALE = Scale(1, 5)
ROUNDING = 1 + 1e-9


@pytest.fixture(autouse=True)
def one_published_setting(monkeypatch):
    """Of a setting that is given: how it was chosen is not charged, and says so."""
    monkeypatch.setattr(dp_als_tuned, "chosen", lambda ratings, budget, seed: PublishedDPALS(*budget))


def table(seed, n_users=40, n_items=30, n_ratings=500):
    """Ratings of which the last user has rated everything, five stars and one star in turn."""
    rng = np.random.default_rng(seed)
    cells = np.sort(rng.choice((n_users - 1) * n_items, n_ratings, replace=False))
    users = np.concatenate([cells // n_items, np.full(n_items, n_users - 1)])
    items = np.concatenate([cells % n_items, np.arange(n_items)])
    values = np.concatenate([rng.integers(1, 6, n_ratings), np.where(np.arange(n_items) % 2, 1, 5)])
    return Ratings.from_arrays(users, items, values, scale=SCALE)


def with_value(ratings, place, level):
    levels = ratings.levels.copy()
    levels[place] = level
    return Ratings(ratings.mask, levels, ratings.scale)


def without(ratings, rows):
    keep = np.ones(len(ratings), dtype=bool)
    keep[rows] = False
    return Ratings(ratings.mask.select(keep), ratings.levels[keep], ratings.scale)


def shares(monkeypatch, name, epsilon, ratings, neighbour):
    """What part of its claimed sensitivity each release used up."""
    _, releases = record(monkeypatch, name, epsilon, ratings)
    _, asked = replay(monkeypatch, name, epsilon, neighbour, releases)
    used = []
    for release, statistic in zip(releases, asked, strict=True):
        moved, rows = movement(release, statistic)
        if release.price.mechanism in ("vector laplace", "local report"):
            assert rows <= 1, "these mechanisms are priced for one row"
        used.append(moved / release.price.sensitivity)
    return np.array(used)


@pytest.mark.parametrize("name", VALUE)
@pytest.mark.parametrize("seed", range(3))
def test_one_changed_value_moves_no_release_beyond_its_sensitivity(monkeypatch, name, seed):
    ratings, rng = table(seed), np.random.default_rng(seed)
    for place in rng.choice(len(ratings), 3, replace=False):
        neighbour = with_value(ratings, place, 0 if ratings.levels[place] > 2 else 4)
        assert shares(monkeypatch, name, 2.0, ratings, neighbour).max() <= ROUNDING


LEAST = {"mcsherry-mironov": 0.5, "mcsherry-mironov-svd": 0.5}
"""Of the covariance's bound 1 / sqrt 2 can be attained."""


@pytest.mark.parametrize("name", VALUE)
def test_the_extreme_change_of_value_comes_close_to_the_sensitivity(monkeypatch, name):
    """The last user, torn between one star and five, gives the last item five stars instead of one."""
    ratings = table(0)
    used = shares(monkeypatch, name, 20.0, ratings, with_value(ratings, len(ratings) - 1, 4))
    assert used.max() <= ROUNDING
    assert used[0] == pytest.approx(1)
    assert used[1] == pytest.approx(1)
    assert used[min(3, len(used) - 1) :].max() >= LEAST.get(name, 0.9)


@pytest.mark.parametrize("name", RATING)
@pytest.mark.parametrize("level", [0, 2, 4])
def test_one_rating_more_or_less_moves_no_release_beyond_its_sensitivity(monkeypatch, name, level):
    ratings = with_value(table(1), -1, level)
    used = shares(monkeypatch, name, 2.0, ratings, without(ratings, [len(ratings) - 1]))
    assert used.max() <= ROUNDING
    assert np.count_nonzero(used[1:]) <= dp_sgd.STEPS
    if level != 2:
        assert used[0] == pytest.approx(1)
        assert used.max() >= 0.99, "an extreme rating must reach the clipping length"


@pytest.mark.parametrize("name", USER)
@pytest.mark.parametrize("seed", range(3))
def test_a_whole_user_moves_no_release_beyond_its_sensitivity(monkeypatch, name, seed):
    ratings = table(seed)
    last = np.flatnonzero(ratings.mask.users == 39)
    for levels in (4, ratings.levels[last]):
        changed = with_value(ratings, last, levels)
        used = shares(monkeypatch, name, 2.0, changed, without(changed, last))
        assert 0 < used.max() <= ROUNDING


def test_a_user_torn_between_both_ends_uses_most_of_the_sensitivity_of_dp_als(monkeypatch):
    """Half of the ratings at either end, so that no bias of the user's own explains them."""
    ratings = table(0)
    last = np.flatnonzero(ratings.mask.users == 39)
    used = shares(monkeypatch, "dp-als", 2.0, ratings, without(ratings, last))
    assert used[1] == pytest.approx(1)
    assert (used[2:] >= 0.5).all()


def test_a_user_torn_between_both_ends_uses_most_of_the_sensitivity_of_its_published_form(monkeypatch):
    ratings = table(0)
    used = shares(monkeypatch, "dp-als-tuned", 2.0, ratings, without(ratings, np.flatnonzero(ratings.mask.users == 39)))
    assert used[1] == pytest.approx(1)
    assert used[2:].max() >= 0.5


def test_a_published_form_that_does_not_cut_users_vectors_is_measured_as_an_error(monkeypatch):
    monkeypatch.setattr(dp_als_tuned, "clip_rows", lambda x, bound: 30 * x)
    ratings = table(0)
    used = shares(monkeypatch, "dp-als-tuned", 2.0, ratings, without(ratings, np.flatnonzero(ratings.mask.users == 39)))
    assert used.max() > ROUNDING


def test_a_user_torn_between_both_ends_uses_nearly_all_of_the_sensitivity_of_noisy_biases(monkeypatch):
    ratings = table(0)
    used = shares(monkeypatch, "noisy-bias", 2.0, ratings, without(ratings, np.flatnonzero(ratings.mask.users == 39)))
    assert used[1] >= 0.95


def test_noisy_biases_that_weigh_every_rating_alike_are_measured_as_an_error(monkeypatch):
    monkeypatch.setattr(noisy_bias, "item_sums", lambda mask, r: np.stack([
        np.bincount(mask.items, one, minlength=mask.n_items) for one in (np.clip(r, -1, 1), np.ones(len(r)))
    ]))  # fmt: skip
    ratings = table(0)
    used = shares(monkeypatch, "noisy-bias", 2.0, ratings, without(ratings, np.flatnonzero(ratings.mask.users == 39)))
    assert used.max() > 2


@pytest.mark.parametrize("name", ["berlioz-als", "dp-sgd-mf", "dp-sgd-user", "dp-als"])
def test_a_planted_error_in_a_sensitivity_is_measured(monkeypatch, name):
    """Clamping, clipping and limiting twice as wide as is paid for must show."""
    ratings = table(0)
    last = np.flatnonzero(ratings.mask.users == 39)
    if name == "berlioz-als":
        honest = berlioz.clamped
        monkeypatch.setattr(berlioz, "clamped", lambda *given: 2 * honest(*given))
        neighbour = with_value(ratings, last[-1], 4)
    elif name == "dp-sgd-mf":
        honest = dp_sgd.clipped_gradient
        monkeypatch.setattr(dp_sgd, "clipped_gradient", lambda *given: honest(*given[:-1], 2 * given[-1]))
        ratings = with_value(ratings, -1, 0)
        neighbour = without(ratings, [len(ratings) - 1])
    elif name == "dp-sgd-user":
        honest = dp_sgd_user.clipped_gradients
        monkeypatch.setattr(dp_sgd_user, "clipped_gradients", lambda *given: honest(*given[:-1], 2 * given[-1]))
        monkeypatch.setattr(dp_sgd_user, "CLIP", 0.1)
        neighbour = without(ratings, last)
    else:
        monkeypatch.setattr(dp_als, "adaptive_weights", lambda mask, *_: np.full(len(ratings), 1.0)[: mask.n_ratings])
        neighbour = without(ratings, last)
    assert shares(monkeypatch, name, 2.0, ratings, neighbour).max() > ROUNDING


def test_the_sensitivity_of_the_covariance_follows_from_public_counts_and_is_not_the_measured_one(monkeypatch):
    ratings = table(0)
    _, first = record(monkeypatch, "mcsherry-mironov", 2.0, ratings)
    _, second = record(monkeypatch, "mcsherry-mironov", 2.0, with_value(ratings, slice(None), 0))
    assert [release.price for release in first] == [release.price for release in second]


@pytest.mark.parametrize(
    "name", ["mcsherry-mironov", "dp-als", "dp-sgd-user", "noisy-bias", "objective-mf-local", "shin-ldp-mf"]
)
def test_methods_that_read_a_users_own_ratings_say_so(monkeypatch, name):
    peer, _ = record(monkeypatch, name, 1.0, table(0))
    assert peer.protection.joint
    assert JOINT in peer.protection.note


def test_a_released_model_depends_on_values_only_through_its_answers(monkeypatch):
    """Central methods: the same answers give the same model, whatever the ratings were."""
    ratings = table(0)
    users, items = ratings.mask.users.astype(np.int64), ratings.mask.items.astype(np.int64)
    for name in ("objective-mf", "berlioz-input", "berlioz-als", "dp-sgd-mf", "denoised-dp-mf"):
        peer, releases = record(monkeypatch, name, 2.0, ratings)
        other, _ = replay(monkeypatch, name, 2.0, with_value(ratings, slice(None), 0), releases)
        np.testing.assert_array_equal(peer.predict(users, items), other.predict(users, items))


def test_the_table_of_neighbours_is_what_the_tests_think_it_is():
    ratings = table(0)
    assert ratings.mask.user_counts[-1] == 30
    assert ratings.levels[-30:].tolist() == [4, 0] * 15
