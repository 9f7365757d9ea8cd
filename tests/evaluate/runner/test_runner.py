"""The runner as it is used: whatever a method does is a row, nothing is done twice, a killed run goes on."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import psutil
import pyarrow.parquet as pq
import pytest
from strange_methods import diary_of, held

from dpsr.data import realistic
from dpsr.evaluate.measure import ATTACK, METHOD
from dpsr.evaluate.protocol import ERRORS_ONLY, PROTOCOLS, SAMPLE_RANKED
from dpsr.evaluate.registry import METHODS, chosen_methods
from dpsr.evaluate.runner.jobs import Job, code_digest, cross, noise_seed, own_seeds, reachable
from dpsr.evaluate.runner.pool import _first
from dpsr.evaluate.runner.results import results_of
from dpsr.evaluate.runner.store import PREDICTIONS, ROWS, Store, load_arrays
from dpsr.evaluate.sets import RatingSet

STRANGE = "strange_methods"
BUDGETS, TIMEOUT = (1.0, 2.0), 300.0


@pytest.fixture(scope="module")
def ratings(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "tiny.parquet"
    pq.write_table(realistic(0, n_users=60, n_items=50, n_ratings=1200).to_arrow(), path)
    return RatingSet("tiny", str(path), "1:5:1")


@pytest.fixture
def fits():
    """How many fits were noted since the test began, by runs of this process or of another."""
    paths = []

    def count(pid=None):
        path = diary_of(pid or os.getpid())
        paths.append(path)
        return len(path.read_text().splitlines()) if path.exists() else 0

    before = count()
    yield lambda pid=None: count(pid) - (before if pid is None else 0)
    for path in paths:
        path.unlink(missing_ok=True)


def jobs_of(ratings, *names, seeds=(0,)):
    ours = [name if name in METHODS else f"{STRANGE}:{name}" for name in names]
    methods = [(one.name, one.budgeted) for one in chosen_methods(ours)]
    return cross(METHOD, [ratings], methods, BUDGETS, seeds, protocol=SAMPLE_RANKED)


@pytest.fixture(scope="module")
def strange(ratings, tmp_path_factory):
    """One run with everything that can go wrong beside something that goes right; what hangs has less time."""
    folder, calls = tmp_path_factory.mktemp("strange"), []
    results_of(jobs_of(ratings, "hanging"), folder, timeout=2.0)
    jobs = jobs_of(ratings, "hanging", "failing", "dying", "level", "constant")
    found = results_of(jobs, folder, workers=2, timeout=TIMEOUT, progress=lambda *call: calls.append(call))
    return found, calls


def rows(strange, method):
    found, _ = strange
    return [(job, row) for job, rows in found.runs for row in rows if job.what in (method, f"{STRANGE}:{method}")]


def test_a_method_that_raises_is_a_row_with_class_and_sentence(strange):
    failed = rows(strange, "failing")
    assert [job.epsilon for job, _ in failed] == [1.0, 2.0]
    assert [row for _, row in failed] == [{"error": "ArithmeticError: the sum does not converge"}] * 2


def test_a_method_that_does_not_end_is_killed_and_is_a_row(strange):
    ((job, late),) = rows(strange, "hanging")
    assert late["error"] == "Timeout: no result within 2 seconds"
    assert job.epsilon is None


def test_a_process_that_dies_is_a_row_that_names_the_signal(strange):
    ((_, dead),) = rows(strange, "dying")
    assert "SIGKILL" in dead["error"]


def test_what_goes_wrong_does_not_touch_the_others(strange):
    sound = rows(strange, "level") + rows(strange, "constant")
    assert len(sound) == 3
    assert all("error" not in row and row["rmse"] > 0 for _, row in sound)
    assert len(strange[0].failures()) == 4


def test_memory_is_that_of_the_methods_own_process(strange):
    """More than an interpreter with numpy, less than everything on this machine."""
    assert all(30 < row["peak_mb"] < 4000 for _, row in rows(strange, "level"))


def test_predictions_are_plain_arrays_of_the_test_ratings(strange, ratings):
    split = PROTOCOLS[SAMPLE_RANKED].split(ratings, 0)
    files = sorted(strange[0].folder.glob("*.npz"))
    assert len(files) == 3, "two budgets of one method, and the constant; failures have none"
    for path in files:
        assert load_arrays(path)["predicted"].shape == (len(split.test),)
        with np.load(path, allow_pickle=False) as file:
            assert set(file.files) == {"predicted", "lists"}


def test_progress_counts_every_job_to_the_end(strange):
    _, calls = strange
    assert [done for done, _, _ in calls] == list(range(1, 8)), "one was known before"
    assert {total for _, total, _ in calls} == {7}


def test_nothing_is_done_twice_and_only_failures_are_tried_again(ratings, fits, tmp_path):
    def run(**settings):
        return results_of(jobs_of(ratings, "level", "failing", seeds=settings.pop("seeds", (0,))), tmp_path, **settings)

    first = run(timeout=TIMEOUT)
    assert fits() == 2
    assert run().runs == first.runs
    run(retry=True)
    assert fits() == 2
    lines = (tmp_path / ROWS).read_text().splitlines()
    assert len(lines) == 4 + 2, "the failures, and nothing else, were run again"
    assert len(run(seeds=(0, 1)).runs) == 8
    assert fits() == 4


def test_a_job_that_is_asked_for_twice_is_run_once(ratings, fits, tmp_path):
    jobs = jobs_of(ratings, "level")
    assert len(results_of([*jobs, *jobs], tmp_path, timeout=TIMEOUT).runs) == 2
    assert fits() == 2


KILLED = """
import os, sys
from pathlib import Path
from strange_methods import held
from dpsr.evaluate.measure import METHOD
from dpsr.evaluate.protocol import SAMPLE_RANKED
from dpsr.evaluate.runner.jobs import cross
from dpsr.evaluate.runner.results import results_of
from dpsr.evaluate.sets import RatingSet
if __name__ == "__main__":
    held(os.getpid()).touch()
    ratings = RatingSet("tiny", sys.argv[1], "1:5:1")
    jobs = cross(METHOD, [ratings], [("strange_methods:stuck", True)], (1.0, 2.0), range(4), protocol=SAMPLE_RANKED)
    results_of(jobs, Path(sys.argv[2]), workers=1, timeout=60)
