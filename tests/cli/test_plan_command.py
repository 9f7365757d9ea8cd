"""`dpsr plan`: what each epsilon would buy, before anything is spent."""

import json

import pytest

from dpsr.data import realistic


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
    assert plan["spread_assumed"]
    for row in plan["forecasts"]:
        assert row["share"] ** 2 == pytest.approx(row["unknowable"] + row["learning"] + row["noise"])


def test_a_plan_does_not_depend_on_any_value(dpsr, ratings, csv, tmp_path):
    frame = ratings.to_frame()
    frame["rating"] = 6 - frame["rating"]
    other = tmp_path / "other" / csv.name
    other.parent.mkdir()
    frame.to_csv(other, index=False)
    assert dpsr("plan", csv, "--scale", "1:5:1").out == dpsr("plan", other, "--scale", "1:5:1").out


def test_a_stated_spread_turns_shares_into_rating_points(dpsr, csv):
    plan = json.loads(dpsr("plan", csv, "--scale", "1:5:1", "--spread", "1.1", "--json").out)
    assert plan["spread"] == 1.1
    shown = dpsr("plan", csv, "--scale", "1:5:1", "--spread", "1.1").out
    assert "RMSE" in shown
    assert f"{1.1 * plan['forecasts'][0]['share']:.2f}" in shown
    assert "assumed" not in shown


def test_the_error_is_said_in_rating_points_first_and_what_it_consists_of_adds_up(dpsr, csv):
    shown = dpsr("plan", csv, "--scale", "1:5:1", "--epsilon", "1").out
    heads = [head.strip() for head in next(line for line in shown.splitlines() if "epsilon" in line).split("┃")]
    assert heads[1:3] == ["epsilon", "RMSE"]
    row = [cell.strip() for cell in next(line for line in shown.splitlines() if line.startswith("│")).split("│")]
    plan = json.loads(dpsr("plan", csv, "--scale", "1:5:1", "--epsilon", "1", "--json").out)
    assert plan["spread_assumed"]
    assert row[2] == f"{plan['spread'] * plan['forecasts'][0]['share']:.2f}"
    assert sum(int(cell.rstrip("%")) for cell in row[4:7]) == pytest.approx(100, abs=2)
    assert "assumed; --spread" in " ".join(shown.split())


def test_a_plan_cannot_spend_and_knows_no_ledger(dpsr, csv):
    """Measuring made the forecast worse, for a price; docs/decisions/0034."""
    outcome = dpsr("plan", csv, "--scale", "1:5:1", "--measure", "0.1")
    assert outcome.code == 2
    assert "No such option: --measure" in outcome.err


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (["--epsilon", "one"], "separated by commas"),
        (["--spread", "9"], "standard deviation"),
    ],
)
def test_bad_options_are_one_sentence(dpsr, csv, options, word):
    outcome = dpsr("plan", csv, "--scale", "1:5:1", *options)
    assert outcome.code == 2
    assert word in outcome.err


TOTALS = ("--users", "5000", "--items", "2000", "--ratings", "300000")
PEOPLE = ("--scale", "1:5:1", "--unit", "user", "--delta", "1e-6", "--epsilon", "1,5")


def test_people_are_planned_from_totals_and_nothing_is_read(dpsr):
    plan = json.loads(dpsr("plan", *PEOPLE, *TOTALS, "--json").out)
    assert plan["private"]
    assert plan["people"] == pytest.approx(5_000)
    first, second = plan["forecasts"]
    assert second["rmse"] < first["rmse"] < plan["own_means"]
    assert second["people_for_factors"] < first["people_for_factors"]
    shown = " ".join(dpsr("plan", *PEOPLE, *TOTALS).out.split())
    assert "nothing was read" in shown
    assert "assumed; --spread" in shown


def test_a_plan_from_a_file_of_people_says_that_it_is_not_private(dpsr, csv):
    outcome = dpsr("plan", csv, *PEOPLE)
    assert outcome.code == 0, outcome.err
    assert "not private, for your eyes only" in " ".join(outcome.out.split())
    assert not json.loads(dpsr("plan", csv, *PEOPLE, "--json").out)["private"]


def test_at_the_unit_rating_the_same_totals_promise_no_less(dpsr):
    rating = json.loads(dpsr("plan", *(word.replace("user", "rating") for word in PEOPLE), *TOTALS, "--json").out)
    user = json.loads(dpsr("plan", *PEOPLE, *TOTALS, "--json").out)
    pairs = list(zip(rating["forecasts"], user["forecasts"], strict=True))
    assert pairs
    assert all(one["rmse"] <= other["rmse"] for one, other in pairs)


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (["--scale", "1:5:1"], "name a file"),
        (["--scale", "1:5:1", "--unit", "user", *TOTALS], "needs a delta"),
        ([*PEOPLE, "--users", "10"], "--users, --items and --ratings"),
        ([*PEOPLE, "--users", "10", "--items", "2", "--ratings", "30"], "none twice"),
        (["--scale", "1:5:1", "--unit", "rating", *TOTALS], "needs a delta"),
    ],
)
def test_what_cannot_be_planned_is_one_sentence(dpsr, options, word):
    outcome = dpsr("plan", *options)
    assert outcome.code == 2
    assert word in outcome.err
