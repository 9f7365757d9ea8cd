"""Which tests the fast lane leaves out: those that start Spark, a server, a browser or a notebook, and the slow ones.

Resources are known by the fixtures that a test asks for, or by a marker where there is no fixture. What is slow was
measured: `make slow-list` runs every test and keeps in `tests/slow.txt` those that take half a second or more of
processor time, that of programs they start included; a clock would measure who else uses the machine. A fixture that
several tests share is measured by itself, and where it is slow, so are they: left to the tests that need it, whichever
came first would pay. Files with slow tests are handed out first, so that no worker is left alone with one at the end;
files that need Spark go to one worker, for it takes longest to start, and those that need a browser to the other.
Studies come last: each of their processes would compile by itself what the tests of a room have compiled by then, and
left on disk for everybody.
"""

import atexit
import gc
from collections import defaultdict
from functools import cache
from pathlib import Path

import forked
import pytest

RESOURCES = {"postgres": "postgres", "chromium": "browser"}
"""Fixtures, and the markers of tests that use them."""

SOURCE = Path(__file__).parents[2] / "src"
SLOW_LIST = Path(__file__).parents[1] / "slow.txt"

STUDIES = "tests/evaluate/studies/"


def pytest_addoption(parser):
    parser.addoption("--slow-list", action="store_true", help="measure the tests that run, for the list of slow ones")


def pytest_configure(config):
    if config.getoption("slow_list"):
        import measuring  # which imports much, in a process that may only hand out tests

        config.pluginmanager.register(measuring)


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
    """Where a file stands in the line: own Spark, shared Spark, browser, others, studies; the longest of each first."""
    shared = needs_spark(file) and "lasting_spark" in _text(file)
    return file.startswith(STUDIES), not needs_spark(file), shared, not needs_browser(file), -seconds.get(file, 0.0)


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


def needs_browser(file):
    return "from chromium import" in _text(file)


def together(file):
    """Files that need Spark go to one worker as a whole, and so do those that need a browser."""
    return "spark" if needs_spark(file) else "browser" if needs_browser(file) else file


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Files as a whole."""
    from xdist.scheduler import LoadScopeScheduling

    class ByFile(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            return together(file_of(nodeid))

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


# --- garbage ---

gc.disable()  # while thousands of tests are collected, for none of them is garbage


def pytest_collection_finish():
    """From here on the collector of garbage does not look at thousands of tests and modules each time, nor often."""
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    gc.enable()
    atexit.register(gc.unfreeze)  # or libraries would complain, when Python ends, about what nobody collected


def pytest_sessionfinish():
    forked.stop()
    gc.collect()
    gc.freeze()  # pytest collects twice more
