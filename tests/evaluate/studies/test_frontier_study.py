"""The frontier: who takes part, that nothing is computed twice, and what the tables say."""

from __future__ import annotations

import csv
import json
import sys

import numpy as np
import pyarrow.parquet as pq
import pytest
import typer

from dpsr.data import realistic
from dpsr.errors import DataError, ParameterError
from dpsr.evaluate import sets
from dpsr.evaluate.measure import FORECAST, METHOD
from dpsr.evaluate.protocol import ALL_RANKED, PROTOCOLS
from dpsr.evaluate.registry import METHODS
from dpsr.evaluate.report.tidy import Averages, tidy
from dpsr.evaluate.runner.jobs import Job, noise_seed
from dpsr.evaluate.runner.store import ROWS
from dpsr.evaluate.sets import KNOWN, RatingSet
from dpsr.evaluate.studies.frontier import frontier_study
from dpsr.evaluate.studies.frontier.study import ORDER
from dpsr.evaluate.studies.frontier.tables import (
    ONLY_RANKS,
    TITLES,
    budget_table,
    error_table,
    plan_table,
    promise_table,
)
from dpsr.evaluate.studies.frontier.targets import EPSILONS, TARGETS, Targets
from dpsr.evaluate.studies.study import StudyError, run_study
from dpsr.pipeline import DPSR
from dpsr.pipeline.plan import parse_epsilons
from dpsr.types import Scale