"""


def test_a_killed_run_leaves_nobody_behind_and_goes_on_where_it_stopped(ratings, fits, tmp_path):
    script, out = tmp_path / "killed.py", tmp_path / "out"
    script.write_text(KILLED)
    path = os.pathsep.join(sys.path)
    process = subprocess.Popen(
        [sys.executable, str(script), ratings.path, str(out)], env={**os.environ, "PYTHONPATH": path}
    )
    store, waited = out / ROWS, time.monotonic() + 120
    while not (store.exists() and len(store.read_text().splitlines()) >= 2) and time.monotonic() < waited:
        time.sleep(0.05)
    family = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(signal.SIGKILL)
    process.wait()
    held(process.pid).unlink()
    _, alive = psutil.wait_procs(family, timeout=120)
    assert not alive, "a worker ends itself when its parent is gone"
    kept = store.read_text()
    assert len(kept.splitlines()) == 2
    store.write_text(kept + '{"key": {"torn')
    assert 2 <= fits(process.pid) <= 3
    found = results_of(jobs_of(ratings, "stuck", seeds=range(4)), out, workers=2, timeout=TIMEOUT)
    assert len(found.runs) == 8
    assert not found.failures()
    assert fits() == 6


def job_with(ratings, **changed):
    facts = {"measure": METHOD, "set": ratings, "what": "constant", "epsilon": None, "seed": 0, "noise_seed": 1}
    return Job(**{**facts, "learner_seed": 2, "protocol": SAMPLE_RANKED, **changed})


def test_the_store_hands_back_what_was_put_under_the_same_key_only(ratings, tmp_path):
    job = job_with(ratings, options=(("learners", ("als", "bias")), ("settings", (("beta", 0.5),))))
    Store(tmp_path).put(job, [{"rmse": 1.5}])
    assert Store(tmp_path).get(job) == [{"rmse": 1.5}]
    assert Store(tmp_path).get(job_with(ratings)) is None
    (tmp_path / ROWS).write_text((tmp_path / ROWS).read_text() + "torn")
    again = Store(tmp_path)
    again.put(job_with(ratings), [{"rmse": 2.0}])
    assert Store(tmp_path).get(job_with(ratings)) == [{"rmse": 2.0}], "the torn line must not swallow the next one"


def test_a_key_changes_with_everything_the_result_depends_on(ratings, tmp_path):
    job = job_with(ratings)
    others = [
        job_with(ratings, measure=ATTACK),
        job_with(ratings, what="bias"),
        job_with(ratings, epsilon=1.0),
        job_with(ratings, seed=1),
        job_with(ratings, noise_seed=5),
        job_with(ratings, learner_seed=5),
        job_with(ratings, protocol=ERRORS_ONLY),
        job_with(ratings, delta=1e-6),
        job_with(ratings, options=(("effort", 2),)),
        job_with(RatingSet("tiny", ratings.path, "1:6:1")),
    ]
    assert len({one.name for one in [job, *others]}) == 1 + len(others)
    assert [Job.from_json(one.to_json()) for one in [job, *others]] == [job, *others]
    moved = tmp_path / "moved.parquet"
    moved.write_bytes(Path(ratings.path).read_bytes())
    assert job_with(RatingSet("tiny", str(moved), "1:5:1")).key == job.key


def test_options_survive_the_way_to_a_worker(ratings):
    job = job_with(ratings, options=(("learners", ("als", "bias")), ("settings", (("beta", 0.5),))))
    assert Job.from_json(job.to_json()) == job
    assert job.option("learners") == ("als", "bias")
    assert dict(job.option("settings")) == {"beta": 0.5}
    assert job.option("effort", 1) == 1


def test_the_digest_covers_what_measures_and_not_what_draws_or_attacks():
    fits, attacks = (set(reachable(measure.partition(":")[0])) for measure in (METHOD, ATTACK))
    assert {"dpsr.pipeline.value", "dpsr.privacy.channels.channel", "dpsr.evaluate.registry"} <= fits
    others = ("dpsr.cli", "dpsr.evaluate.report", "dpsr.evaluate.studies")
    assert not {name for name in fits | attacks if name.startswith(others)}
    assert "dpsr.evaluate.attacks.outputs" in attacks - fits
    module = METHOD.partition(":")[0]
    assert code_digest(module) != code_digest(module, STRANGE), "somebody's own method counts too"


def test_noise_belongs_to_one_set_method_budget_and_seed():
    seeds = {noise_seed(s, m, e, k) for s in "ab" for m in ("dpsr", "als") for e in (None, 0.5, 1.0) for k in range(9)}
    assert len(seeds) == 2 * 2 * 3 * 9
    assert own_seeds("a", "dpsr", 1.0, 0) == own_seeds("a", "dpsr", 1.0, 0)


def test_methods_without_a_budget_run_once_a_seed(ratings):
    jobs = jobs_of(ratings, "constant", "level", seeds=(0, 1))
    assert sorted((job.what, job.epsilon or 0, job.seed) for job in jobs) == sorted(
        [("constant", 0, 0), ("constant", 0, 1)]
        + [("strange_methods:level", epsilon, seed) for epsilon in (1.0, 2.0) for seed in (0, 1)]
    )


def test_the_folder_of_predictions_lies_beside_the_rows(strange):
    found, _ = strange
    assert found.folder.name == PREDICTIONS
    assert (found.folder.parent / ROWS).exists()


def test_a_free_worker_takes_a_method_that_nobody_is_at_and_else_the_first_job(ratings):
    todo = jobs_of(ratings, "constant", "bias", seeds=(0, 1))
    constant, other = [job for job in todo if job.what == "constant"], [job for job in todo if job.what == "bias"]
    busy = [SimpleNamespace(job=todo.pop(todo.index(constant[0])))]
    assert _first(todo, busy) is other[0]
    assert _first([*constant[1:]], busy) is constant[1]
    assert other[0] not in todo
