"""The paper's experiment: who takes part, that seeds decide everything, that its parts agree, and what is written."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

from dpsr.engine import MemoryTable
from dpsr.errors import ParameterError
from dpsr.evaluate.baselines.factorisation import TRAINING_CHOICES
from dpsr.evaluate.downstream.training_tables import build_table
from dpsr.evaluate.measure.learners import measure_learners
from dpsr.evaluate.protocol import ALL_RANKED, PROTOCOLS
from dpsr.evaluate.report.charts import Chart
from dpsr.evaluate.studies.paper import paper_study, printed, study
from dpsr.evaluate.studies.paper.figures import figure_1, figure_2
from dpsr.evaluate.studies.paper.tables import (
    FACTORISED,
    NO_FACTORISATION,
    UNFACTORISED,
    YARDSTICKS,
    comparisons,
    summarise,
    table_1,
)
from dpsr.evaluate.studies.study import run_study
from dpsr.paper.completion import Completion, complete_by_projections
from dpsr.pipeline import PaperDPSR

EPSILON = 1.0


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A whole run in small: two seeds, one budget, a short sensitivity study."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(study, "SENSITIVITY", {"beta": (0.65, 1.0), "rank": (8, 1)})
        return run_study(paper_study(seeds=2, epsilons=(EPSILON,)), tmp_path_factory.mktemp("out"), workers=2)


@pytest.fixture(scope="module")
def results(run):
    """The scores of seed 0 under min-max."""
    rows = run.rows["results"].to_pylist()
    return [row for row in rows if (row["normalisation"], row["seed"]) == ("minmax", 0)]


@pytest.fixture(scope="module")
def summaries(run):
    return summarise(run.rows["results"])


def rmse_of(results, method, reading=NO_FACTORISATION):
    (found,) = [row["rmse"] for row in results if row["method"] == method and row["reading"] == reading]
    return found


def table(run, name):
    (found,) = [one for one in run.tables if one.name == name]
    return found


def test_every_method_takes_part_under_every_reading(results):
    wanted = {(method, reading) for method in FACTORISED for reading in TRAINING_CHOICES}
    wanted |= {(method, NO_FACTORISATION) for method in (*UNFACTORISED, *YARDSTICKS)}
    assert {(row["method"], row["reading"]) for row in results} == wanted
    assert len(results) == len(wanted)


def test_both_normalisations_and_both_seeds_are_run(run):
    assert {(row["normalisation"], row["seed"]) for row in run.rows["results"].to_pylist()} == {
        (normalisation, seed) for normalisation in ("minmax", "standardise") for seed in (0, 1)
    }


def test_the_split_is_eighty_twenty_of_a_tenth_of_the_matrix():
    split = PROTOCOLS[ALL_RANKED].split(study.NORMALISATIONS["minmax"], 0)
    assert (len(split.train), len(split.test)) == (4800, 1200)
    assert split.train.mask.shape == (300, 200)


def test_a_seed_decides_everything(results, tmp_path):
    job = study._factorised(study.NORMALISATIONS["minmax"], "paper", EPSILON, 0)
    again = {row["learner"]: row["rmse"] for row in measure_learners(job, tmp_path)}
    assert again["the model itself"] == rmse_of(results, "DPSR matrix")
    assert again["mf-trained"] == rmse_of(results, "DPSR", "trained")


def test_mechanisms_do_not_share_their_noise_and_stages_of_one_pipeline_do():
    jobs = paper_study(seeds=2, epsilons=(EPSILON,)).jobs
    seeds = {(job.what, job.seed): job.noise_seed for job in jobs}
    mechanisms = ("laplace", "gaussian-classical", "paper", "published")
    assert len({seeds[name, seed] for name in mechanisms for seed in (0, 1)}) == 8
    assert seeds["paper", 1] == seeds["paper-stage-1", 1] == seeds["paper-stage-2", 1]


def test_the_constant_beats_every_figure_of_the_papers_table_1(results):
    least = min(row["rmse"].mean for row in printed.TABLE_1.values())
    assert rmse_of(results, "Constant") < 0.5 * least


def test_dpsr_does_not_beat_the_constant_at_epsilon_one_on_the_default_reading(results):
    constant = rmse_of(results, "Constant")
    assert rmse_of(results, "DPSR matrix") > 1.2 * constant
    assert all(rmse_of(results, "DPSR", reading) > 1.2 * constant for reading in TRAINING_CHOICES)


def test_a_trained_non_private_model_beats_dpsr_and_a_half_trained_one_need_not(results):
    assert rmse_of(results, "No Privacy", "trained") < 0.6 * rmse_of(results, "DPSR", "trained")
    assert rmse_of(results, "No Privacy", "random_start") > 2 * rmse_of(results, "No Privacy", "trained")


def test_the_last_stage_is_the_experiments_dpsr_and_each_stage_removes_noise(run, summaries):
    rows = table(run, "stages_minmax").rows
    assert [row[:2] for row in rows] == [("1", "Stage 1"), ("1", "Stages 1 + 2"), ("1", "Stages 1 + 2 + 3")]
    observed = [row[2] for row in rows]
    assert observed == sorted(observed, reverse=True)
    assert [row[3] for row in rows[:2]] == [None, None]
    last = {"matrix": rows[-1][3], **dict(zip(TRAINING_CHOICES, rows[-1][4:], strict=True))}
    matrix = summaries["minmax", NO_FACTORISATION, EPSILON, "DPSR matrix"].metrics["rmse"].value
    assert last["matrix"] == pytest.approx(matrix, rel=1e-12)
    for reading in TRAINING_CHOICES:
        factorised = summaries["minmax", reading, EPSILON, "DPSR"].metrics["rmse"].value
        assert last[reading] == pytest.approx(factorised, rel=1e-12)


def test_completing_the_table_of_stage_two_gives_the_table_of_stage_three():
    train = PROTOCOLS[ALL_RANKED].split(study.NORMALISATIONS["minmax"], 0).train
    one, two, three = (build_table(name, train, EPSILON, 2).values for name in study.STAGES)
    table, ends = MemoryTable(train.mask, {"smoothed": two}), Completion("released", "observed")
    complete_by_projections(table, "smoothed", train.scale, ends, rank=8, lam=0.7, n_iter=50, period=10)
    np.testing.assert_array_equal(table["released"], three)
    blended = 0.65 * one + (1 - 0.65) * train.scale.midpoint
    assert np.abs(two - blended).max() > 0.1, "Stage 2 looks at similar items"


def test_sensitivity_at_the_papers_values_is_the_experiments_dpsr(run, summaries):
    errors = {row[:2]: row[2] for row in table(run, "sensitivity").rows}
    own = summaries["minmax", NO_FACTORISATION, EPSILON, "DPSR matrix"].metrics["rmse"].value
    assert errors["beta", "0.65"] == errors["rank", "8"] == pytest.approx(own, rel=1e-12)
    assert errors["rank", "1"] != errors["rank", "8"]


def test_every_sensitivity_list_holds_the_papers_value():
    settings = PaperDPSR()
    assert set(study.SENSITIVITY) == {"alpha", "beta", "n_neighbors", "rank", "lam", "n_iter", "period"}
    assert all(getattr(settings, name) in values for name, values in study.SENSITIVITY.items())


def test_table_1_prints_the_papers_figures_beside_ours(summaries):
    text = table_1(summaries, "minmax", "trained").markdown()
    (line,) = [line for line in text.splitlines() if line.startswith("| 1 | DPSR |")]
    assert "0.982 ± 0.017" in line
    assert f"{summaries['minmax', 'trained', EPSILON, 'DPSR'].metrics['rmse'].value:.3f}" in line
    assert "Random order" in text


def test_comparisons_use_the_same_seeds_and_the_right_opponent(summaries):
    def mean(method, reading=NO_FACTORISATION, epsilon=EPSILON):
        return summaries["minmax", reading, epsilon, method].metrics["rmse"].value

    found = {(c.method, c.reference): c for c in comparisons(summaries, "minmax", "trained")}
    gain = 100 * (1 - mean("DPSR", "trained") / mean("Constant", epsilon=None))
    assert found["DPSR", "Constant"].improvement_percent == pytest.approx(gain)
    gain = 100 * (1 - mean("DPSR matrix") / mean("Laplace", "trained"))
    assert found["DPSR matrix", "Laplace"].improvement_percent == pytest.approx(gain)


def test_the_figures_show_the_tables(summaries):
    first, second = figure_1(summaries, "minmax"), figure_2(summaries, "minmax")
    assert isinstance(first, Chart)
    lines = {line.label: line for line in first.panels[2][0].lines}
    assert lines["DPSR"].y == (summaries["minmax", "trained", EPSILON, "DPSR"].metrics["rmse"].value,)
    assert lines["DPSR, paper"].y == (printed.TABLE_1[EPSILON, "DPSR"]["rmse"].mean,)
    bars = {bars.label: bars.heights for bars in second.panels[0][0].bars}
    assert bars["paper"] == (printed.TABLE_2[EPSILON][0],)


def test_a_run_writes_markdown_csv_json_and_readable_figures(run):
    assert all(path.stat().st_size for path in run.files)
    assert {path.suffix for path in run.files} == {".md", ".csv", ".parquet", ".json", ".png", ".svg"}
    assert run.report.name == "report.md"
    pictures = [path for path in run.files if path.suffix == ".png"]
    assert len(pictures) == 4
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in pictures)
    assert all("<svg" in path.with_suffix(".svg").read_text() for path in pictures)


def test_what_is_written_says_that_it_is_not_private_and_rounds_nothing(run):
    assert "NOT PRIVATE" in run.report.read_text()
    folder, errors = run.report.parent, run.rows["results"]["rmse"].to_pylist()
    record = json.loads((folder / "results.json").read_text())
    assert "NOT PRIVATE" in record["notice"]
    assert [row["rmse"] for row in record["rows"]] == errors
    read = csv.DictReader((folder / "results.csv").read_text().splitlines())
    assert [float(row["rmse"]) for row in read] == errors


def test_an_empty_experiment_is_refused():
    with pytest.raises(ParameterError, match="needs a seed and a budget"):
        paper_study(seeds=0)
