"""Charts are their tables, and the tables are the runs: every point is computed again here by a plain loop."""

import csv
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from dpsr.errors import ParameterError
from dpsr.evaluate.benchmark.claims import Done, claims, split_of
from dpsr.evaluate.benchmark.details import Details, listed_users, overlap, top_ten
from dpsr.evaluate.benchmark.jobs import Job
from dpsr.evaluate.benchmark.pictures import draw, points_table, write_chart
from dpsr.evaluate.benchmark.report import fill, headlines, sections
from dpsr.evaluate.benchmark.sets import Source
from dpsr.evaluate.benchmark.slices import COUNTS, Point, charts
from dpsr.evaluate.benchmark.summaries import grid, units_of
from dpsr.evaluate.benchmark.table import ATTACKS, DOWNSTREAM, tidy
from dpsr.evaluate.peers.base import JOINT

SOURCE, SEEDS, EPSILONS = Source("realistic"), (0, 1), (0.5, 1.0)
SPREAD = {"dpsr": 0.6, "laplace-als": 0.9, "als": 0.4, "constant": 1.0}
UNITS = {"dpsr": "rating value", "laplace-als": "rating value", "als": "none", "constant": "none"}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Runs that never ran: predictions are the truth and noise, so that every chart has a known answer."""
    folder, rng, results = tmp_path_factory.mktemp("details"), np.random.default_rng(0), []
    for method, spread in SPREAD.items():
        for epsilon in EPSILONS if UNITS[method] != "none" else (None,):
            for seed in SEEDS:
                job = Job("method", SOURCE, method, epsilon, seed)
                train, test = split_of(SOURCE, seed)
                predicted = np.clip(test.values + rng.normal(0, spread, len(test)), 1, 5).astype(np.float32)
                users = listed_users(train.mask, seed)
                lists = rng.permuted(np.tile(np.arange(30, dtype=np.int32), (len(users), 1)), axis=1)[:, :10]
                Details(predicted, lists).save(folder / f"{job.name}.npz")
                error = float(np.sqrt(np.mean((test.values - predicted.astype(np.float64)) ** 2)))
                results.append((job, [{"rmse": error, "unit": UNITS[method], "ndcg_at_10": 0.1}]))
    done = Done(tuple(job for job, _ in results), UNITS, folder)
    return done, tidy("method", results)


def chart(made, name):
    return next(found for found in charts(*made, 1.0) if found.name == name)


def rmse_of(table, method, epsilon):
    return [row["rmse"] for row in table.to_pylist() if (row["method"], row["epsilon"]) == (method, epsilon)]


def test_the_frontier_is_the_mean_and_spread_of_the_table(made):
    points = {(p.method, p.label): p for p in chart(made, "frontier").points}
    assert len(points) == 6
    for method, epsilon, label in (("dpsr", 0.5, "0.5"), ("laplace-als", 1.0, "1"), ("als", None, "none")):
        errors = rmse_of(made[1], method, epsilon)
        assert points[method, label].y == pytest.approx(np.mean(errors))
        assert points[method, label].deviation == pytest.approx(np.std(errors, ddof=1))
        assert points[method, label].seeds == 2


def test_improvement_is_seed_by_seed_and_levels_are_compared_at_every_epsilon(made):
    points = {(p.method, p.x): p.y for p in chart(made, "improvement").points}
    assert {method for method, _ in points} == {"laplace-als", "als", "constant"}
    for peer, at in (("laplace-als", 0.5), ("als", None)):
        pairs = zip(rmse_of(made[1], "dpsr", 0.5), rmse_of(made[1], peer, at), strict=True)
        assert points[peer, 0.5] == pytest.approx(np.mean([100 * (1 - ours / theirs) for ours, theirs in pairs]))


@pytest.mark.parametrize(("name", "side"), [("popularity", "item"), ("activity", "user")])
def test_classes_are_by_training_counts(made, name, side):
    done, _ = made
    points = {p.x: p.y for p in chart(made, name).points if p.method == "als"}
    for place, low in enumerate(COUNTS):
        high = COUNTS[place + 1] if place + 1 < len(COUNTS) else np.inf
        values = []
        for seed, job in done.of(SOURCE, "als", 1.0).items():
            train, test = split_of(SOURCE, seed)
            counts = getattr(train.mask, f"{side}_counts")[getattr(test.mask, f"{side}s")]
            chosen = (counts >= low) & (counts < high)
            if chosen.any():
                errors = test.values[chosen] - done.details(job).predicted[chosen].astype(np.float64)
                values.append(np.sqrt(np.mean(errors**2)))
        assert (place in points) == bool(values)
        if values:
            assert points[place] == pytest.approx(np.mean(values))


def test_calibration_of_truth_with_noise_lies_near_the_diagonal_but_not_on_it(made):
    """Regression to the mean: predictions that are truth and noise are too extreme."""
    points = [p for p in chart(made, "calibration").points if p.method == "als"]
    assert len(points) == 10
    assert points[0].y > points[0].x
    assert points[-1].y < points[-1].x
    assert chart(made, "calibration").diagonal


def test_overlap_with_itself_is_whole_and_of_random_lists_what_chance_gives(made):
    points = [p for p in chart(made, "overlap").points if p.method == "dpsr"]
    assert points[0].y == pytest.approx(10 / 30, abs=0.03)
    lists = np.arange(20, dtype=np.int32).reshape(2, 10)
    assert overlap(lists, lists) == 1.0
    assert overlap(lists, lists[::-1]) == 0.0
    short = np.array([[3, 4, -1, -1]], dtype=np.int32)
    assert overlap(short, np.array([[4, 9, 8, -1]], dtype=np.int32)) == 0.5


def test_lists_leave_out_what_was_rated_and_are_best_first():
    train, _ = split_of(SOURCE, 0)

    class ByCode:
        def scores(self, user):
            return np.arange(train.mask.n_items, dtype=float)

        def predict(self, users, items):
            return np.zeros(len(users))

    users = listed_users(train.mask, 0)
    lists = top_ten(ByCode(), train.mask, users)
    for user, row in zip(users, lists, strict=True):
        rated = set(train.mask.items[train.mask.indptr[user] : train.mask.indptr[user + 1]].tolist())
        assert row.tolist() == [j for j in range(train.mask.n_items - 1, -1, -1) if j not in rated][:10]


def test_files_beside_a_picture_hold_exactly_its_points(made, tmp_path):
    found = chart(made, "frontier")
    paths = write_chart(found, UNITS, tmp_path)
    assert [path.suffix for path in paths] == [".csv", ".png", ".svg"]
    with paths[0].open() as file:
        rows = list(csv.DictReader(file))
    assert [float(row["y"]) for row in rows] == [point.y for point in found.points]
    assert [row["unit"] for row in rows] == [UNITS[point.method] for point in found.points]
    assert points_table(found, UNITS).rows[0][1] == found.points[0].method
    assert all(path.stat().st_size > 500 for path in paths)


def test_what_is_drawn_is_what_the_table_says(made):
    axes = draw(chart(made, "frontier"), UNITS).axes[0]
    lines = {line.get_label(): line for line in axes.get_lines()}
    points = sorted((p for p in chart(made, "frontier").points if p.method == "dpsr"), key=lambda p: p.x)
    assert lines["dpsr"].get_xdata().tolist() == [0.5, 1.0]
    assert lines["dpsr"].get_ydata().tolist() == [p.y for p in points]
    assert set(lines["als (no privacy)"].get_ydata()) == {
        p.y for p in chart(made, "frontier").points if p.method == "als"
    }


def test_a_method_looks_the_same_whoever_is_drawn_beside_it(made):
    whole = chart(made, "frontier")
    alone = replace(whole, points=tuple(p for p in whole.points if p.method == "laplace-als"))

    def look(one):
        line = next(line for line in draw(one, UNITS).axes[0].get_lines() if line.get_label() == "laplace-als")
        return line.get_color(), line.get_marker()

    assert look(alone) == look(whole)


def test_claims_find_what_was_planted_and_only_that(made):
    done, _ = made
    table = claims(done)
    by = {(row[1], row[3]): row for row in table.rows}
    assert by["laplace-als", 1.0][-1] == "ahead"
    assert by["als", 1.0][-1] == "behind"
    assert by["constant", 0.5][-1] == "ahead"
    own = Done((*(job for job in done.jobs if job.what == "dpsr"),), UNITS, done.folder)
    assert claims(own).rows == ()
    row = by["laplace-als", 1.0]
    per_seed = []
    for seed in SEEDS:
        ours, theirs = (done.details(done.of(SOURCE, m, 1.0)[seed]).predicted for m in ("dpsr", "laplace-als"))
        truth = split_of(SOURCE, seed)[1].values
        per_seed.append((truth - theirs) ** 2 - (truth - ours) ** 2)
    assert row[4] == pytest.approx(np.concatenate(per_seed).mean(), rel=1e-5)
    t = stats.ttest_1samp(np.concatenate(per_seed), 0).statistic
    assert 0 < row[5] < 1.5 * t, "independent errors: grouping changes little"


def test_the_best_private_figure_of_a_column_is_bold_and_levels_are_repeated(made):
    table = grid(made[1], "realistic", "rmse", UNITS, digits=3)
    ours = next(row for row in table.rows if row[0] == "dpsr")
    level = next(row for row in table.rows if row[0] == "als")
    assert all(cell.startswith("**") for cell in ours[2:])
    assert level[2] == level[3]
    assert not level[2].startswith("**"), "not private"


def test_a_document_keeps_its_prose_and_gets_its_sections(made, tmp_path):
    done, table = made
    parts = sections({"sets": "a\\b"}, table, claims(done), DOWNSTREAM.empty_table(), ATTACKS.empty_table())
    assert "Every run ended with a result." in parts["failures"]
    assert "downstream" not in parts
    document = tmp_path / "d.md"
    document.write_text("before\n<!-- generated: run -->\nold\n<!-- end: run -->\nafter\n")
    fill(document, parts)
    fill(document, parts)
    assert document.read_text() == "before\n<!-- generated: run -->\n\n* sets: a\\b\n\n<!-- end: run -->\nafter\n"
    document.write_text("nothing")
    with pytest.raises(ParameterError, match="generated: rmse"):
        fill(document, parts)


def test_a_point_of_one_seed_has_no_band(made):
    found = chart(made, "frontier")
    alone = type(found)(**{**found.__dict__, "points": (Point("dpsr", 1.0, "1", 0.9, float("nan"), 1),)})
    assert draw(alone, UNITS).axes[0].get_lines()


def test_joint_dp_is_named_and_is_counted_beside_releases(made):
    _, table = made
    notes = [JOINT if method == "laplace-als" else "" for method in table["method"].to_pylist()]
    joint = table.set_column(table.schema.get_field_index("note"), "note", [notes])
    assert units_of(joint)["laplace-als"] == "rating value, joint DP"
    assert units_of(table)["laplace-als"] == "rating value"
    done = Done(made[0].jobs, units_of(joint), made[0].folder)
    releases, beside = headlines(claims(done)).strip().splitlines()
    assert "in 0 of 0 comparisons" in releases
    assert "in 2 of 2 comparisons" in beside
    assert "in 2 of 2 comparisons with releases" in headlines(claims(made[0]))
