"""Tables: what is rounded and what is not, means over seeds, which figure is bold."""

import csv

import numpy as np
import pytest

from dpsr.errors import ParameterError
from dpsr.evaluate.contract import JOINT
from dpsr.evaluate.measure import METHOD
from dpsr.evaluate.protocol import SAMPLE_RANKED
from dpsr.evaluate.report.files import refill
from dpsr.evaluate.report.tables import Table, failures_table, methods_by_epsilon
from dpsr.evaluate.report.tidy import SCHEMAS, Averages, by_unit, means, tidy, units_of
from dpsr.evaluate.runner.jobs import Job
from dpsr.evaluate.sets import RatingSet
from dpsr.evaluate.studies.benchmark.tables import protecting


def runs(*facts):
    """(method, epsilon, seed, row) as runs of made-up jobs."""
    tiny = RatingSet("tiny")
    return [(Job(METHOD, tiny, m, e, s, 0, 0, SAMPLE_RANKED), [row]) for m, e, s, row in facts]


OURS = {"unit": "rating value", "note": "seeded noise"}
ROWS = runs(
    ("dpsr", 1.0, 0, {**OURS, "rmse": 0.8}),
    ("dpsr", 1.0, 1, {**OURS, "rmse": 1.0}),
    ("laplace-als", 1.0, 0, {**OURS, "rmse": 1.2}),
    ("dp-als", 1.0, 0, {"unit": "user", "note": JOINT, "rmse": 0.5}),
    ("als", None, 0, {"unit": "none", "note": "", "rmse": 0.7}),
    ("dp-sgd-mf", 1.0, 0, {"error": "Timeout: no result"}),
)


@pytest.fixture(scope="module")
def table():
    return tidy(METHOD, ROWS)


def test_a_table_keeps_full_precision_in_csv_and_rounds_in_markdown():
    table = Table("t", "Title", ("name", "p", "x"), (("a", 0.00001234, 1 / 3), ("b", None, 2)))
    assert list(csv.reader(table.csv().splitlines())) == [
        ["name", "p", "x"],
        ["a", "1.234e-05", str(1 / 3)],
        ["b", "", "2"],
    ]
    assert "| a | < 0.0001 | 0.333 |" in table.markdown()
    assert "| b |  | 2 |" in table.markdown()


def test_every_row_has_every_column_and_a_failure_only_its_reason(table):
    assert table.schema.equals(SCHEMAS[METHOD])
    failed = table.to_pylist()[-1]
    assert failed["error"] == "Timeout: no result"
    assert failed["rmse"] is None
    assert failures_table([table]).rows == (("tiny", "dp-sgd-mf", 1.0, 0, "Timeout: no result"),)


def test_means_and_deviations_are_over_seeds(table):
    mean = means(table, ("method", "epsilon"), "rmse")["dpsr", 1.0]
    assert mean.value == pytest.approx(0.9)
    assert mean.deviation == pytest.approx(np.std([0.8, 1.0], ddof=1))
    assert mean.seeds == 2


def test_a_method_without_a_budget_stands_at_every_epsilon(table):
    averages = Averages(table)
    assert averages.at("tiny", "als", 1.0).value == averages.at("tiny", "als", 7.0).value == 0.7
    assert averages.at("tiny", "dpsr", 2.0) is None
    assert averages.at("tiny", "dp-sgd-mf", 1.0) is None


def test_units_are_the_receipts_own_and_joint_dp_says_so(table):
    assert units_of(table) == {
        "dpsr": "rating value", "laplace-als": "rating value", "dp-als": "user, joint DP", "als": "none",
    }  # fmt: skip


def test_the_best_figure_with_our_unit_is_bold_and_no_other(table):
    """The user-level method has the smallest error, under another promise; the model without privacy under none."""
    shown = methods_by_epsilon(table, "tiny", "rmse", units_of(table), digits=3)
    cells = {row[0]: row[2] for row in shown.rows}
    assert cells == {
        "dpsr": "**0.900 ± 0.141**", "laplace-als": "1.200", "dp-als": "0.500", "als": "0.700",
    }  # fmt: skip
    assert shown.header == ("method", "protects", "ε = 1")


def test_among_methods_of_another_unit_the_best_promise_is_bold(table):
    shown = methods_by_epsilon(table, "tiny", "rmse", {"dp-als": "user, joint DP", "als": "none"}, digits=3)
    assert {row[0]: row[2] for row in shown.rows} == {"dp-als": "**0.500**", "als": "0.700"}


def test_every_unit_has_a_group_of_its_own_with_the_models_without_privacy():
    units = {"dpsr": "rating value", "dp-als": "user, joint DP", "noisy-bias": "user, joint DP", "als": "none"}
    assert by_unit(units) == {
        "rating value": {"dpsr": "rating value", "als": "none"},
        "user": {"dp-als": "user, joint DP", "noisy-bias": "user, joint DP", "als": "none"},
    }
    assert by_unit({"als": "none"}) == {"none": {"als": "none"}}
    told = protecting("user", Table("t", "tiny: RMSE", ("method",), ()))
    assert told.title == "tiny: RMSE; ε for one user"


def test_a_document_keeps_its_prose_and_gets_its_sections(tmp_path):
    document = tmp_path / "d.md"
    document.write_text("before\n<!-- generated: run -->\nold\n<!-- end: run -->\nafter\n")
    for _ in range(2):
        refill(document, {"run": "* sets: a\\b\n", "rmse": "nowhere to go"})
    assert document.read_text() == "before\n<!-- generated: run -->\n\n* sets: a\\b\n\n<!-- end: run -->\nafter\n"
    document.write_text("nothing")
    with pytest.raises(ParameterError, match="generated: rmse"):
        refill(document, {"run": ""})