SCALES = {"tiny": Scale(1, 5)}
BUDGET = 5.0
SEEDS = (0, 1)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A folder with one small set."""
    folder = tmp_path_factory.mktemp("data")
    pq.write_table(realistic(0, n_users=80, n_items=60, n_ratings=1500).to_arrow(), folder / "tiny.parquet")
    return folder


@pytest.fixture(scope="module")
def run(data, tmp_path_factory):
    """A whole run in small, at one budget: that another is run too shows in the jobs, and in the command below."""
    study = frontier_study(data, scales=SCALES, epsilons=(BUDGET,), seeds=SEEDS)
    return run_study(study, tmp_path_factory.mktemp("out"), workers=2)


def rows_of(*records):
    """(method, epsilon, seed, numbers) as the rows of a run."""
    tiny = RatingSet("tiny")
    return tidy(METHOD, [(Job(METHOD, tiny, m, e, s, 0, 0, ALL_RANKED), [row]) for m, e, s, row in records])


def row_of(table, title):
    (row,) = [row for row in table.rows if row[0] == title]
    return row[1:]


def test_every_method_is_run_at_every_budget_and_seed_and_yardsticks_once_a_seed(run, data):
    def wanted(*epsilons):
        budgets = {name: epsilons if METHODS[name].budgeted else (None,) for name in ORDER}
        return sorted(((name, e, seed) for name in ORDER for e in budgets[name] for seed in SEEDS), key=str)

    found = [(row["method"], row["epsilon"], row["seed"]) for row in run.rows["frontier"].to_pylist()]
    assert sorted(found, key=str) == wanted(BUDGET)
    jobs = frontier_study(data, scales=SCALES, epsilons=(1.0, BUDGET), seeds=SEEDS).jobs
    planned = [(job.what, job.epsilon, job.seed) for job in jobs if job.measure == METHOD]
    assert sorted(planned, key=str) == wanted(1.0, BUDGET)
    assert set(TITLES) == set(ORDER)


def test_the_figures_are_those_of_the_library_itself(run, data):
    ratings = RatingSet("tiny", str(data / "tiny.parquet"), "1:5:1")
    train, test = ratings.read().split(0.2, seed=1)
    (row,) = [
        row
        for row in run.rows["frontier"].to_pylist()
        if (row["method"], row["epsilon"], row["seed"]) == ("dpsr", 5.0, 1)
    ]
    model = DPSR(5.0, random_state=noise_seed("tiny", "dpsr", 5.0, 1)).fit(train).model_
    errors = test.values - model.predict(test.mask.users.astype(np.int64), test.mask.items.astype(np.int64))
    assert row["rmse"] == pytest.approx(float(np.sqrt(np.mean(errors**2))), rel=1e-9)


def test_what_learns_starts_alike_and_noise_is_that_of_the_published_figures(data):
    study = frontier_study(data, scales=SCALES, seeds=(0,))
    jobs = {(job.what, job.epsilon): job for job in study.jobs if job.measure == METHOD}
    assert {job.learner_seed for job in jobs.values()} == {0}
    assert jobs["dpsr-paper", 1.0].noise_seed == noise_seed("tiny", "paper", 1.0, 0)
    assert jobs["laplace-mf", 1.0].noise_seed == noise_seed("tiny", "laplace-mf", 1.0, 0)
    assert len({job.noise_seed for job in jobs.values()}) == 6 * len(EPSILONS) + 5


def test_a_second_run_computes_nothing_and_an_interrupted_one_goes_on(data, tmp_path):
    study = frontier_study(data, scales=SCALES, epsilons=(1.0,), seeds=(0,), methods=["constant", "dpsr", "bias"])

    def stop(done, total, what):
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_study(study, tmp_path, workers=1, progress=stop)
    assert len((tmp_path / ROWS).read_text().splitlines()) == 2
    first = run_study(study, tmp_path)
    lines = (tmp_path / ROWS).read_text()
    assert len(lines.splitlines()) == len(study.jobs) == 4, "three methods and a plan"
    again = run_study(study, tmp_path)
    assert (tmp_path / ROWS).read_text() == lines
    assert again.rows["frontier"].equals(first.rows["frontier"])


def test_a_study_that_did_not_get_all_its_runs_says_which_and_writes_nothing(tmp_path):
    pq.write_table(realistic(0, n_users=30, n_items=20, n_ratings=300).to_arrow(), tmp_path / "tiny.parquet")
    study = frontier_study(tmp_path, scales={"tiny": Scale(1, 4)}, epsilons=(1.0,), seeds=(0,), methods=["constant"])
    with pytest.raises(StudyError, match=r"found 1 of 1 without.*tiny: constant, seed 0: ScaleError.*same command"):
        run_study(study, tmp_path / "out")
    assert [path.name for path in (tmp_path / "out").iterdir()] == [ROWS]


def test_the_targets_are_the_issues():
    assert set(TARGETS) == set(KNOWN)
    assert TARGETS["ml-latest-small"].reach[0.1] == 0.938
    assert TARGETS["movietweetings-100k"].aim[10] == 1.490
    for targets in TARGETS.values():
        assert all(targets.aim[e] < targets.reach[e] for e in EPSILONS)


def test_a_target_is_met_on_the_line_and_an_aim_only_below_it():
    targets = Targets(reach={1.0: 0.9, 2.0: 0.8}, aim={1.0: 0.9, 2.0: 0.8})
    rows = rows_of(
        ("dpsr", 1.0, 0, {"rmse": 0.9}), ("dpsr", 2.0, 0, {"rmse": 0.801}), ("constant", None, 0, {"rmse": 1.0})
    )
    table = error_table(Averages(rows), "tiny", (1.0, 2.0, 3.0), targets)
    assert table.header == ("ε", "1", "2", "3")
    assert row_of(table, "tiny: reach") == ("0.900 met", "0.800 missed", "")
    assert row_of(table, "tiny: aim below") == ("0.900 missed", "0.800 missed", "")
    assert row_of(table, "dpsr") == ("0.9000", "0.8010", "")
    assert row_of(table, "constant, not private") == ("1.0000",) * 3


def test_a_set_without_targets_has_no_target_rows_and_a_list_by_counts_no_error(run):
    table = run.tables[0]
    assert [row[0] for row in table.rows] == [title for name, title in TITLES.items() if name not in ONLY_RANKS]
    assert all("±" in cell for row in table.rows for cell in row[1:])


def test_promises_know_the_half_per_cent_and_the_papers_error():
    rows = rows_of(
        ("constant", None, 0, {"rmse": 1.0}),
        ("bias", None, 0, {"rmse": 0.9, "precision_at_10": 0.2}),
        ("dpsr", 1.0, 0, {"rmse": 1.0049, "precision_at_10": 0.1}),
        ("dpsr", 2.0, 0, {"rmse": 1.0051, "precision_at_10": 0.2}),
        ("dpsr-paper", 1.0, 0, {"rmse": 1.2}),
        ("dpsr-paper", 2.0, 0, {"rmse": 1.0}),
    )
    table = promise_table(Averages(rows), ["tiny"], (1.0, 2.0))
    words = {row[0]: [cell.split()[0] for cell in row[1:]] for row in table.rows}
    assert words["tiny: RMSE at most the constant's + 0.5 %"] == ["met", "missed"]
    assert words["tiny: RMSE at most the repaired paper's"] == ["met", "missed"]
    assert words["tiny: P@10 at least the bias model's"] == ["missed", "met"]
    assert "tiny: RMSE at most the published paper's" not in words


def test_the_plan_stands_beside_the_measured_share():
    rows = rows_of(("dpsr", 1.0, 0, {"share_of_constant": 0.8}), ("dpsr", 1.0, 1, {"share_of_constant": 0.9}))
    tiny = RatingSet("tiny")
    plans = tidy(
        FORECAST,
        [(Job(FORECAST, tiny, "dpsr", 1.0, s, 0, 0, ALL_RANKED), [{"share_of_constant": 0.9}]) for s in (0, 1)],
    )
    table = plan_table(rows, plans, ["tiny"], (1.0,))
    assert table.rows == (("tiny", "1", "0.9000", "0.8500", "+5.9", "missed"),)


def test_the_plan_of_a_run_is_that_of_the_training_masks(run, data):
    (table,) = [table for table in run.tables if table.name == "plan"]
    train = PROTOCOLS[ALL_RANKED].split(RatingSet("tiny", str(data / "tiny.parquet"), "1:5:1"), 0).train
    shares = [forecast.share for forecast in DPSR.plan(train.mask, train.scale, (BUDGET,))]
    found = [row["share_of_constant"] for row in run.rows["plan"].to_pylist() if row["seed"] == 0]
    assert found == pytest.approx(shares)
    assert [row[:2] for row in table.rows] == [("tiny", "5")]


def test_a_fit_that_costs_more_than_asked_is_said_to_and_one_with_delta_is_left_out(run):
    rows = run.rows["frontier"].to_pylist()
    assert all(row["exact_epsilon"] <= row["epsilon"] for row in rows if row["method"] == "dpsr")
    table = budget_table(
        rows_of(
            ("dpsr", 1.0, 0, {"exact_epsilon": 1.0, "delta": 0.0}),
            ("dpsr-paper", 1.0, 0, {"exact_epsilon": 0.9, "delta": 0.0}),
            ("dpsr-paper", 1.0, 1, {"exact_epsilon": 1.1, "delta": 0.0}),
            ("gaussian-als", 1.0, 0, {"exact_epsilon": 1.0, "delta": 1e-5}),
        ),
        (1.0,),
    )
    assert [row[1] for row in table.rows] == ["1 kept", "1.1 exceeded"]


def test_a_run_writes_tables_in_order_and_readable_pictures(run):
    assert [path.name for path in run.files] == [
        "frontier.md", *(f"{name}.{kind}" for name in ("frontier", "plan") for kind in ("csv", "parquet", "json")),
        "frontier_tiny.png", "frontier_tiny.svg",
    ]  # fmt: skip
    names = ["rmse_tiny", "personalised_tiny", "promises", "ranking_tiny", "plan", "time", "budget"]
    assert [table.name for table in run.tables] == names
    text = run.report.read_text("utf-8")
    assert "NOT PRIVATE" in text
    assert [text.index(table.title) for table in run.tables] == sorted(text.index(t.title) for t in run.tables)
    assert run.files[-2].read_bytes().startswith(b"\x89PNG")
    assert "<svg" in run.files[-1].read_text()


def test_the_long_tables_hold_every_number_unrounded(run):
    errors = run.rows["frontier"]["rmse"].to_pylist()
    read = list(csv.DictReader(run.files[1].read_text().splitlines()))
    assert [float(row["rmse"]) for row in read] == errors
    record = json.loads(run.files[3].read_text())
    assert [row["rmse"] for row in record["rows"]] == errors
    assert "NOT PRIVATE" in record["notice"]


def test_a_missing_folder_is_refused_before_anything_is_written(tmp_path):
    with pytest.raises(DataError, match=r"not a folder of rating sets"):
        frontier_study(tmp_path / "nowhere")


def test_a_file_whose_scale_nobody_declared_is_left_out_and_named(data, tmp_path):
    table = pq.read_table(data / "tiny.parquet")
    for name in ("tiny", "stranger"):
        pq.write_table(table, tmp_path / f"{name}.parquet")
    study = frontier_study(tmp_path, scales=SCALES, epsilons=(1.0,), seeds=(0,), methods=["constant"])
    found = run_study(study, tmp_path / "out")
    assert "nobody declared their scale: stranger.parquet" in found.report.read_text("utf-8")
    assert set(found.rows["frontier"]["set"].to_pylist()) == {"tiny"}


@pytest.mark.parametrize("wrong", [{"seeds": ()}, {"epsilons": ()}, {"methods": ["magic"]}, {"methods": []}])
def test_an_empty_or_unknown_request_is_refused(data, wrong):
    with pytest.raises(ParameterError, match=r"needs a seed and a budget|methods are constant"):
        frontier_study(data, scales=SCALES, **wrong)


def test_epsilons_are_read_from_a_list_with_commas():
    assert parse_epsilons("0.1, 1,10") == (0.1, 1.0, 10.0)
    with pytest.raises(ParameterError, match="separated by commas"):
        parse_epsilons("1;2")


def test_the_command_passes_its_options_on_and_prints_the_report(data, tmp_path, monkeypatch, capsys):
    from dpsr.cli import frontier as command

    monkeypatch.setattr(sets, "KNOWN", SCALES)
    monkeypatch.setattr("dpsr.evaluate.studies.frontier.study.ORDER", ("constant", "dpsr"))
    app = typer.Typer()
    app.command()(command.frontier)
    arguments = ["frontier", "--data", data, "--out", tmp_path / "out", "--seeds", 2, "--epsilons", "1,5"]
    monkeypatch.setattr(sys, "argv", [str(argument) for argument in arguments])
    with pytest.raises(SystemExit) as stop:
        app()
    assert stop.value.code == 0
    assert "| dpsr |" in capsys.readouterr().out
    read = pq.read_table(tmp_path / "out" / "frontier.parquet").to_pylist()
    assert {(row["epsilon"], row["seed"]) for row in read if row["method"] == "dpsr"} == {
        (1.0, 0), (1.0, 1), (5.0, 0), (5.0, 1),
    }  # fmt: skip
    assert command.EXAMPLE.startswith("Example: dpsr frontier")
