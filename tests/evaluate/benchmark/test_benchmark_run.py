"""The benchmark as it is used: whatever a method does is a row, nothing is done twice, a killed run goes on."""

import csv
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import psutil
import pyarrow.parquet as pq
import pytest
from strange_methods import diary_of

from dpsr.data import realistic
from dpsr.errors import DataError, ParameterError, ScaleError
from dpsr.evaluate.benchmark import jobs as jobs_module
from dpsr.evaluate.benchmark.jobs import Job, source_digest
from dpsr.evaluate.benchmark.request import EPSILONS, request_of
from dpsr.evaluate.benchmark.run import DETAILS, STORE, Request, benchmark
from dpsr.evaluate.benchmark.sets import Source, find_sources, parse_scales
from dpsr.evaluate.benchmark.table import METHODS
from dpsr.evaluate.peers.registry import peer_names

STRANGE = "strange_methods"
TIMEOUT = 20.0


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "tiny.parquet"
    pq.write_table(realistic(0, n_users=60, n_items=50, n_ratings=1200).to_arrow(), path)
    return Source("tiny", str(path), "1:5:1")


@pytest.fixture
def fits():
    """How many fits were noted since the test began, by benchmarks of this process or of another."""
    paths = []

    def count(pid=None):
        path = diary_of(pid or os.getpid())
        paths.append(path)
        return len(path.read_text().splitlines()) if path.exists() else 0

    before = count()
    yield lambda pid=None: count(pid) - (before if pid is None else 0)
    for path in paths:
        path.unlink(missing_ok=True)


def request(source, *methods, seeds=(0,), **settings):
    names = [
        f"{STRANGE}:{name}" if name in ("level", "slow", "failing", "hanging", "dying") else name for name in methods
    ]
    return Request([source], names, (1.0, 2.0), seeds, **{"workers": 2, "timeout": TIMEOUT, **settings})


@pytest.fixture(scope="module")
def strange(source, tmp_path_factory):
    """One run with everything that can go wrong beside something that goes right."""
    out = tmp_path_factory.mktemp("strange")
    return benchmark(request(source, "hanging", "failing", "dying", "level", "constant", timeout=8.0), out)


def rows(found, method):
    return [row for row in found.methods.to_pylist() if row["method"] in (method, f"{STRANGE}:{method}")]


def test_a_method_that_raises_is_a_row_with_class_and_sentence(strange):
    failed = rows(strange, "failing")
    assert [row["epsilon"] for row in failed] == [1.0, 2.0]
    assert {row["error"] for row in failed} == {"ArithmeticError: the sum does not converge"}
    assert {row["rmse"] for row in failed} == {None}


def test_a_method_that_does_not_end_is_killed_and_is_a_row(strange):
    (late,) = rows(strange, "hanging")
    assert late["error"] == "Timeout: no result within 8 seconds"
    assert late["epsilon"] is None


def test_a_process_that_dies_is_a_row_that_names_the_signal(strange):
    (dead,) = rows(strange, "dying")
    assert "SIGKILL" in dead["error"]


def test_what_goes_wrong_does_not_touch_the_others(strange):
    assert all(row["error"] is None and row["rmse"] > 0 for row in rows(strange, "level") + rows(strange, "constant"))
    assert "strange_methods:dying" in strange.report.read_text("utf-8")


def test_the_report_marks_the_run_as_not_private(strange):
    assert "NOT PRIVATE" in strange.report.read_text("utf-8")


