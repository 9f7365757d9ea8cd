"""Which tests the fast lane leaves out: those that start Spark, a server, a browser or a notebook, and the slow ones.

Resources are known by the fixtures that a test asks for, or by a marker where there is no fixture. What is slow was
measured: `make slow-list` runs every test and keeps in `tests/slow.txt` those that take half a second or more of
processor time, that of programs they start included; a clock would measure who else uses the machine. A fixture that
several tests share is measured by itself, and where it is slow, so are they: left to the tests that need it, whichever
came first would pay. Files with slow tests are handed out first, so that no worker is left alone with one at the end;
files that need Spark go to one worker, for it takes longest to start. Studies come last: each of their processes would
compile by itself what the tests of a room have compiled by then, and left on disk for everybody.
"""

import gc
import os
from collections import defaultdict
from contextlib import suppress
from functools import cache
from multiprocessing import forkserver
from pathlib import Path
from time import process_time

import forked
import psutil
import pytest
from numba.core.event import Listener, register

RESOURCES = {"postgres": "postgres", "chromium": "browser"}
"""Fixtures, and the markers of tests that use them."""

SOURCE = Path(__file__).parents[2] / "src"
SLOW_LIST = Path(__file__).parents[1] / "slow.txt"
SECONDS = 0.5

STUDIES = "tests/evaluate/studies/"

_spent: defaultdict[str, float] = defaultdict(float)
_before = [0.0]
_shared: dict[str, float] = {}
"""Fixtures that were set up for several tests since the last report, and what each took."""


def pytest_addoption(parser):
    parser.addoption("--slow-list", action="store_true", help="measure the tests that run, for the list of slow ones")


def pytest_ignore_collect(collection_path):
    """Source without examples is not imported for its examples: some of it needs PyTorch, which takes seconds."""
    if collection_path.suffix == ".py" and SOURCE in collection_path.parents:
        return ">>>" not in collection_path.read_text("utf-8") or None
    return None


def pytest_collection_modifyitems(items):
    slow, files = slow_tests(), defaultdict(float)
    for name, seconds in slow.items():
        files[file_of(name)] += seconds
    for item in items:
        for fixture in set(RESOURCES) & set(getattr(item, "fixturenames", ())):
            item.add_marker(RESOURCES[fixture])
        params = getattr(getattr(item, "callspec", None), "params", {})
        if "postgresql" in (params.get("address"), params.get("lasting_address")):
            item.add_marker("postgres")
        if {function_of(item.nodeid), *fixtures_of(item)} & slow.keys():
            item.add_marker("slow")
    items.sort(key=lambda item: in_turn(file_of(item.nodeid), files))


def in_turn(file, seconds):
    """Where a file stands in the line: own Spark, shared Spark, others, studies; the longest of each first."""
    shared = needs_spark(file) and "lasting_spark" in _text(file)
    return file.startswith(STUDIES), not needs_spark(file), shared, -seconds.get(file, 0.0)


def slow_tests():
    """Seconds by test, its cases together, as they were measured."""
    rows = (line.split(" ", 1) for line in SLOW_LIST.read_text("utf-8").splitlines())
    return {name: float(seconds) for seconds, name in rows}


def file_of(nodeid):
    return nodeid.partition("::")[0]


@cache
def _text(file):
    return (SLOW_LIST.parents[1] / file).read_text("utf-8")


def needs_spark(file):
    return "from spark_cases import" in _text(file)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Files as a whole, those that need Spark together."""
    from xdist.scheduler import LoadScopeScheduling

    class ByFile(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            return "spark" if needs_spark(file_of(nodeid)) else file_of(nodeid)

    return ByFile(config, log)


def function_of(nodeid):
    """The test without its parameters: its cases are fast or slow together."""
    return nodeid.partition("[")[0]


def fixtures_of(item):
    """The fixtures a test asks for, each with the file or folder it stands in."""
    known = getattr(getattr(item, "_fixtureinfo", None), "name2fixturedefs", {})
    return {name_of(fixtures[-1]) for fixtures in known.values()}


def name_of(fixture):
    return f"{fixture.baseid}::{fixture.argname}"


# --- measuring ---


def is_there(name):
    """Whether a test that was measured once still exists."""
    path = SLOW_LIST.parents[1] / file_of(name)
    path = path / "conftest.py" if path.is_dir() else path
    return path.exists() and f"def {name.rpartition('::')[2]}(" in path.read_text("utf-8")


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


gc.disable()  # while thousands of tests are collected, for none of them is garbage


def pytest_collection_finish(session):
    """From here on the collector of garbage does not look at thousands of tests and modules each time."""
    gc.freeze()
    gc.enable()
    if session.config.getoption("slow_list"):
        register("numba:compile", _compiling)
        _before[0] = processor_seconds()
        session.config.pluginmanager.register(Measuring())


class Measuring:
    """What tests and fixtures take, where somebody asks: looking costs each test more than many of them take."""

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef):
        if fixturedef.scope == "function":
            return (yield)
        inside, before = sum(_shared.values()), processor_seconds()
        try:
            return (yield)
        finally:
            _shared[name_of(fixturedef)] = processor_seconds() - before - (sum(_shared.values()) - inside)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self):
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
    forked.stop()
    gc.unfreeze()  # or libraries would complain at the end about what nobody collected
    if session.config.getoption("slow_list") and not hasattr(session.config, "workerinput"):
        others = {name: seconds for name, seconds in slow_tests().items() if name not in _spent and is_there(name)}
        found = others | {name: seconds for name, seconds in _spent.items() if seconds >= SECONDS}
        ordered = sorted(found.items(), key=lambda one: -one[1])
        SLOW_LIST.write_text("".join(f"{seconds:.1f} {name}\n" for name, seconds in ordered), "utf-8")
