"""Signals wait while a kernel is compiled or loaded: raised there, Ctrl-C was lost or ended the process."""

import signal

import pytest
from numba.core.registry import cpu_target

from dpsr.linalg.compiled import held_signals, kernel


@pytest.fixture
def handled():
    """Signals in the order in which their handler was called."""
    numbers = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: numbers.append(number))
    yield numbers
    signal.signal(signal.SIGTERM, before)


@pytest.fixture
def from_a_terminal():
    """Ctrl-C means something, also where the tests are run in the background of a script."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_a_signal_is_handled_once_and_when_all_is_done(handled):
    with held_signals():
        with held_signals():
            signal.raise_signal(signal.SIGTERM)
            signal.raise_signal(signal.SIGTERM)
        assert not handled
    assert handled == [signal.SIGTERM]
    signal.raise_signal(signal.SIGTERM)
    assert handled == [signal.SIGTERM] * 2, "and from then on as before"


def test_ctrl_c_is_raised_at_the_end_of_what_it_would_have_broken_off(from_a_terminal):
    done = []

    @held_signals()
    def interrupted():
        signal.raise_signal(signal.SIGINT)
        done.append("the rest")

    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert done
    assert signal.getsignal(signal.SIGINT) is before


def test_signals_that_are_ignored_stay_ignored():
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        with held_signals():
            assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
            signal.raise_signal(signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, before)


def twice(x):
    return 2 * x


def test_ctrl_c_while_llvm_asks_for_machine_code_is_not_raised_there(from_a_terminal, monkeypatch):
    """LLVM would take it for "there is none", and numba would write to where the kernel is not."""
    engine, inside = cpu_target.target_context.codegen()._engine._ee, []
    ask = engine._object_cache_getbuffer

    def interrupted(module):
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:  # which the process would not survive
            inside.append(module)
        return ask(module)

    monkeypatch.setattr(engine, "_object_cache_getbuffer", interrupted)
    doubled = kernel(twice)
    with pytest.raises(KeyboardInterrupt):
        doubled(21.0)
    assert not inside
    assert doubled(21.0) == 42, "the kernel is whole"