def test_every_row_has_every_column_and_the_three_files_agree(strange):
    folder = strange.report.parent
    assert pq.read_schema(folder / "benchmark.parquet").equals(METHODS)
    parquet = pq.read_table(folder / "benchmark.parquet").to_pylist()
    assert json.loads((folder / "benchmark.json").read_text())["rows"] == parquet
    with (folder / "benchmark.csv").open() as file:
        read = list(csv.DictReader(file))
    assert list(read[0]) == METHODS.names
    for line, row in zip(read, parquet, strict=True):
        assert {name: value or None for name, value in line.items()} == {
            name: None if value is None or value == "" else _plain(value) for name, value in row.items()
        } or all(_same(line[name], row[name]) for name in row)
    wanted = ("unit", "epsilon", "delta", "rmse", "mae", "precision_at_10", "ndcg_at_10", "share_of_constant")
    assert {*wanted, "fit_seconds", "cpu_seconds", "peak_mb", "error"} <= set(METHODS.names)


def _plain(value):
    return str(value)


def _same(text, value):
    return text == "" if value in (None, "") else text == value or float(text) == value


def test_share_of_constant_is_one_for_the_constant(strange):
    assert [row["share_of_constant"] for row in rows(strange, "constant")] == [1.0]


def test_memory_is_that_of_the_methods_own_process(strange):
    """More than an interpreter with numpy, less than everything on this machine."""
    assert all(30 < row["peak_mb"] < 4000 for row in rows(strange, "level"))


def test_nothing_is_done_twice_and_only_failures_are_tried_again(source, fits, tmp_path):
    out = tmp_path / "out"
    first = benchmark(request(source, "level", "failing"), out)
    assert fits() == 2
    again = benchmark(request(source, "level", "failing"), out)
    assert again.methods.equals(first.methods)
    benchmark(request(source, "level", "failing", retry=True), out)
    assert fits() == 2
    lines = (out / STORE).read_text().splitlines()
    assert len(lines) == 4 + 2, "the failures, and nothing else, were run again"
    more = benchmark(request(source, "level", "failing", seeds=(0, 1)), out)
    assert fits() == 4
    assert more.methods.num_rows == 8


KILLED = """
import sys
from pathlib import Path
from dpsr.evaluate.benchmark.run import Request, benchmark
from dpsr.evaluate.benchmark.sets import Source
if __name__ == "__main__":
    source = Source("tiny", sys.argv[1], "1:5:1")
    request = Request([source], ["strange_methods:slow"], (1.0, 2.0), range(4), workers=1, timeout=60)
    benchmark(request, Path(sys.argv[2]))
"""


def test_a_killed_run_leaves_nobody_behind_and_goes_on_where_it_stopped(source, fits, tmp_path):
    script, out = tmp_path / "killed.py", tmp_path / "out"
    script.write_text(KILLED)
    path = os.pathsep.join(sys.path)
    process = subprocess.Popen(
        [sys.executable, str(script), source.path, str(out)], env={**os.environ, "PYTHONPATH": path}
    )
    store, waited = out / STORE, time.monotonic() + 120
    while not (store.exists() and len(store.read_text().splitlines()) >= 2) and time.monotonic() < waited:
        time.sleep(0.05)
    family = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(signal.SIGKILL)
    process.wait()
    _, alive = psutil.wait_procs(family, timeout=20)
    assert not alive, "a worker ends itself when its parent is gone"
    kept = store.read_text()
    done = len(kept.splitlines())
    assert 2 <= done < 8
    store.write_text(kept + '{"key": {"torn')
    assert done <= fits(process.pid) <= done + 1
    found = benchmark(request(source, "slow", seeds=range(4)), out)
    assert found.methods.num_rows == 8
    assert set(found.methods["error"].to_pylist()) == {None}
    assert fits() == 8 - done


def test_details_are_plain_arrays_of_the_test_ratings(strange, source):
    _, test = source.split(0)
    files = sorted((strange.report.parent / DETAILS).glob("*.npz"))
    assert len(files) == 3, "two budgets of one method, and the constant; failures have none"
    for path in files:
        with np.load(path, allow_pickle=False) as file:
            assert file["predicted"].shape == (len(test),)


