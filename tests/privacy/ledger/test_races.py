"""Eight processes race for the last epsilon, and processes die at random points two hundred times.

Of the two hundred, these tests kill 188; `test_release_killed.py` kills the whole command the other twelve times. The
invariant is the same: what was released is never more than what was charged, every visible folder is whole and its
certificate is in the ledger.
"""

import hashlib
import json
import multiprocessing
import os
import random
import sys
import time
from fractions import Fraction
from multiprocessing import forkserver

import pytest
from racers import FILES, race, release_until_killed

from dpsr.privacy.ledger.ledger import Ledger
from dpsr.release.atomic import atomic_folder

PROCESSES = multiprocessing.get_context("forkserver")
KILLS = 94
"""On each of two databases."""


@pytest.fixture(scope="module", autouse=True)
def nursery():
    """Imports once what every process needs; each is then a fork of a process without threads.

    One that other tests left has imported something else, and one that is left would keep theirs waiting.
    """
    forkserver._forkserver._stop()  # type: ignore[attr-defined]
    PROCESSES.set_forkserver_preload(["racers"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
        forkserver.ensure_running()
    yield
    forkserver._forkserver._stop()  # type: ignore[attr-defined]


@pytest.mark.parametrize("charges", [1, 5])
def test_eight_processes_race_for_the_last_epsilon_and_none_is_spent_twice(address, charges):
    ledger = Ledger.create(address, "films", str(charges / 10))
    barrier, answers = PROCESSES.Barrier(8), PROCESSES.Queue()
    racers = [PROCESSES.Process(target=race, args=(address, barrier, "0.1", answers)) for _ in range(8)]
    for racer in racers:
        racer.start()
    results = [answers.get(timeout=300) for _ in racers]
    for racer in racers:
        racer.join()
    assert sum(won for won, _ in results) == charges
    assert all("has epsilon = 0 left" in refusal for _, refusal in results)
    assert ledger.budget().left_epsilon == 0
    assert ledger.budget().charges == charges


def test_what_was_released_is_never_more_than_what_was_charged_however_processes_die(address, tmp_path):
    """Where others keep the machine so busy that nobody comes to an end, processes are killed later and later."""
    folder, rng, price, longest = tmp_path / "out", random.Random(0), "0.001", 0.06
    folder.mkdir()
    ledger = Ledger.create(address, "films", "0.3")
    for batch in range(KILLS):
        if batch >= KILLS // 2:
            if released(folder):
                break
            longest *= 2
        kill_at_random(address, folder, price, rng, longest, names=[f"a{batch}", f"b{batch}"])
    check(ledger, folder, price)
    assert ledger.budget().spent_epsilon <= Fraction(3, 10)
    drafts = [entry for entry in folder.iterdir() if entry.name.startswith(".")]
    assert drafts, "no process was killed while it was writing: the test tests nothing"
    clean_up(folder, drafts)


def released(folder):
    return [entry for entry in folder.iterdir() if not entry.name.startswith(".")]


def kill_at_random(address, folder, price, rng, longest, names):
    """Two processes at a time, killed independently."""
    started = []
    for name in names:
        ready = PROCESSES.Event()
        process = PROCESSES.Process(target=release_until_killed, args=(address, str(folder), name, price, ready))
        process.start()
        started.append((process, ready))
    for process, ready in started:
        assert ready.wait(60)
        time.sleep(rng.random() * longest)
        process.kill()
        process.join()


def check(ledger, folder, price):
    visible = released(folder)
    recorded = {event.certificate for event in ledger.history() if event.kind == "release"}
    for entry in visible:
        assert sorted(file.name for file in entry.iterdir()) == sorted(FILES)
        for name, digest in json.loads((entry / "manifest.json").read_text()).items():
            assert hashlib.sha256((entry / name).read_bytes()).hexdigest() == digest
        assert hashlib.sha256((entry / "certificate.json").read_bytes()).hexdigest() in recorded
    budget = ledger.budget()
    assert len(visible) * Fraction(price) <= budget.spent_epsilon
    assert len(visible) <= budget.releases <= budget.charges
    assert visible, "nothing was ever released: the test tests nothing"


def clean_up(folder, drafts):
    """The next run of the same target removes what a killed one left, and nothing else."""
    before = {entry.name for entry in folder.iterdir()}
    for draft in drafts:
        target = folder / draft.name[1:].rsplit(".", 2)[0]
        existed = target.exists()
        with pytest.raises(ZeroDivisionError), atomic_folder(target, overwrite=True):
            raise ZeroDivisionError
        assert target.exists() == existed
    after = {entry.name for entry in folder.iterdir()}
    assert after == before - {draft.name for draft in drafts}
