"""The frontier at the units of people: who takes part, that units are not mixed silently, and what the tables say."""

from __future__ import annotations

import numpy as np
import pyarrow.parquet as pq
import pytest

from dpsr import DPSR
from dpsr.data import realistic
from dpsr.errors import ParameterError
from dpsr.evaluate.contract import JOINT
from dpsr.evaluate.measure import METHOD
from dpsr.evaluate.protocol import ERRORS_ONLY
from dpsr.evaluate.registry import METHODS, PEOPLE, build
from dpsr.evaluate.report.tidy import tidy
from dpsr.evaluate.runner.jobs import Job, noise_seed
from dpsr.evaluate.sets import KNOWN, RatingSet
from dpsr.evaluate.studies.frontier import people_frontier_study
from dpsr.evaluate.studies.frontier.people import PEOPLE_UNITS, people_tables
from dpsr.evaluate.studies.frontier.targets import PEOPLE_EPSILONS, PEOPLE_TARGETS
from dpsr.evaluate.studies.study import run_study
from dpsr.types import Scale

SCALES = {"tiny": Scale(1, 5)}
OF_THE_UNIT = {"user": "user", "rating": "rating (add/remove)"}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A folder with one small set."""
    folder = tmp_path_factory.mktemp("data")
    pq.write_table(realistic(0, n_users=80, n_items=60, n_ratings=1500).to_arrow(), folder / "tiny.parquet")
    return folder


def rows_of(*records):
    """(method, epsilon, numbers) as the rows of a run."""
    known = RatingSet("ml-latest-small")
    return tidy(METHOD, [(Job(METHOD, known, m, e, 0, 0, 0, ERRORS_ONLY), [row]) for m, e, row in records])


@pytest.mark.parametrize("unit", PEOPLE_UNITS)
def test_only_methods_of_the_unit_and_models_without_privacy_take_part_and_another_unit_is_named_in_its_row(unit):
    for name, title in PEOPLE_UNITS[unit].titles.items():
        assert METHODS[name].unit in (OF_THE_UNIT[unit], "none") or "ANOTHER UNIT" in title
    assert PEOPLE[unit] in PEOPLE_UNITS[unit].titles
    assert set(PEOPLE_UNITS[unit].lines) == {name for name in PEOPLE_UNITS[unit].titles if METHODS[name].budgeted}


@pytest.mark.parametrize("unit", PEOPLE_UNITS)
def test_the_method_predicts_what_personalise_predicts_and_says_joint_dp(unit):
    train, test = realistic(1, n_users=80, n_items=50, n_ratings=1_500).split(0.2, seed=0)
    method = build(PEOPLE[unit], 3.0, 1e-5, 7).fit(train)
    where = test.mask.users.astype(np.int64), test.mask.items.astype(np.int64)
    ids = test.to_arrow()
    expected = DPSR(3.0, unit=unit, delta=1e-5, random_state=7).fit(train).personalise(train)
    found = method.predict(*where)
    np.testing.assert_allclose(found, expected.predict(ids["user"].to_numpy(), ids["item"].to_numpy()), rtol=1e-12)
    assert JOINT in method.protection.note
    assert (method.protection.unit, method.protection.delta) == (OF_THE_UNIT[unit], 1e-5)
    assert 0.99 * 3 < method.protection.epsilon <= 3


def test_scores_order_items_as_predictions_do():
    train, _ = realistic(1, n_users=80, n_items=50, n_ratings=1_500).split(0.2, seed=0)
    method = build(PEOPLE["user"], 20.0, 1e-5, 7).fit(train)
    items = np.arange(50)
    np.testing.assert_allclose(
        train.scale.clip(method.scores(3)), method.predict(np.full(50, 3), items), rtol=0, atol=1e-9
    )
    strangers = method.predict(np.array([-1, 3, -1]), np.array([2, -1, -1]))
    assert len(set(strangers)) == 1, "nothing but the level is told of strangers and of strange items"


def test_a_run_writes_tables_of_its_unit_alone(data, tmp_path):
    study = people_frontier_study(data, "user", scales=SCALES, epsilons=[1.0], seeds=[0], methods=["dpsr-user", "bias"])
    assert {job.protocol for job in study.jobs} == {ERRORS_ONLY}
    assert {job.delta for job in study.jobs} == {1e-5}
    assert {job.noise_seed for job in study.jobs if job.epsilon} == {noise_seed("tiny", "dpsr-user", 1.0, 0)}
    report = run_study(study, tmp_path)
    assert [path.name for path in report.files] == [
        "frontier_user.md", "frontier_user.csv", "frontier_user.parquet", "frontier_user.json",
        "frontier_user_tiny.png", "frontier_user_tiny.svg",
    ]  # fmt: skip
    assert [table.name for table in report.tables] == ["rmse_user_tiny", "time", "budget_user"]
    assert "one person" in report.tables[0].title
    assert "NOT PRIVATE" in report.report.read_text("utf-8")
    assert report.tables[-1].rows[0][1] == "1 kept"


def test_goals_and_promises_say_what_was_met_and_by_how_much():
    rows = rows_of(
        ("dpsr-user", 1.0, {"rmse": 0.93, "exact_epsilon": 1.1, "delta": 1e-5, "cpu_seconds": 1.0}),
        ("dp-als", 1.0, {"rmse": 0.92, "exact_epsilon": 1.0, "delta": 1e-5, "cpu_seconds": 1.0}),
        ("own-mean", None, {"rmse": 0.94, "exact_epsilon": None, "delta": 0.0, "cpu_seconds": 1.0}),
    )
    tables = {table.name: table for table in people_tables(rows, ["ml-latest-small"], [1.0], "user")}
    errors = {row[0]: row[1] for row in tables["rmse_user_ml-latest-small"].rows}
    assert errors["ml-latest-small: reach"] == "0.935 met"
    assert errors["ml-latest-small: aim below"] == "0.922 missed"
    promises = {row[0].partition(": ")[2]: row[1] for row in tables["promises_user"].rows}
    assert promises == {"at most the own mean's + 0.5 %": "met +1.56%", "at most DP-ALS's": "missed -1.09%"}
    budgets = {row[0]: row[1] for row in tables["budget_user"].rows}
    assert budgets["dpsr, personalised (joint DP)"] == "1.1 exceeded"


def test_every_known_set_has_targets_that_fall_with_epsilon():
    assert set(PEOPLE_TARGETS) == set(KNOWN)
    for targets in PEOPLE_TARGETS.values():
        for goals in (targets.reach, targets.aim):
            assert list(goals) == list(PEOPLE_EPSILONS)
            assert list(goals.values()) == sorted(goals.values(), reverse=True)
        assert all(targets.aim[epsilon] < targets.reach[epsilon] for epsilon in PEOPLE_EPSILONS)


@pytest.mark.parametrize("wrong", [{"unit": "value"}, {"unit": "household"}, {"unit": "user", "methods": ["dpsr"]}])
def test_a_unit_that_is_none_of_people_and_a_method_of_another_unit_are_refused(data, wrong):
    with pytest.raises(ParameterError, match=r"a unit among user, rating|methods are dpsr-user"):
        people_frontier_study(data, scales=SCALES, **wrong)
