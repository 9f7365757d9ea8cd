"""Where an interrupt is raised, and where it waits."""

import signal
import subprocess
import sys
import time

import pytest
from small_ratings import options, write_csv

from dpsr.cli.interrupts import check, interruptible, too_late
from dpsr.privacy.ledger.ledger import Ledger


def interrupted_in(module, done):
    """A function of some module that is interrupted and then goes on."""
    names = {"__name__": module, "signal": signal}
    exec("def called(done):\n    signal.raise_signal(signal.SIGTERM)\n    done.append('went on')", names)
    names["called"](done)


@pytest.mark.parametrize("module", ["numba.core.serialize", "llvmlite.binding.ffi"])
def test_python_that_machine_code_has_called_is_not_broken_off(module):
    """numba does not look whether it raised: arrays came back as nonsense, or the process ended by a signal."""
    done = []

    @interruptible()
    def command():
        interrupted_in(module, done)
        began = time.monotonic()
        while time.monotonic() - began < 60:  # it is raised soon after
            pass
        done.append("ended")

    with pytest.raises(KeyboardInterrupt):
        command()
    assert done == ["went on"]


def test_an_interrupt_that_waited_is_raised_once():
    """Raised again while the first one cleans up, it stopped that, and the command spoke of a file descriptor."""
    done = []

    @interruptible()
    def command():
        interrupted_in("numba.core.serialize", [])
        try:
            check()
        finally:
            time.sleep(0.1)
            done.append("cleaned up")

    with pytest.raises(KeyboardInterrupt):
        command()
    assert done


def test_other_code_is_broken_off_at_once():
    done = []
    with pytest.raises(KeyboardInterrupt), interruptible():
        interrupted_in("numbers", done)
    assert not done


class Finalised:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)


def test_an_interrupt_that_a_finaliser_swallows_is_raised_at_the_next_stage_and_nothing_is_said(capsys):
    said = []

    @interruptible()
    def command():
        Finalised()
        said.append(capsys.readouterr().err)
        check()

    with pytest.raises(KeyboardInterrupt):
        command()
    assert said == [""]


def test_what_else_a_finaliser_swallows_is_said(monkeypatch):
    told = []
    monkeypatch.setattr(sys, "unraisablehook", lambda swallowed: told.append(swallowed.exc_type))

    class Failing:
        def __del__(self):
            raise ValueError

    with interruptible():
        Failing()
    assert told == [ValueError]


def test_an_interrupt_that_waits_stops_a_command_before_it_is_too_late():
    @interruptible()
    def command():
        interrupted_in("numba.core.serialize", [])
        too_late()

    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt):
        command()
    assert signal.getsignal(signal.SIGTERM) is before


def renamed_interrupt(*asked):
    """What DuckDB makes of a signal that comes while it is at work: an error of its own, in these words or others."""
    try:
        signal.raise_signal(signal.SIGTERM)
    except KeyboardInterrupt:
        raise RuntimeError("Query interrupted") from None


def test_what_a_library_makes_of_an_interrupt_is_the_interrupt():
    with pytest.raises(KeyboardInterrupt), interruptible():
        renamed_interrupt()
    with pytest.raises(RuntimeError, match="its own"), interruptible():
        raise RuntimeError("an error of its own")


@pytest.mark.parametrize("chosen", [False, True])
def test_a_release_that_is_interrupted_while_ratings_are_sorted_says_so(dpsr, tmp_path, monkeypatch, chosen):
    """It ended in a traceback and with the exit code of a check that failed."""
    write_csv(tmp_path / "ratings.csv")
    ledger = Ledger.create(str(tmp_path / "l.db"), "films", "2")
    monkeypatch.setattr("dpsr.data.ingest.fill", renamed_interrupt)
    work = ["--work", tmp_path / "w"] if chosen else []
    words = [*options(tmp_path / "out" / "r"), "--engine", "disk", "--ledger", tmp_path / "l.db", *work]
    outcome = dpsr("release", tmp_path / "ratings.csv", *words)
    assert outcome.code == 130
    assert outcome.err.endswith("interrupted; nothing was written; nothing was charged to the ledger.\n")
    assert ledger.budget().charges == 0
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["l.db", "ratings.csv"]


ENDS = """
import atexit, signal, sys
atexit.register(signal.raise_signal, int(sys.argv.pop()))  # called last, when the command has ended
from dpsr.cli import main
main()
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_that_comes_when_all_is_done_does_not_change_the_exit_code(number):
    """A release that was in its place, and said to be, ended as if it had been killed."""
    command = [sys.executable, "-c", ENDS, "--version", str(int(number))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("dpsr ")
