"""Charts are their tables, and the tables are the runs: every point is computed again here by a plain loop."""

import csv
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from dpsr.errors import ParameterError
from dpsr.evaluate.contract import JOINT
from dpsr.evaluate.measure import ATTACK, LEARNERS, METHOD
from dpsr.evaluate.metrics.ranking import list_overlap
from dpsr.evaluate.protocol import SAMPLE_RANKED, Predictions, listed_users
from dpsr.evaluate.report import charts
from dpsr.evaluate.report.breakdowns import COUNTS, Point, breakdowns, chart_of
from dpsr.evaluate.report.charts import draw
from dpsr.evaluate.report.comparisons import (
    Fits,
    ahead_or_behind,
    headlines,
    rival_of,
    significance_table,
    split_of,
    verdict_table,
)
from dpsr.evaluate.report.tidy import SCHEMAS, Mean, tidy, units_of
from dpsr.evaluate.runner.jobs import Job
from dpsr.evaluate.runner.store import save_arrays
from dpsr.evaluate.sets import RatingSet
from dpsr.evaluate.studies.benchmark.tables import document_of, popularity_table, sections

RATINGS, SEEDS, EPSILONS = RatingSet("realistic"), (0, 1), (0.5, 1.0)
SPREAD = {"dpsr": 0.6, "laplace-als": 0.9, "als": 0.4, "constant": 1.0}
UNITS = {"dpsr": "rating value", "laplace-als": "rating value", "als": "none", "constant": "none"}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Runs that never ran: predictions are the truth and noise, so that every chart has a known answer."""
    folder, rng, runs = tmp_path_factory.mktemp("predictions"), np.random.default_rng(0), []
    for method, spread in SPREAD.items():
        for epsilon in EPSILONS if UNITS[method] != "none" else (None,):
            for seed in SEEDS:
                job = Job(METHOD, RATINGS, method, epsilon, seed, 0, 0, SAMPLE_RANKED)
                train, test = split_of(job)
                predicted = np.clip(test.values + rng.normal(0, spread, len(test)), 1, 5).astype(np.float32)
                users = listed_users(train.mask, seed)
                lists = rng.permuted(np.tile(np.arange(30, dtype=np.int32), (len(users), 1)), axis=1)[:, :10]
                save_arrays(folder / f"{job.name}.npz", Predictions(predicted, lists).arrays())
                error = float(np.sqrt(np.mean((test.values - predicted.astype(np.float64)) ** 2)))
                runs.append((job, [{"rmse": error, "unit": UNITS[method], "ndcg_at_10": 0.1}]))
    return Fits(tuple(job for job, _ in runs), UNITS, folder), tidy(METHOD, runs)


@pytest.fixture(scope="module")
def found(made):
    return {one.name: one for one in breakdowns(*made, 1.0)}


@pytest.fixture(scope="module")
def significance(made):
    return significance_table(made[0])


def rmse_of(table, method, epsilon):
    return [row["rmse"] for row in table.to_pylist() if (row["method"], row["epsilon"]) == (method, epsilon)]


def test_the_frontier_is_the_mean_and_spread_of_the_table(made, found):
    points = {(p.method, p.label): p.mean for p in found["frontier"].points}
    assert len(points) == 6
    for method, epsilon, label in (("dpsr", 0.5, "0.5"), ("laplace-als", 1.0, "1"), ("als", None, "none")):
        errors = rmse_of(made[1], method, epsilon)
        assert points[method, label].value == pytest.approx(np.mean(errors))
        assert points[method, label].deviation == pytest.approx(np.std(errors, ddof=1))
        assert points[method, label].seeds == 2


def test_improvement_is_seed_by_seed_and_levels_are_compared_at_every_epsilon(made, found):
    points = {(p.method, p.x): p.mean.value for p in found["improvement"].points}
    assert {method for method, _ in points} == {"laplace-als", "als", "constant"}
    for peer, at in (("laplace-als", 0.5), ("als", None)):
        pairs = zip(rmse_of(made[1], "dpsr", 0.5), rmse_of(made[1], peer, at), strict=True)
        assert points[peer, 0.5] == pytest.approx(np.mean([100 * (1 - ours / theirs) for ours, theirs in pairs]))


@pytest.mark.parametrize(("name", "side"), [("popularity", "item"), ("activity", "user")])
def test_classes_are_by_training_counts(made, found, name, side):
    fits, _ = made
    points = {p.x: p.mean.value for p in found[name].points if p.method == "als"}
    for place, low in enumerate(COUNTS):
        high = COUNTS[place + 1] if place + 1 < len(COUNTS) else np.inf
        values = []
        for job in fits.at(RATINGS, "als", 1.0).values():
            train, test = split_of(job)
            counts = getattr(train.mask, f"{side}_counts")[getattr(test.mask, f"{side}s")]
            chosen = (counts >= low) & (counts < high)
            if chosen.any():
                errors = test.values[chosen] - fits.predictions(job).predicted[chosen].astype(np.float64)
                values.append(np.sqrt(np.mean(errors**2)))
        assert (place in points) == bool(values)
        if values:
            assert points[place] == pytest.approx(np.mean(values))


def test_calibration_of_truth_with_noise_lies_near_the_diagonal_but_not_on_it(found):
    """Regression to the mean: predictions that are truth and noise are too extreme."""
    points = [p for p in found["calibration"].points if p.method == "als"]
    assert len(points) == 10
    assert points[0].mean.value > points[0].x
    assert points[-1].mean.value < points[-1].x
    assert "calibrated" in [line.label for line in chart_of(found["calibration"], UNITS).panels[0][0].lines]


def test_overlap_with_itself_is_whole_and_of_random_lists_what_chance_gives(found):
    points = [p for p in found["overlap"].points if p.method == "dpsr"]
    assert points[0].mean.value == pytest.approx(10 / 30, abs=0.03)
    lists = np.arange(20, dtype=np.int32).reshape(2, 10)
    assert list_overlap(lists, lists) == 1.0
    assert list_overlap(lists, lists[::-1]) == 0.0
    short = np.array([[3, 4, -1, -1]], dtype=np.int32)
    assert list_overlap(short, np.array([[4, 9, 8, -1]], dtype=np.int32)) == 0.5


def test_files_beside_a_picture_hold_exactly_its_points(found, tmp_path):
    frontier = found["frontier"]
    paths = frontier.write(UNITS, tmp_path)
    assert [path.name for path in paths] == [f"frontier_realistic.{ending}" for ending in ("csv", "png", "svg")]
    with paths[0].open() as file:
        rows = list(csv.DictReader(file))
    assert [float(row["y"]) for row in rows] == [point.mean.value for point in frontier.points]
    assert [row["unit"] for row in rows] == [UNITS[point.method] for point in frontier.points]
    assert paths[1].read_bytes().startswith(b"\x89PNG")
    assert "<svg" in paths[2].read_text()
    again = frontier.write(UNITS, tmp_path)
    assert paths[2].read_bytes() == again[2].read_bytes(), "no clock and no chance in the files"


def test_what_is_drawn_is_what_the_table_says(found):
    axes = draw(chart_of(found["frontier"], UNITS)).axes[0]
    lines = {line.get_label(): line for line in axes.get_lines()}
    points = sorted((p for p in found["frontier"].points if p.method == "dpsr"), key=lambda p: p.x)
    assert list(lines["dpsr"].get_xdata()) == [0.5, 1.0]
    assert list(lines["dpsr"].get_ydata()) == [p.mean.value for p in points]
    assert set(lines["als (no privacy)"].get_ydata()) == {
        p.mean.value for p in found["frontier"].points if p.method == "als"
    }


def test_a_method_looks_the_same_whoever_is_drawn_beside_it(found):
    whole = found["frontier"]
    alone = replace(whole, points=tuple(p for p in whole.points if p.method == "laplace-als"))

    def look(one):
        (line,) = (line for line in chart_of(one, UNITS).panels[0][0].lines if line.label == "laplace-als")
        return line.colour, line.marker

    assert look(alone) == look(whole)


def test_another_unit_is_dashed_and_ours_is_on_top(found):
    units = {**UNITS, "laplace-als": "user"}
    lines = {line.label: line for line in chart_of(found["frontier"], units).panels[0][0].lines}
    assert (lines["dpsr"].style, lines["dpsr"].on_top) == ("-", True)
    assert (lines["laplace-als [user]"].style, lines["laplace-als [user]"].on_top) == ("--", False)


def test_a_point_of_one_seed_has_no_band(found):
    alone = replace(found["frontier"], points=(Point("dpsr", 1.0, "1", Mean.of([0.9])),))
    assert np.isnan(chart_of(alone, UNITS).panels[0][0].lines[0].deviation[0])
    assert draw(chart_of(alone, UNITS)).axes[0].get_lines()


def test_without_matplotlib_one_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setattr(charts, "find_spec", lambda name: None)
    with pytest.raises(ParameterError, match=r"Install dpsr\[plots\]"):
        charts.require_matplotlib()


def test_comparisons_find_what_was_planted_and_only_that(made, significance):
    fits, table = made
    by = {(row[1], row[3]): row for row in significance.rows}
    assert by["laplace-als", 1.0][-1] == "ahead"
    assert by["als", 1.0][-1] == "behind"
    assert by["constant", 0.5][-1] == "ahead"
    row = by["laplace-als", 1.0]
    per_seed = []
    for seed in SEEDS:
        ours, theirs = (fits.at(RATINGS, method, 1.0)[seed] for method in ("dpsr", "laplace-als"))
        truth, said = split_of(ours).test.values, [fits.predictions(job).predicted for job in (ours, theirs)]
        per_seed.append((truth - said[1]) ** 2 - (truth - said[0]) ** 2)
    assert row[4] == pytest.approx(np.concatenate(per_seed).mean(), rel=1e-5)
    t = stats.ttest_1samp(np.concatenate(per_seed), 0).statistic
    assert 0 < row[5] < 1.5 * t, "independent errors: grouping changes little"
    shown = {line[0]: line[2:] for line in verdict_table(significance, table, "realistic").rows}
    gain = 100 * (1 - np.mean(rmse_of(table, "dpsr", 1.0)) / np.mean(rmse_of(table, "laplace-als", 1.0)))
    assert shown["laplace-als"][1].startswith(f"{gain:+.1f} % ahead, p < 0.0001")


def test_ours_is_not_compared_with_itself(made):
    fits, _ = made
    own = replace(fits, jobs=tuple(job for job in fits.jobs if job.what == "dpsr"))
    assert significance_table(own).rows == ()


def test_the_verdict_needs_a_small_p_and_the_right_sign():
    found = [ahead_or_behind(*one) for one in ((1.0, 0.01), (-1.0, 0.01), (1.0, 0.2), (1.0, float("nan")))]
    assert found == [
        "ahead", "behind", "undecided", "undecided",
    ]  # fmt: skip


def test_joint_dp_is_named_and_is_counted_beside_releases(made, significance):
    fits, table = made
    notes = [JOINT if method == "laplace-als" else "" for method in table["method"].to_pylist()]
    joint = table.set_column(table.schema.get_field_index("note"), "note", [notes])
    (beside,) = headlines(significance_table(replace(fits, units=units_of(joint)))).strip().splitlines()
    assert "with joint DP" in beside
    assert "in 2 of 2 comparisons" in beside
    assert "one rating value: dpsr is ahead, p < 0.05 after Holm, in 2 of 2 comparisons with releases" in headlines(
        significance
    )


def test_a_method_is_compared_with_ours_at_its_own_unit_and_with_nothing_where_ours_was_not_run():
    units = {"dp-als": "user, joint DP", "dp-sgd-mf": "rating (add/remove)", "laplace-als": "rating value"}
    units |= {"als": "none", "dpsr-user": "user, joint DP"}
    fitted = ["dpsr", "dpsr-user", *units]
    found = {name: rival_of(name, units, fitted) for name in units}
    assert found == {"dp-als": "dpsr-user", "dp-sgd-mf": None, "laplace-als": "dpsr", "als": "dpsr", "dpsr-user": None}
    assert rival_of("als", units, ["dpsr-user", "als"]) == "dpsr-user"


def test_error_by_popularity_shows_the_methods_of_one_unit_and_the_points_of_the_chart(found):
    methods = {"laplace-als": "user, joint DP", "als": "none"}
    table = popularity_table(found["popularity"], methods, "user")
    assert table.title == "realistic: RMSE by training ratings of the item, ε = 1; ε for one user"
    assert [row[:2] for row in table.rows] == list(methods.items())
    point = next(p for p in found["popularity"].points if p.method == "als")
    assert dict(zip(table.header, table.rows[1], strict=True))[point.label].startswith(f"{point.mean.value:.4f}")


def test_sections_of_one_unit_hold_no_method_of_another(made, found):
    fits, table = made
    notes = ["user" if method == "laplace-als" else unit for method, unit in zip(
        table["method"].to_pylist(), table["unit"].to_pylist(), strict=True
    )]  # fmt: skip
    mixed = table.set_column(table.schema.get_field_index("unit"), "unit", [notes])
    significance = significance_table(replace(fits, units=units_of(mixed)))
    empty = SCHEMAS[LEARNERS].empty_table(), SCHEMAS[ATTACK].empty_table()
    parts = sections({"sets": "tiny"}, mixed, significance, *empty, list(found.values()))
    for name in ("rmse", "popularity", "ranking"):
        assert "laplace-als" in parts[f"{name}-user"]
        assert "| dpsr |" not in parts[f"{name}-user"]
        assert "laplace-als" not in parts[f"{name}-value"]
        assert parts[name].count("| als |") == parts[f"{name}-user"].count("| als |") * 2
    assert "constant" in parts["significance-value"]
    assert "-value" not in document_of(parts)
