"""The benchmark: what is run, what is written, and what it says."""

import csv
import json

import pyarrow.parquet as pq
import pytest

from dpsr.data import realistic
from dpsr.errors import ParameterError
from dpsr.evaluate.measure import ATTACK, LEARNERS, METHOD
from dpsr.evaluate.registry import METHODS, benchmarked_methods, compared_methods
from dpsr.evaluate.report.tidy import SCHEMAS
from dpsr.evaluate.sets import RatingSet
from dpsr.evaluate.studies.benchmark import benchmark_study, requested_benchmark
from dpsr.evaluate.studies.benchmark.study import EPSILONS
from dpsr.evaluate.studies.study import run_study


@pytest.fixture(scope="module")
def ratings(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "tiny.parquet"
    pq.write_table(realistic(0, n_users=60, n_items=50, n_ratings=1200).to_arrow(), path)
    return RatingSet("tiny", str(path), "1:5:1")


@pytest.fixture(scope="module")
def run(ratings, tmp_path_factory):
    """A private method, one without a budget, and one that fails, with a learner's table beside."""
    methods = ["dpsr", "constant", "strange_methods:failing"]
    study = benchmark_study([ratings], methods=methods, epsilons=(1.0, 2.0), seeds=(0,))
    return run_study(study, tmp_path_factory.mktemp("out"), workers=2)


def rows(run, method):
    return [row for row in run.rows["benchmark"].to_pylist() if row["method"] == method]


def test_the_report_marks_the_run_as_not_private_and_names_what_failed(run):
    text = run.report.read_text("utf-8")
    assert "NOT PRIVATE" in text
    assert "strange_methods:failing | 1.000 | 0 | ArithmeticError: the sum does not converge" in text
    assert "tiny: RMSE" in text


def test_every_row_has_every_column_and_the_three_files_agree(run):
    folder, schema = run.report.parent, SCHEMAS[METHOD]
    assert pq.read_schema(folder / "benchmark.parquet").equals(schema)
    parquet = pq.read_table(folder / "benchmark.parquet").to_pylist()
    assert json.loads((folder / "benchmark.json").read_text())["rows"] == parquet
    with (folder / "benchmark.csv").open() as file:
        read = list(csv.DictReader(file))
    assert list(read[0]) == schema.names
    for line, row in zip(read, parquet, strict=True):
        assert all(_same(line[name], row[name]) for name in row)
    wanted = ("unit", "epsilon", "delta", "rmse", "mae", "precision_at_10", "ndcg_at_10", "share_of_constant")
    assert {*wanted, "fit_seconds", "cpu_seconds", "peak_mb", "error"} <= set(schema.names)


def _same(text, value):
    return text == "" if value in (None, "") else text == value or float(text) == value


def test_share_of_constant_is_one_for_the_constant(run):
    assert [row["share_of_constant"] for row in rows(run, "constant")] == [1.0]


def test_our_own_receipt_is_in_the_row(run):
    assert all(row["exact_epsilon"] <= row["epsilon"] and row["unit"] == "rating value" for row in rows(run, "dpsr"))
    assert {row["rmse"] for row in rows(run, "strange_methods:failing")} == {None}


def test_unknown_methods_and_empty_requests_are_refused_before_anything_runs(ratings):
    def study(methods, seeds=(0,)):
        return benchmark_study([ratings], methods=methods, epsilons=(1.0,), seeds=seeds)

    with pytest.raises(ParameterError, match="module:factory"):
        study(["nonesuch"])
    with pytest.raises(ParameterError, match="must be importable"):
        study(["nowhere:method"])
    with pytest.raises(ParameterError, match="positive epsilon"):
        study(["constant"], seeds=())
    with pytest.raises(ParameterError, match="found none"):
        study([])


def test_attacks_can_be_asked_for_alone(ratings):
    alone = benchmark_study([ratings], methods=[], epsilons=(1.0,), seeds=(0, 1), attacked=["mean-leak", "constant"])
    assert [(job.measure, job.what, job.epsilon, job.seed) for job in alone.jobs] == [
        (ATTACK, "mean-leak", 1.0, 0),
        (ATTACK, "constant", None, 0),
    ]


def test_the_full_run_is_all_budgets_and_seeds_with_learners_and_attacks_at_two_budgets_on_the_first():
    jobs = requested_benchmark(["paper"], full=True).jobs
    found = {
        kind: {(job.epsilon, job.seed) for job in jobs if job.measure == kind} for kind in (METHOD, LEARNERS, ATTACK)
    }
    assert found[METHOD] == {(epsilon, seed) for epsilon in (None, *EPSILONS) for seed in range(1, 6)}
    assert found[LEARNERS] == found[ATTACK] == {(epsilon, 1) for epsilon in (None, 1.0, 5.0)}
    assert {job.what for job in jobs if job.measure == ATTACK} >= set(compared_methods())
    assert {job.what for job in jobs if job.measure == METHOD} == set(benchmarked_methods())


def test_a_benchmark_of_one_unit_has_ours_first_and_no_method_of_another():
    jobs = requested_benchmark(["taste-1m"], unit="user").jobs
    names = list(dict.fromkeys(job.what for job in jobs))
    assert names[:2] == ["dpsr-user", "dpsr-user-listed"]
    assert {"dp-als", "dp-als-tuned", "dp-sgd-user", "noisy-bias", "own-mean"} < set(names)
    assert {METHODS[name].unit for name in names} == {"user", "none"}
    assert {METHODS[name].unit for name in benchmarked_methods("rating")} == {"rating (add/remove)", "none"}
    with pytest.raises(ParameterError, match="value, user, rating"):
        requested_benchmark(["paper"], unit="group")
