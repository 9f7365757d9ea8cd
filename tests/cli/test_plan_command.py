"""`dpsr plan`: what each epsilon would buy, before anything is spent."""

import json

import numpy as np
import pytest

from dpsr.data import realistic
from dpsr.pipeline.plan import measure_components
from dpsr.privacy.noise import NoiseSource


@pytest.fixture(scope="module")
def ratings():
    return realistic(0, n_users=300, n_items=150, n_ratings=9_000)


@pytest.fixture(scope="module")
def csv(ratings, tmp_path_factory):
    path = tmp_path_factory.mktemp("plan") / "ratings.csv"
    ratings.to_frame().to_csv(path, index=False)
    return path


def test_a_plan_names_every_budget_and_spends_nothing(dpsr, csv):
    outcome = dpsr("plan", csv, "--scale", "1:5:1", "--epsilon", "0.5,2", "--json")
    assert outcome.code == 0, outcome.err
    plan = json.loads(outcome.out)
    assert [row["epsilon"] for row in plan["forecasts"]] == [0.5, 2.0]
    assert plan["epsilon_spent"] == 0
    assert plan["spread"] is None
    for row in plan["forecasts"]:
        assert row["share"] ** 2 == pytest.approx(row["unknowable"] + row["learning"] + row["noise"])


def test_a_plan_does_not_depend_on_any_value(dpsr, ratings, csv, tmp_path):
    frame = ratings.to_frame()
    frame["rating"] = 6 - frame["rating"]
    frame.to_csv(tmp_path / "other.csv", index=False)
    assert dpsr("plan", csv, "--scale", "1:5:1").out == dpsr("plan", tmp_path / "other.csv", "--scale", "1:5:1").out


def test_a_stated_spread_turns_shares_into_rating_points(dpsr, csv):
    plan = json.loads(dpsr("plan", csv, "--scale", "1:5:1", "--spread", "1.1", "--json").out)
    assert plan["spread"] == 1.1
    shown = dpsr("plan", csv, "--scale", "1:5:1", "--spread", "1.1").out
    assert "RMSE" in shown
    assert f"{1.1 * plan['forecasts'][0]['share']:.3f}" in shown


def test_measuring_costs_what_was_stated_and_says_so(dpsr, csv):
    plan = json.loads(dpsr("plan", csv, "--scale", "1:5:1", "--measure", "0.2", "--json").out)
    assert 0.19 < plan["epsilon_spent"] <= 0.2
    assert sum(plan["components"].values()) == pytest.approx(1)
    assert "is spent" in dpsr("plan", csv, "--scale", "1:5:1", "--measure", "0.2").out


def test_measured_spread_and_shares_are_near_the_truth_when_much_is_paid(ratings):
    components, spread, certificate = measure_components(ratings, 10.0, noise=NoiseSource.seeded(0))
    assert spread == pytest.approx(ratings.values.std(), rel=0.05)
    assert not certificate.private
    counts = ratings.mask.item_counts
    means = np.bincount(ratings.mask.items, ratings.values, len(counts)) / np.maximum(counts, 1)
    between = np.average((means - ratings.values.mean()) ** 2, weights=counts) / ratings.values.var()
    assert components.item + components.features == pytest.approx(between, abs=0.15)


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (["--epsilon", "one"], "separated by commas"),
        (["--spread", "9"], "standard deviation"),
        (["--measure", "0"], "epsilon"),
    ],
)
def test_bad_options_are_one_sentence(dpsr, csv, options, word):
    outcome = dpsr("plan", csv, "--scale", "1:5:1", *options)
    assert outcome.code == 2
    assert word in outcome.err
