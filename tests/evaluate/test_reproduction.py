"""The experiment: who takes part, that seeds decide everything, that its parts agree, and what is written."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

from dpsr.errors import ParameterError
from dpsr.evaluate import ablation, experiment, printed
from dpsr.evaluate.experiment import NO_FACTORISATION, READINGS, Arena, with_privacy, without_privacy
from dpsr.evaluate.reproduction import reproduce
from dpsr.evaluate.tables import FACTORISED, UNFACTORISED, YARDSTICKS, Table, comparisons, summarise, table_1

EPSILON = 1.0


@pytest.fixture(scope="module")
def arena():
    return Arena.build("minmax", 0)


@pytest.fixture(scope="module")
def results(arena):
    return [*without_privacy(arena), *with_privacy(arena, EPSILON)]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A whole run in small: two seeds, one budget, a short sensitivity study."""
    calls = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ablation, "SENSITIVITY", {"beta": (0.65, 1.0)})
        found = reproduce(
            tmp_path_factory.mktemp("out"), seeds=2, epsilons=(EPSILON,), progress=lambda *call: calls.append(call)
        )
    return found, calls


def _rmse(results, method, reading=NO_FACTORISATION):
    (found,) = [r.scores.rmse for r in results if r.method == method and r.reading == reading]
    return found


def test_every_method_takes_part_under_every_reading(results):
    names = [reading.name for reading in READINGS]
    wanted = {(method, name) for method in FACTORISED for name in names}
    wanted |= {(method, NO_FACTORISATION) for method in (*UNFACTORISED, *YARDSTICKS)}
    assert {(r.method, r.reading) for r in results} == wanted
    assert len(results) == len(wanted)


def test_the_split_is_eighty_twenty_of_a_tenth_of_the_matrix(arena):
    assert (len(arena.train), len(arena.test)) == (4800, 1200)
    assert arena.train.mask.shape == (300, 200)


def test_a_seed_decides_everything(arena, results):
    again = list(with_privacy(Arena.build("minmax", 0), EPSILON))
    assert again == [r for r in results if r.epsilon is not None]


def test_mechanisms_do_not_share_their_noise(arena):
    first, second = (experiment.stream(0, mechanism).stream().words(4) for mechanism in (0, 1))
    assert not np.array_equal(first, second)


def test_the_constant_beats_every_figure_of_the_papers_table_1(results):
    least = min(row["rmse"].mean for row in printed.TABLE_1.values())
    assert _rmse(results, "Constant") < 0.5 * least


def test_dpsr_does_not_beat_the_constant_at_epsilon_one_on_the_default_reading(results):
    constant = _rmse(results, "Constant")
    assert _rmse(results, "DPSR matrix") > 1.2 * constant
    assert all(_rmse(results, "DPSR", reading.name) > 1.2 * constant for reading in READINGS)


def test_a_trained_non_private_model_beats_dpsr_and_a_half_trained_one_need_not(results):
    assert _rmse(results, "No Privacy", "trained") < 0.6 * _rmse(results, "DPSR", "trained")
    assert _rmse(results, "No Privacy", "random_start") > 2 * _rmse(results, "No Privacy", "trained")


def test_the_last_stage_of_the_ablation_is_the_experiments_dpsr(arena, results):
    last = list(ablation.stages(arena, EPSILON))[-1]
    assert last.stage == ablation.STAGES[-1]
    assert last.matrix_rmse == pytest.approx(_rmse(results, "DPSR matrix"), rel=1e-12)
    for reading in READINGS:
        assert last.factorised_rmse[reading.name] == pytest.approx(_rmse(results, "DPSR", reading.name), rel=1e-12)


def test_each_stage_removes_noise_from_the_observed_cells(arena):
    errors = [stage.observed_rmse for stage in ablation.stages(arena, EPSILON)]
    assert errors == sorted(errors, reverse=True)


