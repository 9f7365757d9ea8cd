"""Which tests the fast lane leaves out: those that start Spark, a server, a browser or a notebook, and the slow ones.

Resources are known by the fixtures that a test asks for, or by a marker where there is no fixture. What is slow was
measured: `make slow-list` runs the fast lane and adds to `tests/slow.txt` whatever took a second or more of processor
time, that of programs it started included; a clock would measure who else uses the machine.
"""

import os
from collections import defaultdict
from pathlib import Path

import pytest

RESOURCES = {"postgres": "postgres", "chromium": "browser"}
"""Fixtures, and the markers of tests that use them."""

SOURCE = Path(__file__).parents[2] / "src"
SLOW_LIST = Path(__file__).parents[1] / "slow.txt"
SECONDS = 1.0

_spent: defaultdict[str, float] = defaultdict(float)
_before = [0.0]


def function_of(nodeid):
    """The test without its parameters: one slow case makes all of them slow."""
    return nodeid.partition("[")[0]


def pytest_addoption(parser):
    parser.addoption(
        "--slow-list", action="store_true", help="add what takes a second or more to the list of slow tests"
    )


def pytest_ignore_collect(collection_path):
    """Source without examples is not imported for its examples: some of it needs PyTorch, which takes seconds."""
    if collection_path.suffix == ".py" and SOURCE in collection_path.parents:
        return ">>>" not in collection_path.read_text("utf-8") or None
    return None


def pytest_collection_modifyitems(items):
    slow = set(SLOW_LIST.read_text("utf-8").split())
    for item in items:
        for fixture in set(RESOURCES) & set(getattr(item, "fixturenames", ())):
            item.add_marker(RESOURCES[fixture])
        params = getattr(getattr(item, "callspec", None), "params", {})
        if params.get("address") == "postgresql":
            item.add_marker("postgres")
        if function_of(item.nodeid) in slow:
            item.add_marker("slow")


def processor_seconds():
    return sum(os.times()[:4])


def pytest_collection_finish():
    _before[0] = processor_seconds()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport():
    """Every phase of every test carries the time since the one before, from a worker to whoever writes the list."""
    report = yield
    report.seconds, _before[0] = processor_seconds() - _before[0], processor_seconds()
    return report


def pytest_runtest_logreport(report):
    _spent[report.nodeid] += report.seconds


def pytest_sessionfinish(session):
    if session.config.getoption("slow_list") and not hasattr(session.config, "workerinput"):
        for nodeid, seconds in sorted(_spent.items(), key=lambda one: -one[1])[:200]:
            print(f"{seconds:8.1f} s  {nodeid}")  # noqa: T201
        found = {function_of(nodeid) for nodeid, seconds in _spent.items() if seconds >= SECONDS}
        known = set(SLOW_LIST.read_text("utf-8").split())
        SLOW_LIST.write_text("".join(f"{name}\n" for name in sorted(known | found)), "utf-8")
