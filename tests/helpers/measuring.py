"""What tests and the fixtures that they share take, for the list of slow ones: `make slow-list` (`lanes.py`).

Processor time, because a clock would measure who else uses the machine; of every process that a test starts, and
without the compiling of kernels, which the first run after a change pays for.
"""

import os
from collections import defaultdict
from contextlib import suppress
from multiprocessing import forkserver
from time import process_time

import forked
import psutil
import pytest
from lanes import SLOW_LIST, file_of, function_of, name_of, slow_tests
from numba.core.event import Listener, register

SECONDS = 0.5

_spent: defaultdict[str, float] = defaultdict(float)
_before = [0.0]
_shared: dict[str, float] = {}
"""Fixtures that were set up for several tests since the last report, and what each took."""


class Compiling(Listener):
    """What compiling kernels took: the first run after a change pays for it, in whichever test comes first."""

    def __init__(self):
        self.begun, self.seconds = [], 0.0

    def on_start(self, event):
        self.begun.append(process_time())

    def on_end(self, event):
        begun = self.begun.pop()
        if not self.begun:  # a kernel may compile others
            self.seconds += process_time() - begun


_compiling = Compiling()


def processor_seconds():
    """Of this process, of programs that have ended, and of what `multiprocessing` forked from a server that lives."""
    seconds = sum(os.times()[:4]) + forked.spent[0] - _compiling.seconds
    if number := forkserver._forkserver._forkserver_pid:  # type: ignore[attr-defined]
        with suppress(psutil.Error):
            seconds += sum(psutil.Process(number).cpu_times()[:4])
    return seconds


def pytest_collection_finish():
    register("numba:compile", _compiling)
    _before[0] = processor_seconds()


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef):
    if fixturedef.scope == "function":
        return (yield)
    inside, before = sum(_shared.values()), processor_seconds()
    try:
        return (yield)
    finally:
        _shared[name_of(fixturedef)] = processor_seconds() - before - (sum(_shared.values()) - inside)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport():
    """Every phase of every test carries the time since the one before, from a worker to whoever writes the list."""
    report = yield
    report.shared, now = dict(_shared), processor_seconds()
    spent, _before[0] = now - _before[0] - sum(_shared.values()), now
    report.seconds = min(spent, (os.cpu_count() or 1) * report.duration)  # a server that ended worked for others
    _shared.clear()
    return report


def pytest_runtest_logreport(report):
    _spent[function_of(report.nodeid)] += getattr(report, "seconds", 0.0)  # none from a worker that died
    for name, seconds in getattr(report, "shared", {}).items():
        _spent[name] = max(_spent[name], seconds)  # every worker, and every case of it, sets up its own


def pytest_sessionfinish(session):
    if not hasattr(session.config, "workerinput"):
        others = {name: seconds for name, seconds in slow_tests().items() if name not in _spent and is_there(name)}
        found = others | {name: seconds for name, seconds in _spent.items() if seconds >= SECONDS}
        ordered = sorted(found.items(), key=lambda one: -one[1])
        SLOW_LIST.write_text("".join(f"{seconds:.1f} {name}\n" for name, seconds in ordered), "utf-8")


def is_there(name):
    """Whether a test that was measured once still exists."""
    path = SLOW_LIST.parents[1] / file_of(name)
    path = path / "conftest.py" if path.is_dir() else path
    return path.exists() and f"def {name.rpartition('::')[2]}(" in path.read_text("utf-8")
