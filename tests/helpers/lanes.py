"""Which tests the fast lane leaves out: those that start Spark, a server, a browser or a notebook, and the slow ones.

Resources are known by the fixtures that a test asks for, or by a marker where there is no fixture. What is slow was
measured: `make slow-list` runs the fast lane and adds to `tests/slow.txt` whatever took a second or more.
"""

from collections import defaultdict
from pathlib import Path

RESOURCES = {"postgres": "postgres", "chromium": "browser"}
"""Fixtures, and the markers of tests that use them."""

SLOW_LIST = Path(__file__).parents[1] / "slow.txt"
SECONDS = 1.0

_spent: defaultdict[str, float] = defaultdict(float)


def function_of(nodeid):
    """The test without its parameters: one slow case makes all of them slow."""
    return nodeid.partition("[")[0]


def pytest_addoption(parser):
    parser.addoption(
        "--slow-list", action="store_true", help="add what takes a second or more to the list of slow tests"
    )


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


def pytest_runtest_logreport(report):
    _spent[report.nodeid] += report.duration


def pytest_sessionfinish(session):
    if session.config.getoption("slow_list") and not hasattr(session.config, "workerinput"):
        found = {function_of(nodeid) for nodeid, seconds in _spent.items() if seconds >= SECONDS}
        known = set(SLOW_LIST.read_text("utf-8").split())
        SLOW_LIST.write_text("".join(f"{name}\n" for name in sorted(known | found)), "utf-8")
