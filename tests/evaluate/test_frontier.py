"""The frontier: who takes part, that nothing is computed twice, what the tables say, and what each idea is worth."""

from __future__ import annotations

import csv
import json
import sys
from types import SimpleNamespace

import numpy as np
import pyarrow.parquet as pq
import pytest
import typer

from dpsr.data import realistic
from dpsr.errors import DataError, ParameterError
from dpsr.evaluate import frontier as module
from dpsr.evaluate import frontier_ablation, frontier_methods, frontier_store
from dpsr.evaluate.frontier import frontier, parse_epsilons
from dpsr.evaluate.frontier_ablation import VARIANTS, ablation
from dpsr.evaluate.frontier_methods import METHODS, SHOWN, Fit, Method, noise_seed
from dpsr.evaluate.frontier_records import Averages, Plan, Record
from dpsr.evaluate.frontier_sets import EPSILONS, KNOWN, TARGETS, Targets, find_sets
from dpsr.evaluate.frontier_store import Store
from dpsr.evaluate.frontier_tables import budget_table, error_table, plan_table, promise_table
from dpsr.pipeline import DPSR
from dpsr.types import Scale

SETS = {"tiny": Scale(1, 5)}
BUDGETS = (1.0, 5.0)
SEEDS = (0, 1)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A folder with one small set."""
    folder = tmp_path_factory.mktemp("data")
    pq.write_table(realistic(0, n_users=80, n_items=60, n_ratings=1500).to_arrow(), folder / "tiny.parquet")
    return folder


@pytest.fixture(scope="module")
def run(data, tmp_path_factory):
    """A whole run in small."""
    calls = []
    found = frontier(
        data,
        tmp_path_factory.mktemp("out"),
        sets=SETS,
        epsilons=BUDGETS,
        seeds=SEEDS,
        progress=lambda *call: calls.append(call),
    )
    return found, calls


@pytest.fixture
def counted(monkeypatch):
    """Every method replaced by a cheap one that says it was called."""
    calls, real = [], dict(METHODS)

    def fake(method):
        def fit(train, epsilon, seed):
            calls.append((method.name, epsilon, seed))
            return Fit(real["constant"].fit(train, epsilon, seed).predictor, None)

        return Method(method.name, method.title, method.budgeted, fit)

    monkeypatch.setattr(module, "draw", lambda *_: SimpleNamespace(savefig=lambda path, dpi: path.touch()))
    for name, method in real.items():
        monkeypatch.setitem(METHODS, name, fake(method))
    return calls


def _record(method, epsilon, rmse, seed=0, *, exact=None, precision=0.1, ndcg=0.1, name="tiny"):
    return Record(name, method, epsilon, seed, rmse, rmse, precision, ndcg, 0.0, 0.0, 1.0, exact)


def _row(table, title):
    (row,) = [row for row in table.rows if row[0] == title]
    return row[1:]


def test_every_method_is_run_at_every_budget_and_seed_and_yardsticks_once_a_seed(run):
    found, _ = run
    budgets = {name: BUDGETS if method.budgeted else (None,) for name, method in METHODS.items()}
    wanted = {(name, epsilon, seed) for name in METHODS for epsilon in budgets[name] for seed in SEEDS}
    assert {(r.method, r.epsilon, r.seed) for r in found.records} == wanted
    assert len(found.records) == len(wanted)
    assert set(SHOWN) == set(METHODS)


def test_the_figures_are_those_of_the_library_itself(run, data):
    found, _ = run
    train, test = find_sets(data, SETS)[0].read().split(0.2, seed=1)
    (record,) = [r for r in found.records if (r.method, r.epsilon, r.seed) == ("dpsr", 5.0, 1)]
    model = DPSR(5.0, random_state=noise_seed("tiny", "dpsr", 5.0, 1)).fit(train).model_
    errors = test.values - model.predict(test.mask.users.astype(np.int64), test.mask.items.astype(np.int64))
    assert record.rmse == pytest.approx(float(np.sqrt(np.mean(errors**2))), rel=1e-9)


def test_noise_belongs_to_one_set_method_budget_and_seed():
    seeds = {noise_seed(s, m, e, k) for s in "ab" for m in METHODS for e in EPSILONS for k in range(3)}
    assert len(seeds) == 2 * len(METHODS) * len(EPSILONS) * 3
    assert noise_seed("a", "dpsr", 1.0, 0) == noise_seed("a", "dpsr", 1.0, 0)


def test_a_second_run_computes_nothing_and_says_the_same(data, tmp_path, counted):
    first = frontier(data, tmp_path, sets=SETS, epsilons=BUDGETS, seeds=SEEDS)
    assert len(counted) == len(first.records)
    again = frontier(data, tmp_path, sets=SETS, epsilons=BUDGETS, seeds=SEEDS)
    assert len(counted) == len(first.records)
    assert again.records == first.records
    assert again.plans == first.plans


def test_an_interrupted_run_goes_on_where_it_stopped(data, tmp_path, counted):
    def stop(done, total, what):
        if done == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        frontier(data, tmp_path, sets=SETS, epsilons=BUDGETS, seeds=SEEDS, progress=stop)
    store = tmp_path / "frontier.jsonl"
    store.write_text(store.read_text() + '{"key": {"torn')
    found = frontier(data, tmp_path, sets=SETS, epsilons=BUDGETS, seeds=SEEDS)
    assert len(counted) == len(found.records)
    frontier(data, tmp_path, sets=SETS, epsilons=BUDGETS, seeds=SEEDS)
    assert len(counted) == len(found.records), "the torn line must not swallow the next one"


@pytest.mark.parametrize("change", ["code", "data", "scale"])
def test_results_of_other_code_or_data_are_not_reused(data, tmp_path, counted, monkeypatch, change):
    settings = {"epsilons": (1.0,), "seeds": (0,), "methods": ["constant"]}
    frontier(data, tmp_path / "out", sets=SETS, **settings)
    folder, sets = data, SETS
    if change == "code":
        monkeypatch.setattr(frontier_store, "code_digest", lambda: "another version")
    elif change == "data":
        folder = tmp_path
        pq.write_table(realistic(1, n_users=80, n_items=60, n_ratings=1500).to_arrow(), folder / "tiny.parquet")
    else:
        sets = {"tiny": Scale(0, 5)}
    frontier(folder, tmp_path / "out", sets=sets, **settings)
    assert len(counted) == 2


def test_the_store_hands_back_what_was_put_under_the_same_key_only(tmp_path):
    Store(tmp_path / "s.jsonl").put({"rmse": 1.5}, method="a", epsilon=None)
    again = Store(tmp_path / "s.jsonl")
    assert again.get(method="a", epsilon=None) == {"rmse": 1.5}
    assert again.get(method="a", epsilon=1.0) is None


def test_the_targets_are_the_issues():
    assert set(TARGETS) == set(KNOWN)
    assert TARGETS["ml-latest-small"].reach[0.1] == 0.975
    assert TARGETS["movietweetings-100k"].aim[10] == 1.533
    for targets in TARGETS.values():
        assert all(targets.aim[e] < targets.reach[e] for e in EPSILONS)


def test_a_target_is_met_on_the_line_and_an_aim_only_below_it():
    targets = Targets(reach={1.0: 0.9, 2.0: 0.8}, aim={1.0: 0.9, 2.0: 0.8})
    averages = Averages.of([_record("dpsr", 1.0, 0.9), _record("dpsr", 2.0, 0.801), _record("constant", None, 1.0)])
    table = error_table(averages, "tiny", (1.0, 2.0, 3.0), targets)
    assert table.header == ("ε", "1", "2", "3")
    assert _row(table, "tiny: reach") == ("0.900 met", "0.800 missed", "")
    assert _row(table, "tiny: aim below") == ("0.900 missed", "0.800 missed", "")
    assert _row(table, "dpsr") == ("0.9000", "0.8010", "")
    assert _row(table, "constant, not private") == ("1.0000",) * 3


def test_a_set_without_targets_has_no_target_rows(run):
    found, _ = run
    table = found.tables[0]
    assert [row[0] for row in table.rows] == [METHODS[name].title for name in SHOWN if name != "most-rated"]
    assert all("±" in cell for row in table.rows for cell in row[1:])


def test_means_and_deviations_are_over_seeds():
    averages = Averages.of([_record("dpsr", 1.0, 0.8, seed=0), _record("dpsr", 1.0, 1.0, seed=1)])
    assert averages.at("tiny", "dpsr", 1.0) == pytest.approx(0.9)
    assert averages.spread("tiny", "dpsr", 1.0) == pytest.approx(np.std([0.8, 1.0], ddof=1))
    assert averages.at("tiny", "dpsr", 2.0) is None


def test_promises_know_the_half_per_cent_and_the_papers_error():
    records = [_record("constant", None, 1.0), _record("bias", None, 0.9, precision=0.2)]
    records += [_record("dpsr", 1.0, 1.0049), _record("dpsr", 2.0, 1.0051, precision=0.2)]
    records += [_record("paper", 1.0, 1.2), _record("paper", 2.0, 1.0)]
    table = promise_table(Averages.of(records), ["tiny"], (1.0, 2.0))
    words = {row[0]: [cell.split()[0] for cell in row[1:]] for row in table.rows}
    assert words["tiny: RMSE at most the constant's + 0.5 %"] == ["met", "missed"]
    assert words["tiny: RMSE at most the repaired paper's"] == ["met", "missed"]
    assert words["tiny: P@10 at least the bias model's"] == ["missed", "met"]
    assert "tiny: RMSE at most the published paper's" not in words


def test_the_plan_stands_beside_the_measured_share_of_the_same_splits():
    records = [_record("constant", None, 1.0, 0), _record("constant", None, 2.0, 1)]
    records += [_record("dpsr", 1.0, 0.8, 0), _record("dpsr", 1.0, 1.8, 1)]
    plans = [Plan("tiny", 1.0, 0, 0.9), Plan("tiny", 1.0, 1, 0.9)]
    table = plan_table(records, plans, ["tiny"], (1.0,))
    assert table.rows == (("tiny", "1", "0.9000", "0.8500", "+5.9", "missed"),)


def test_the_plan_of_a_run_is_that_of_the_training_masks(run, data):
    found, _ = run
    (table,) = [table for table in found.tables if table.name == "plan"]
    train, _ = find_sets(data, SETS)[0].read().split(0.2, seed=0)
    shares = [forecast.share for forecast in DPSR.plan(train.mask, train.scale, BUDGETS)]
    assert [p.share for p in found.plans if p.seed == 0] == pytest.approx(shares)
    assert [row[:2] for row in table.rows] == [("tiny", "1"), ("tiny", "5")]


def test_a_fit_that_costs_more_than_asked_is_said_to(run):
    found, _ = run
    exact = {(r.method, r.epsilon): r.exact_epsilon for r in found.records}
    assert all(exact["dpsr", epsilon] <= epsilon for epsilon in BUDGETS)
    table = budget_table([_record("dpsr", 1.0, 1.0, exact=1.0), _record("paper", 1.0, 1.0, exact=1.1)], (1.0,))
    assert [row[1] for row in table.rows] == ["1 kept", "1.1 exceeded"]


def test_a_run_writes_tables_in_order_and_readable_pictures(run):
    found, calls = run
    assert [path.name for path in found.files] == [
        "frontier.md", "frontier.csv", "frontier.json", "frontier_tiny.png", "frontier_tiny.svg",
    ]  # fmt: skip
    names = ["rmse_tiny", "promises", "ranking_tiny", "plan", "time", "budget"]
    assert [table.name for table in found.tables] == names
    text = found.report.read_text("utf-8")
    assert "NOT PRIVATE" in text
    assert [text.index(table.title) for table in found.tables] == sorted(text.index(t.title) for t in found.tables)
    assert found.files[3].read_bytes().startswith(b"\x89PNG")
    assert "<svg" in found.files[4].read_text()
    assert [done for done, _, _ in calls] == list(range(len(calls)))


def test_the_long_tables_hold_every_number_unrounded(run):
    found, _ = run
    rows = list(csv.DictReader(found.files[1].read_text().splitlines()))
    np.testing.assert_array_equal([float(row["rmse"]) for row in rows], [r.rmse for r in found.records])
    record = json.loads(found.files[2].read_text())
    stored = [np.nan if row["rmse"] is None else row["rmse"] for row in record["records"]]
    np.testing.assert_array_equal(stored, [r.rmse for r in found.records])
    assert sum(np.isnan(stored)) == len(SEEDS), "only the list by counts predicts no rating"
    assert "NOT PRIVATE" in record["notice"]


def test_a_missing_folder_or_set_is_refused_with_a_remedy(tmp_path, data):
    with pytest.raises(DataError, match=r"not a folder of rating sets.*ml-latest-small\.parquet"):
        frontier(tmp_path / "nowhere", tmp_path / "out")
    with pytest.raises(DataError, match=r"has no ml-latest-small\.parquet and no movietweetings.*--data"):
        frontier(data, tmp_path / "out")
    with pytest.raises(DataError, match=r"has no other\.parquet"):
        frontier(data, tmp_path / "out", sets={**SETS, "other": Scale(1, 5)})
    assert not (tmp_path / "out").exists()


def test_a_file_whose_scale_nobody_declared_is_left_out_and_named(data, tmp_path, counted):
    table = pq.read_table(data / "tiny.parquet")
    for name in ("tiny", "stranger"):
        pq.write_table(table, tmp_path / f"{name}.parquet")
    found = frontier(tmp_path, tmp_path / "out", sets=SETS, epsilons=(1.0,), seeds=(0,), methods=["constant"])
    assert "nobody declared their scale: stranger.parquet" in found.report.read_text("utf-8")
    assert {record.set for record in found.records} == {"tiny"}


@pytest.mark.parametrize("wrong", [{"seeds": ()}, {"epsilons": ()}, {"methods": ["magic"]}, {"methods": []}])
def test_an_empty_or_unknown_request_is_refused(data, tmp_path, wrong):
    with pytest.raises(ParameterError, match=r"needs a seed and a budget|methods are constant"):
        frontier(data, tmp_path / "out", sets=SETS, **wrong)


def test_epsilons_are_read_from_a_list_with_commas():
    assert parse_epsilons("0.1, 1,10") == (0.1, 1.0, 10.0)
    with pytest.raises(ParameterError, match="separated by commas"):
        parse_epsilons("1;2")


def test_the_command_passes_its_options_on_and_prints_the_report(data, tmp_path, counted, monkeypatch, capsys):
    from dpsr.cli import frontier as command
    from dpsr.evaluate import frontier_sets

    monkeypatch.setattr(frontier_sets, "KNOWN", SETS)
    app = typer.Typer()
    app.command()(command.frontier)
    arguments = ["frontier", "--data", data, "--out", tmp_path / "out", "--seeds", 2, "--epsilons", "1,5"]
    monkeypatch.setattr(sys, "argv", [str(argument) for argument in arguments])
    with pytest.raises(SystemExit) as stop:
        app()
    assert stop.value.code == 0
    assert "| dpsr |" in capsys.readouterr().out
    assert {(e, n) for n, e, _ in counted if n == "dpsr"} == {(1.0, "dpsr"), (5.0, "dpsr")}
    assert command.EXAMPLE.startswith("Example: dpsr frontier")


def test_a_list_by_counts_reads_no_value(data):
    train, _ = find_sets(data, SETS)[0].read().split(0.2, seed=0)
    ranker = METHODS["most-rated"].fit(train, 0.0, 0).predictor
    np.testing.assert_array_equal(ranker.scores(3), train.mask.item_counts)
    assert np.isnan(ranker.predict(np.array([0, 1]), np.array([1, 1]))).all()


def test_noisy_ratings_are_clipped_before_the_baseline_sees_them(data, monkeypatch):
    seen = []

    class Spy(frontier_methods.ALS):
        def fit(self, mask, values, scale):
            seen.append(values)
            return super().fit(mask, values, scale)

    train, _ = find_sets(data, SETS)[0].read().split(0.2, seed=0)
    fitted = frontier_methods._after(frontier_methods._gaussian, Spy)(train, 1.0, 3)
    assert seen[0].min() >= 1
    assert seen[0].max() <= 5
    assert len(np.unique(seen[0])) > 5
    assert fitted.exact_epsilon is None


def test_every_variant_of_the_ablation_keeps_the_budget(data, tmp_path):
    found = ablation(data, tmp_path, sets=SETS, epsilons=(3.0,))
    assert [outcome.variant for outcome in found.outcomes] == list(VARIANTS)
    assert all(outcome.exact_epsilon <= 3.0 for outcome in found.outcomes)
    assert len({outcome.rmse for outcome in found.outcomes}) == len(VARIANTS), "every idea changes the fit"
    text = found.files[0].read_text("utf-8")
    assert all(f"| {name} |" in text for name in VARIANTS)
    assert len(found.files[1].read_text().splitlines()) == 1 + len(VARIANTS)


def test_an_ablation_resumes_and_refuses_the_unknown(data, tmp_path, monkeypatch):
    calls = []
    monkeypatch.setattr(
        frontier_ablation, "_measure", lambda *a: calls.append(a) or {"rmse": 1.0 + len(calls), "exact_epsilon": 1.0}
    )
    settings = {"sets": SETS, "epsilons": (1.0, 2.0), "variants": ["full", "without factors"]}
    first = ablation(data, tmp_path, **settings)
    assert ablation(data, tmp_path, **settings).outcomes == first.outcomes
    assert len(calls) == 4
    assert first.tables[0].rows[1] == ("without factors", "3.0000 (+50.0)", "5.0000 (+25.0)")
    with pytest.raises(ParameterError, match="needs a variant"):
        ablation(data, tmp_path, sets=SETS, variants=["without luck"])
