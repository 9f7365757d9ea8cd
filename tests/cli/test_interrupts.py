"""Where an interrupt is raised, and where it waits."""

import signal
import sys
import time

import pytest

from dpsr.cli.interrupts import check, interruptible, too_late


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
