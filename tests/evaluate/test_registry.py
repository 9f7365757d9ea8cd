"""One contract for every method, and the behaviour expected of each at both ends of epsilon."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from dpsr.data import Ratings, realistic
from dpsr.errors import ParameterError, PrivacyError
from dpsr.evaluate import ALS, rmse, score
from dpsr.evaluate.contract import Protection, Recommender
from dpsr.evaluate.metrics.ranking import Predictor
from dpsr.evaluate.registry import METHODS, NEARLY_NO_NOISE, build, chosen_methods, compared_methods, method
from dpsr.types import Scale

PRIVATE = [name for name in compared_methods() if METHODS[name].budgeted]
CHANNELS = ("dpsr", "dpsr-paper", "dpsr-as-published", "laplace-als", "laplace-mf", "gaussian-als", "gaussian-mf")
FIT_THE_NOISE = ("laplace-mf", "gaussian-mf", "dpsr-paper", "dpsr-as-published", "dp-als-tuned")
"""A factorisation whose rank and ridge do not follow the noise does not fall back on the prior; so it was published."""
DELTA = 1e-5


@cache
def parts():
    return realistic(4, n_users=150, n_items=60, n_ratings=4500).split(0.2, seed=0)


def fitted(name, epsilon, seed=0):
    return _fitted(name, epsilon if METHODS[name].budgeted else None, seed)


@cache
def _fitted(name, epsilon, seed):
    return build(name, epsilon, DELTA, seed).fit(parts()[0])


@cache
def error(name, epsilon):
    test = parts()[1]
    return rmse(test.values, fitted(name, epsilon).predict(test.mask.users, test.mask.items))


def everyone(mask):
    return (grid.ravel() for grid in np.meshgrid(range(-1, mask.n_users), range(-1, mask.n_items), indexing="ij"))


@pytest.mark.parametrize("name", METHODS)
class TestContract:
    def test_it_is_a_recommender_and_a_predictor(self, name):
        found = fitted(name, 1.0)
        assert isinstance(found, Recommender)
        assert isinstance(found, Predictor)

    def test_its_receipt_is_what_the_registry_says_of_it(self, name):
        entry, protection = METHODS[name], fitted(name, 1.0).protection
        assert isinstance(protection, Protection)
        assert protection.public
        assert (protection.unit, protection.joint) == (entry.unit, entry.joint)
        asked = 1.0 if entry.budgeted else NEARLY_NO_NOISE
        if entry.price == "none":
            assert (protection.unit, protection.epsilon, entry.budgeted) == ("none", np.inf, False)
            return
        assert "seeded" in protection.note
        assert (0 < protection.delta <= DELTA) if entry.price == "with delta" else protection.delta == 0
        if entry.price == "not kept":
            assert protection.epsilon > asked
        else:
            assert 0.95 * asked < protection.epsilon <= asked * (1 + 1e-9)

    def test_predictions_are_finite_and_inside_the_scale_for_everyone(self, name):
        users, items = everyone(parts()[0].mask)
        found = fitted(name, 1.0).predict(users, items)
        assert ((found >= 1) & (found <= 5)).all()

    def test_it_can_be_scored(self, name):
        assert np.isfinite(score(fitted(name, 1.0), *parts()).ndcg)

    def test_scores_are_finite_and_one_per_item(self, name):
        found = fitted(name, 1.0).scores(3)
        assert found.shape == (60,)
        assert np.isfinite(found).all()

    def test_the_seed_decides(self, name):
        test = parts()[1]
        cells = test.mask.users, test.mask.items
        again = _fitted.__wrapped__(name, 1.0 if METHODS[name].budgeted else None, 0).predict(*cells)
        np.testing.assert_array_equal(again, fitted(name, 1.0).predict(*cells))
        if METHODS[name].budgeted:
            assert (fitted(name, 1.0, seed=1).predict(*cells) != again).any()


def awkward(kind):
    rng = np.random.default_rng(1)
    if kind == "two levels":
        cells = rng.choice(20 * 15, 120, replace=False)
        return Ratings.from_arrays(cells // 15, cells % 15, rng.integers(0, 2, 120), scale=Scale(0, 1))
    if kind == "one rating":
        whole = Ratings.from_arrays([0, 1], [0, 1], [2, 4], scale=Scale(1, 5))
        return Ratings(whole.mask.select(np.array([True, False])), whole.levels[:1], whole.scale)
    if kind == "all equal":
        cells = rng.choice(20 * 15, 120, replace=False)
        return Ratings.from_arrays(cells // 15, cells % 15, np.full(120, 4), scale=Scale(1, 5))
    users = np.concatenate([np.repeat(np.arange(12), 8), [12]])
    items = np.concatenate([np.tile(np.arange(8), 12), [8]])
    whole = Ratings.from_arrays(users, items, rng.integers(1, 6, len(users)), scale=Scale(1, 5))
    keep = whole.mask.items != 3  # user 12 has one rating, nobody else rated item 8, item 3 has none left
    return Ratings(whole.mask.select(keep), whole.levels[keep], whole.scale)


@pytest.mark.parametrize("kind", ["lonely", "two levels", "one rating", "all equal"])
@pytest.mark.parametrize("name", METHODS)
def test_awkward_tables_do_not_break_it(name, kind):
    ratings = awkward(kind)
    peer = build(name, 1.0 if METHODS[name].budgeted else None, DELTA, 0).fit(ratings)
    found = peer.predict(*everyone(ratings.mask))
    assert ((found >= ratings.scale.low) & (found <= ratings.scale.high)).all()
    assert np.isfinite(peer.scores(0)).all()


@pytest.mark.parametrize("name", [name for name in PRIVATE if name not in CHANNELS])
def test_with_hardly_any_noise_it_comes_near_the_models_without(name):
    """Within a twentieth of the bias model; local DP still sees one number a user and round (see below), and the ridges
    that were published for DP-ALS are those of tens of thousands of people."""
    if name in ("shin-ldp-mf", "dp-als-tuned"):
        assert error(name, 1000.0) <= error("constant", None)
    elif name == "noisy-level":
        assert error(name, 1000.0) <= 1.02 * error("own-mean", None)
    else:
        assert error(name, 1000.0) <= 1.05 * error("bias", None)


@pytest.mark.parametrize("name", ["laplace-als", "dpsr"])
def test_channels_with_hardly_any_noise_come_near_the_models_without(name):
    assert error(name, 20.0) <= 1.03 * error("als", None)


@pytest.mark.parametrize("name", ["laplace-mf", "gaussian-mf"])
def test_the_papers_factorisation_of_hardly_noisy_ratings_comes_near_its_own_without_noise(name):
    assert error(name, 29.0) == pytest.approx(error("paper-mf", None), rel=0.05)


@pytest.mark.parametrize("name", PRIVATE)
def test_with_hardly_any_budget_it_falls_back_on_a_prior(name):
    """No worse than the worse of the mean and the public midpoint, and a little for noise in the mean."""
    test = parts()[1]
    prior = max(error("constant", None), rmse(test.values, np.full(len(test), 3.0)))
    if name not in FIT_THE_NOISE:
        assert error(name, 0.01) <= 1.1 * prior


@pytest.mark.parametrize("name", [name for name in PRIVATE if name not in ("dpsr-as-published", "shin-ldp-mf")])
def test_more_budget_means_less_error(name):
    high = 20.0 if name in CHANNELS else 200.0
    assert error(name, high) < error(name, 0.05)


def test_local_reports_teach_item_biases_when_there_are_very_many_users():
    """Few items, many users and a large budget: the only place where one number a round is enough."""
    train, test = realistic(3, n_users=6000, n_items=12, n_ratings=30_000).split(0.2, seed=0)
    blind, taught = (
        rmse(
            test.values,
            build("shin-ldp-mf", epsilon, DELTA, 0).fit(train).predict(test.mask.users, test.mask.items),
        )
        for epsilon in (0.05, 500.0)
    )
    assert taught < 0.99 * blind


def test_an_unknown_method_is_refused_with_the_known_ones():
    with pytest.raises(ParameterError, match=r"dp-sgd-mf.*module:factory.*found magic"):
        method("magic")
    with pytest.raises(ParameterError, match="must be importable"):
        method("nowhere:factory")
    with pytest.raises(ParameterError, match="found none"):
        chosen_methods([])


def test_a_private_method_without_budget_is_refused():
    with pytest.raises(PrivacyError, match="needs an epsilon"):
        build("dp-als", None, DELTA, 0)
    for wrong in (0.0, -1.0, np.inf, np.nan):
        with pytest.raises(PrivacyError, match="finite epsilon"):
            build("dp-als", wrong, DELTA, 0).fit(parts()[0])


def test_somebodys_own_method_is_a_factory_that_may_say_that_it_takes_no_budget():
    level, hanging = chosen_methods(["strange_methods:level", "strange_methods:hanging", "strange_methods:level"])
    assert (level.budgeted, hanging.budgeted) == (True, False)
    assert level.build(2.0, DELTA, 0, 0).protection.epsilon == 2.0


def test_the_names_promised_are_there_and_variants_of_ours_are_run_only_when_asked_for():
    promised = (
        "laplace-als laplace-mf gaussian-als gaussian-mf dp-sgd-mf objective-mf mcsherry-mironov berlioz-input "
        "berlioz-als shin-ldp-mf denoised-dp-mf dp-als dp-als-tuned noisy-bias noisy-level own-mean dpsr-paper "
        "dpsr-as-published dpsr constant popularity bias item-knn als svd++ paper-mf"
    )
    assert set(promised.split()) <= set(compared_methods())
    variants = set(METHODS) - set(compared_methods())
    assert {"dpsr-20", "dpsr-without-window"} <= variants
    assert all(METHODS[name].variant_of == "dpsr" for name in variants)


def test_noise_and_learner_have_streams_of_their_own():
    train, test = parts()
    cells = test.mask.users, test.mask.items

    def predictions(noise, learner):
        return build("laplace-mf", 1.0, DELTA, noise, learner).fit(train).predict(*cells)

    first = predictions(0, 0)
    assert (first != predictions(0, 1)).any()
    assert (first != predictions(1, 0)).any()
    np.testing.assert_array_equal(build("laplace-mf", 1.0, DELTA, 0).fit(train).predict(*cells), first)


def test_the_list_by_counts_reads_no_value():
    train, _ = parts()
    found = build("popularity", None, DELTA, 0).fit(train)
    np.testing.assert_array_equal(found.scores(3), train.mask.item_counts)


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_noisy_ratings_are_clipped_before_the_learner_sees_them(noise, monkeypatch):
    seen = []

    class Spy(ALS):
        def fit(self, mask, values, scale):
            seen.append(values)
            return super().fit(mask, values, scale)

    monkeypatch.setattr("dpsr.evaluate.peers.noisy_ratings.ALS", Spy)
    build(f"{noise}-als", 1.0, DELTA, 3).fit(parts()[0])
    assert seen[0].min() >= 1
    assert seen[0].max() <= 5
    assert len(np.unique(seen[0])) > 5


def test_the_documents_table_of_methods_is_the_registry():
    """docs/peers.md says of every private method what the registry says."""
    prices = {"pure": "ε", "with delta": "ε, δ", "not kept": "more than ε"}
    page = (Path(__file__).parents[2] / "docs" / "peers.md").read_text("utf-8")
    rows = re.findall(r"^\| (`.*?) \| (.*?) \| (.*?) \| (yes|no) \|$", page, re.MULTILINE)
    told = {name: row[1:] for row in rows for name in re.findall(r"`([^`]+)`", row[0])}
    assert told.keys() == set(PRIVATE)
    for name, (unit, price, joint) in told.items():
        entry = METHODS[name]
        assert unit.removesuffix(", local") == entry.unit
        assert (price, joint == "yes") == (prices[entry.price], entry.joint)
