"""Lists side by side: what is run, what the tables say, and that everything refused is refused before anything runs."""

import numpy as np
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from dpsr.cli.app import app
from dpsr.data import realistic
from dpsr.errors import DataError, ParameterError
from dpsr.evaluate.contract import JOINT
from dpsr.evaluate.likes.contract import baskets_of
from dpsr.evaluate.likes.pipeline import FoldedIn, LikesPipeline
from dpsr.evaluate.likes.protocol import FOLDED_IN, KNOWN_PEOPLE, LIST_PROTOCOLS, METRICS, top_lists_of
from dpsr.evaluate.likes.registry import LIST_METHODS, OUR_LISTS, OUR_UNLISTED, compared_lists
from dpsr.evaluate.measure import LIKES
from dpsr.evaluate.measure.likes import measure_likes
from dpsr.evaluate.report.tidy import tidy
from dpsr.evaluate.runner.jobs import Job
from dpsr.evaluate.runner.store import load_arrays
from dpsr.evaluate.sets import RatingSet, find_likes
from dpsr.evaluate.studies.likes import likes_frontier, requested_likes
from dpsr.evaluate.studies.likes.tables import (
    LIST_TARGETS,
    TITLES,
    compare_people,
    list_tables,
    recall_chart,
    recall_tables,
)
from dpsr.evaluate.studies.study import run_study


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A small set under a name that the frontier knows."""
    where = tmp_path_factory.mktemp("likes")
    pq.write_table(realistic(0, n_users=120, n_items=40, n_ratings=1500).to_arrow(), where / "ml-latest-small.parquet")
    return where


def rows_of(*records):
    """(method, epsilon, seed, numbers) as the rows of a run."""
    known = RatingSet("ml-latest-small")
    runs = [
        (Job(LIKES, known, method, epsilon, seed, 0, 0, FOLDED_IN), [{"protocol": FOLDED_IN, **numbers}])
        for method, epsilon, seed, numbers in records
    ]
    return tidy(LIKES, runs)


def cells(table, title):
    return next(row[1:] for row in table.rows if row[0] == title)


def test_a_job_gives_one_row_with_every_metric_and_everybodys_figures(tmp_path, folder):
    ratings = RatingSet("tiny", str(folder / "ml-latest-small.parquet"))
    for protocol in LIST_PROTOCOLS:
        (row,) = measure_likes(Job(LIKES, ratings, "noisy-popularity", 1.0, 0, 3, 3, protocol), tmp_path / "one.npz")
        assert set(METRICS) <= row.keys()
        assert (row["unit"], row["protocol"], row["delta"]) == ("user", protocol, 1e-5)
        assert 0.99 < row["exact_epsilon"] <= 1
        saved = load_arrays(tmp_path / "one.npz")
        assert np.nanmean(saved["recall_at_20"]) == pytest.approx(row["recall_at_20"])
        assert len(saved["people"]) == len(saved["ndcg_at_100"])


def test_a_set_of_likes_needs_no_scale_and_ratings_in_it_are_not_looked_at(folder):
    (one,) = find_likes([str(folder / "ml-latest-small.parquet")])
    likes = one.interactions()
    assert set(likes.weights) == {1.0}
    assert len(likes) == 1500
    assert find_likes(["realistic"])[0].interactions(3).n_interactions == 20_000
    with pytest.raises(DataError, match="realistic-100k"):
        find_likes(["nowhere"])


def test_the_benchmark_runs_both_protocols_and_all_methods_but_variants_of_ours():
    study = requested_likes(["realistic"], epsilons="1,5", seeds=2)
    assert {job.protocol for job in study.jobs} == {FOLDED_IN, KNOWN_PEOPLE}
    assert {job.what for job in study.jobs} == set(compared_lists())
    assert OUR_UNLISTED not in compared_lists()
    private = sum(LIST_METHODS[name].budgeted for name in compared_lists())
    assert len(study.jobs) == 2 * 2 * (2 * private + len(compared_lists()) - private)


def test_every_method_of_lists_protects_people_or_nothing_and_has_a_title():
    assert {method.unit for method in LIST_METHODS.values()} == {"user", "none"}
    assert set(TITLES) == set(LIST_METHODS)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"methods": "nonsense"}, "methods are dpsr-likes"),
        ({"epsilons": "0"}, "one positive epsilon"),
        ({"epsilons": "one"}, "numbers separated by commas"),
    ],
)
def test_what_cannot_be_measured_is_refused(wrong, said):
    with pytest.raises(ParameterError, match=said):
        requested_likes(["realistic"], **wrong)


def test_a_whole_small_run_writes_its_report_and_is_resumed(tmp_path, folder):
    def run():
        study = requested_likes([str(folder)], methods="dpsr-likes,noisy-popularity,popularity", epsilons="2", seeds=1)
        return run_study(study, tmp_path, workers=1, timeout=120)

    report = run()
    text = report.report.read_text("utf-8")
    assert "NOT PRIVATE" in text
    assert "held-out people: Recall@20" in text
    assert "held-out interactions: NDCG@100" in text
    assert "dpsr-likes against every other method" in text
    assert not any(report.rows["likes"]["error"].to_pylist())
    before = (tmp_path / "results.jsonl").read_text("utf-8")
    run()
    assert (tmp_path / "results.jsonl").read_text("utf-8") == before


def test_the_frontier_puts_goals_floor_and_reference_beside_ours():
    rows = rows_of(
        (OUR_LISTS, 1.0, 0, {"recall_at_20": 0.16}), (OUR_LISTS, 5.0, 0, {"recall_at_20": 0.24}),
        ("noisy-popularity", 1.0, 0, {"recall_at_20": 0.15}), ("noisy-popularity", 5.0, 0, {"recall_at_20": 0.16}),
        ("ease", None, 0, {"recall_at_20": 0.32}),
    )  # fmt: skip
    table = recall_tables(rows, [1.0, 5.0])[0]
    assert cells(table, "ml-latest-small: reach") == ("0.156 met", "0.244 missed")
    assert cells(table, "ml-latest-small: aim above") == ("0.175 missed", "0.260 missed")
    assert cells(table, "dpsr over noisy popularity") == ("+6.7%", "+50.0%")
    assert cells(table, "dpsr of EASE") == ("50%", "75%")
    chart = recall_chart(rows, "ml-latest-small", [1.0, 5.0])
    ((panel,),) = chart.panels
    assert panel.up == "Recall@20 for held-out people"
    assert "one person" in panel.across
    assert panel.lines[0].y == (0.16, 0.24)
    assert {line.label for line in panel.lines} >= {"aim above", "noisy popularity"}
    assert panel.levels[0].y == 0.32


def test_tables_keep_protocols_apart():
    both = [
        (Job(LIKES, RatingSet("s"), "popularity", None, 0, 0, 0, protocol), [
            {"protocol": protocol, "unit": "none", "recall_at_20": recall, "epsilon": 1.0}])
        for protocol, recall in ((FOLDED_IN, 0.1), (KNOWN_PEOPLE, 0.3))
    ]  # fmt: skip
    tables = [table for table in list_tables(tidy(LIKES, both)) if table.title.endswith("Recall@20") and table.rows]
    assert [row[-1] for table in tables for row in table.rows] == ["0.1000", "0.3000"]


def test_goals_are_those_of_the_set_and_rise_with_epsilon():
    for targets in LIST_TARGETS.values():
        for goals in (targets.reach, targets.aim):
            assert list(goals.values()) == sorted(goals.values())
        assert all(targets.aim[e] > targets.reach[e] for e in targets.reach)


def test_people_are_compared_with_themselves_and_a_person_met_twice_counts_once():
    rng = np.random.default_rng(0)
    people = np.array([f"p{i}" for i in range(200)])
    theirs = {seed: {"people": people, "recall_at_20": rng.random(200)} for seed in (0, 1)}
    ours = {seed: {**one, "recall_at_20": one["recall_at_20"] + 0.05 + 0.1 * rng.standard_normal(200)}
            for seed, one in theirs.items()}  # fmt: skip
    found = compare_people(ours, theirs)
    assert found.mean == pytest.approx(0.05, abs=0.02)
    assert found.n_users == 200
    assert found.p < 1e-6
    twice = {2 * seed + copy: one for seed, one in ours.items() for copy in (0, 1)}
    again = compare_people(twice, {2 * seed + copy: one for seed, one in theirs.items() for copy in (0, 1)})
    assert again.t == pytest.approx(found.t, rel=0.01), "the same people again say nothing new"


def test_people_without_anything_hidden_are_left_out_of_a_comparison():
    one = {"people": np.array(["a", "b", "c", "d"]), "recall_at_20": np.array([0.5, np.nan, 0.25, 0.5])}
    two = {"people": np.array(["a", "b", "c", "d"]), "recall_at_20": np.array([0.25, np.nan, 0.25, 0.5])}
    assert compare_people({0: one}, {0: two}).n_users == 3


@pytest.mark.parametrize("declared", [True, False])
def test_our_lists_are_those_that_fold_in_gives(declared):
    likes = realistic(4, n_users=400, n_items=40, n_ratings=6000).liked(at_least=1)
    method = LikesPipeline(10.0, 1e-5, noise_seed=1, declared=declared).fit(likes)
    assert isinstance(method.model_, FoldedIn)
    release = method.model_.release
    lists = top_lists_of(method, likes.mask, 5)
    assert JOINT in method.protection.note
    for user in (0, 7, 399):
        own = likes.mask.items[likes.mask.indptr[user] : likes.mask.indptr[user + 1]]
        expected = release.fold_in(likes.item_ids.take(own.astype(int)), n=5)
        scores = method.scores_of(baskets_of(likes.mask)[user])[0]
        listed = lists[user][lists[user] >= 0]
        np.testing.assert_allclose(scores[listed], expected.scores, rtol=1e-9)


def test_the_frontier_of_likes_runs_held_out_people_of_known_sets(folder):
    study = likes_frontier(folder, epsilons=[1.0], seeds=[0])
    assert {job.protocol for job in study.jobs} == {FOLDED_IN}
    assert {"dpsr-likes", "noisy-popularity", "ease"} <= {job.what for job in study.jobs}


@pytest.mark.parametrize(
    "words",
    [
        ["benchmark", "realistic", "--likes", "--downstream"],
        ["benchmark", "realistic", "--likes", "--scale", "1:5:1"],
        ["frontier", "--likes", "--unit", "rating", "--out", "x"],
    ],
)
def test_options_that_mean_nothing_for_likes_are_refused(words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, words)
    assert result.exit_code != 0
    assert isinstance(result.exception, ParameterError | SystemExit)
    assert not list(tmp_path.iterdir())
