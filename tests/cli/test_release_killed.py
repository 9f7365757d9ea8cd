"""The whole command, killed or interrupted at random points.

kill -9: what is visible is whole, recorded and paid for. Ctrl-C and SIGTERM: nothing is left, the exit code is 130, and
the last line says truly whether the ledger was charged.
"""

import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import time

import pytest
from forked import Forked
from small_ratings import options, write_csv

from dpsr.privacy.ledger.ledger import Ledger

KILLS = 12
"""With the 188 of tests/ledger/test_races.py: two hundred."""


@pytest.fixture
def ledger(tmp_path):
    write_csv(tmp_path / "ratings.csv")
    (tmp_path / "out").mkdir()
    return Ledger.create(str(tmp_path / "l.db"), "films", "10")


def start(folder, name, *more):
    arguments = [*options(f"out/{name}"), "--ledger", "l.db", *more]
    return Forked(
        [sys.executable, "-m", "dpsr", "release", "ratings.csv", *arguments],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "COLUMNS": "200"},
    )


def wait_for(process, line):
    """Until the command has announced so many stages."""
    seen = []
    while len(seen) < line and (said := process.stderr.readline()):
        seen.append(said)
    return "".join(seen)


def test_who_is_killed_holds_nothing_that_the_next_one_waits_for():
    """Numba's lock for starting threads lies in memory that forks share, and a killed owner never lets go."""
    held = "import os; from numba.np.ufunc import parallel as p; p._launch_threads(); p._backend_init_process_lock."
    for lines in (f"{held}acquire(); os.kill(os.getpid(), 9)", f"{held}acquire()"):
        process = Forked([sys.executable, "-m", "timeit", "--number", "1", "--repeat", "1", lines])
        assert process.wait(timeout=60) == (-9 if "kill" in lines else 0)


def test_whatever_kill_nine_leaves_is_whole_recorded_and_paid_for(ledger, tmp_path):
    rng = random.Random(1)
    for _ in range(KILLS):
        process = start(tmp_path, "r0", "--force")
        wait_for(process, rng.randrange(8))
        time.sleep(rng.random() * 0.05)  # of the two tenths that all of it takes
        process.kill()
        process.communicate()
    recorded = {event.certificate for event in ledger.history() if event.kind == "release"}
    visible = [entry for entry in (tmp_path / "out").iterdir() if not entry.name.startswith(".")]
    for entry in visible:
        for name, facts in json.loads((entry / "manifest.json").read_text())["files"].items():
            assert hashlib.sha256((entry / name).read_bytes()).hexdigest() == facts["sha256"]
        assert hashlib.sha256((entry / "certificate.json").read_bytes()).hexdigest() in recorded
    assert len(visible) <= ledger.budget().releases <= ledger.budget().charges <= KILLS
    for _ in range(2):  # and the next run finds its place and leaves nothing of them, or finishes the last one
        process = start(tmp_path, "r0", "--force")
        _, complaint = process.communicate()
        if "only its rename was missing" not in " ".join(complaint.split()):
            break
    assert process.returncode == 0, complaint
    assert sorted(entry.name for entry in (tmp_path / "out").iterdir()) == ["r0"]


@pytest.mark.parametrize(
    ("number", "stage"), [(signal.SIGINT, 1), (signal.SIGTERM, 2), (signal.SIGINT, 4), (signal.SIGTERM, 5)]
)
def test_an_interrupt_leaves_nothing_and_says_what_was_spent(ledger, tmp_path, number, stage):
    process = start(tmp_path, "new/r")
    wait_for(process, stage)
    process.send_signal(number)
    _, complaint = process.communicate()
    charged = ledger.budget().charges
    if process.returncode == 0:  # it was too late: the release is there
        assert (tmp_path / "out" / "new" / "r" / "manifest.json").exists()
        return
    assert process.returncode == 130, complaint
    assert "Traceback" not in complaint
    assert "interrupted; nothing was written;" in complaint
    assert ("was charged before that and stays spent" if charged else "nothing was charged") in complaint
    assert not list((tmp_path / "out").iterdir())


def test_an_interrupt_at_the_question_spends_nothing(ledger, tmp_path):
    command = [sys.executable, "-m", "dpsr", "release", "ratings.csv", *options("out/r")[:-1], "--ledger", "l.db"]
    process = Forked(
        command, cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    said = ""
    while "[y/N]" not in said:
        said += process.stdout.read(1)
    process.send_signal(signal.SIGINT)
    _, complaint = process.communicate()
    assert process.returncode == 130
    assert "nothing was charged to the ledger" in complaint
    assert "will be. A charge is never refunded." in " ".join(said.split())
    assert ledger.budget().charges == 0


@pytest.mark.parametrize("stage", [1, 3])
def test_a_run_that_nobody_listens_to_any_more_is_not_lost(ledger, tmp_path, stage):
    process = start(tmp_path, "r")  # dpsr release ... 2>&1 | head: charged, and stopped without a word, it was once
    wait_for(process, stage)
    process.stderr.close()
    process.stdout.close()
    assert process.wait() == 0
    assert (tmp_path / "out" / "r" / "manifest.json").exists()
    assert (ledger.budget().charges, ledger.budget().releases) == (1, 1)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
@pytest.mark.parametrize("more", [["--json"], []])
def test_an_output_that_cannot_be_written_is_said_in_a_sentence(ledger, tmp_path, more):
    command = [sys.executable, "-m", "dpsr", "release", "ratings.csv", *options("out/r"), "--ledger", "l.db", *more]
    with open("/dev/full", "w") as full:
        process = Forked(command, cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, text=True)
        _, complaint = process.communicate()
    assert process.returncode == 2
    assert "Traceback" not in complaint
    assert "error: standard output cannot be written: No space left on device." in complaint
    assert ledger.budget().charges == ledger.budget().releases == len(list((tmp_path / "out").iterdir()))