def test_a_key_changes_with_everything_the_result_depends_on(source, tmp_path):
    job = Job("method", source, "constant", None, 0)
    assert Job.from_json(job.to_json()) == job
    others = [
        Job("attack", source, "constant", None, 0),
        Job("method", source, "bias", None, 0),
        Job("method", source, "constant", 1.0, 0),
        Job("method", source, "constant", None, 1),
        Job("method", source, "constant", None, 0, effort=2),
        Job("method", Source("tiny", source.path, "1:6:1"), "constant", None, 0),
    ]
    assert len({one.name for one in [job, *others]}) == 7
    moved = tmp_path / "moved.parquet"
    moved.write_bytes(Path(source.path).read_bytes())
    assert Job("method", Source("tiny", str(moved), "1:5:1"), "constant", None, 0).key == job.key


def test_the_digest_covers_what_measures_and_not_what_draws():
    reached = jobs_module._reachable(jobs_module.MEASURING)
    assert {"dpsr.pipeline.value", "dpsr.privacy.channels.channel", "dpsr.evaluate.peers.registry"} <= set(reached)
    assert not {name for name in reached if name.startswith(("dpsr.cli", "dpsr.evaluate.benchmark.pictures"))}
    assert source_digest() != source_digest(STRANGE), "somebody's own method counts too"


def test_sources_are_files_folders_and_generators(source, tmp_path):
    folder = Path(source.path).parent
    assert [s.name for s in find_sources(["paper", source.path, "realistic"], {"": "1:5:1"})] == [
        "paper",
        "tiny",
        "realistic",
    ]
    with pytest.raises(ScaleError, match="--scale tiny=LOW:HIGH:STEP"):
        find_sources([source.path], {})
    with pytest.raises(DataError, match="Check the path"):
        find_sources(["nowhere"], {})
    with pytest.raises(DataError, match="twice"):
        find_sources(["paper", "paper"], {})
    with pytest.raises(DataError, match="none"):
        find_sources([], {})
    with pytest.raises(DataError, match="has no"):
        find_sources([str(folder)], {})
    assert parse_scales(["a=1:5:1"]) == {"a": "1:5:1"}


def test_unknown_methods_are_refused_before_anything_runs(source, tmp_path):
    with pytest.raises(ParameterError, match="module:factory"):
        request(source, "nonesuch").jobs()
    with pytest.raises(ParameterError, match="must be importable"):
        Request([source], ["nowhere:method"], (1.0,), (0,)).jobs()
    with pytest.raises(ParameterError, match="positive epsilon"):
        request(source, "level", seeds=())


def test_attacks_can_be_asked_for_alone(source):
    alone = Request([source], [], (1.0,), (0, 1), attacks=["mean-leak", "constant"])
    assert [(job.kind, job.what, job.epsilon) for job in alone.jobs()] == [
        ("attack", "mean-leak", 1.0),
        ("attack", "constant", None),
    ]
    with pytest.raises(ParameterError, match="found none"):
        Request([source], [], (1.0,), (0,)).jobs()


def test_the_full_run_is_all_budgets_and_seeds_with_learners_and_attacks_at_two_budgets_on_the_first():
    jobs = request_of(["paper"], full=True).jobs()
    found = {kind: {(job.epsilon, job.seed) for job in jobs if job.kind == kind} for kind in {job.kind for job in jobs}}
    assert found["method"] == {(epsilon, seed) for epsilon in (None, *EPSILONS) for seed in range(1, 6)}
    assert found["downstream"] == found["attack"] == {(epsilon, 1) for epsilon in (None, 1.0, 5.0)}
    assert {job.what for job in jobs if job.kind == "attack"} >= set(peer_names())


def test_methods_without_a_budget_run_once_a_seed(source):
    jobs = request(source, "constant", "level", seeds=(0, 1)).jobs()
    assert sorted((job.what, job.epsilon or 0, job.seed) for job in jobs) == sorted(
        [("constant", 0, 0), ("constant", 0, 1)]
        + [("strange_methods:level", epsilon, seed) for epsilon in (1.0, 2.0) for seed in (0, 1)]
    )