def test_sensitivity_at_the_papers_values_is_the_experiments_dpsr(arena, results, monkeypatch):
    monkeypatch.setattr(ablation, "SENSITIVITY", {"alpha": (0.3,), "rank": (8, 1)})
    alpha, rank, low = ablation.sensitivity(arena)
    assert alpha.matrix_rmse == rank.matrix_rmse == pytest.approx(_rmse(results, "DPSR matrix"), rel=1e-12)
    assert low.matrix_rmse != rank.matrix_rmse


def test_every_sensitivity_list_holds_the_papers_value():
    settings = ablation.PaperDPSR()
    assert set(ablation.SENSITIVITY) == {"alpha", "beta", "n_neighbors", "rank", "lam", "n_iter", "period"}
    assert all(getattr(settings, name) in values for name, values in ablation.SENSITIVITY.items())


def test_table_1_prints_the_papers_figures_beside_ours(results):
    text = table_1(summarise(results), "minmax", "trained").markdown()
    (line,) = [line for line in text.splitlines() if line.startswith("| 1 | DPSR |")]
    assert "0.982 ± 0.017" in line
    assert f"{_rmse(results, 'DPSR', 'trained'):.3f}" in line
    assert "Random order" in text


def test_comparisons_use_the_same_seeds_and_the_right_opponent(results):
    found = {(c.method, c.reference): c for c in comparisons(summarise(results), "minmax", "trained")}
    gain = 100 * (1 - _rmse(results, "DPSR", "trained") / _rmse(results, "Constant"))
    assert found["DPSR", "Constant"].improvement_percent == pytest.approx(gain)
    gain = 100 * (1 - _rmse(results, "DPSR matrix") / _rmse(results, "Laplace", "trained"))
    assert found["DPSR matrix", "Laplace"].improvement_percent == pytest.approx(gain)


def test_a_table_keeps_full_precision_in_csv_and_rounds_in_markdown():
    table = Table("t", "Title", ("name", "p", "x"), (("a", 0.00001234, 1 / 3), ("b", None, 2)))
    assert list(csv.reader(table.csv().splitlines())) == [
        ["name", "p", "x"],
        ["a", "1.234e-05", str(1 / 3)],
        ["b", "", "2"],
    ]
    assert "| a | < 0.0001 | 0.333 |" in table.markdown()
    assert "| b |  | 2 |" in table.markdown()


def test_a_run_writes_markdown_csv_json_and_readable_figures(run):
    found, _ = run
    assert all(path.stat().st_size for path in found.files)
    assert {path.suffix for path in found.files} == {".md", ".csv", ".json", ".png", ".svg"}
    assert found.report.name == "report.md"
    pictures = [path for path in found.files if path.suffix == ".png"]
    assert len(pictures) == 4
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in pictures)
    assert all("<svg" in path.with_suffix(".svg").read_text() for path in pictures)


def test_what_is_written_says_that_it_is_not_private(run):
    found, _ = run
    assert "NOT PRIVATE" in found.report.read_text()
    record = json.loads((found.report.parent / "results.json").read_text())
    assert "NOT PRIVATE" in record["notice"]
    assert len(record["results"]) == len(found.results)


def test_the_long_table_holds_every_score_unrounded(run):
    found, _ = run
    rows = list(csv.DictReader((found.report.parent / "results.csv").read_text().splitlines()))
    assert [float(row["rmse"]) for row in rows] == [r.scores.rmse for r in found.results]


def test_both_normalisations_and_both_seeds_are_run(run):
    found, _ = run
    assert {(r.normalisation, r.seed) for r in found.results} == {
        (n, s) for n in ("minmax", "standardise") for s in (0, 1)
    }


def test_progress_counts_every_step_to_the_end(run):
    _, calls = run
    assert [done for done, _, _ in calls] == list(range(len(calls)))
    assert {total for _, total, _ in calls} == {len(calls) - 1}


def test_an_empty_experiment_is_refused(tmp_path):
    with pytest.raises(ParameterError, match="needs a seed and a budget"):
        reproduce(tmp_path / "out", seeds=0)
    assert not (tmp_path / "out").exists()
