import sys
from dataclasses import dataclass
from functools import cache

import pytest
import typer

from dpsr import DPSR, Ratings
from dpsr.cli import main, terminal
from dpsr.data import realistic


@dataclass
class Outcome:
    code: int
    out: str
    err: str


commands = cache(typer.main.get_command)
"""The commands of the entry point, which are the same each time and take longer to put together than most of them."""


@pytest.fixture
def dpsr(monkeypatch, capsys):
    """Run the real entry point in this process and say what a shell would see."""

    def run(*arguments):
        monkeypatch.setattr(typer.main, "get_command", commands)
        monkeypatch.setattr(sys, "argv", ["dpsr", *map(str, arguments)])
        monkeypatch.setenv("COLUMNS", "200")
        for console in (terminal.out, terminal.err):
            monkeypatch.setattr(console, "_width", 200)  # it may have been made where the terminal was narrower
        code = 0
        try:
            main()
        except SystemExit as stop:
            code = int(stop.code or 0)
        captured = capsys.readouterr()
        return Outcome(code, captured.out, captured.err)

    return run


@pytest.fixture(scope="session")
def small_ratings():
    return realistic(0, n_users=60, n_items=40, n_ratings=1_200, timestamps=True)


@pytest.fixture(scope="session")
def folder(small_ratings, tmp_path_factory):
    """A release of integer ids at epsilon 1."""
    return DPSR(1.0).fit(small_ratings).save(tmp_path_factory.mktemp("daily") / "release")


@pytest.fixture(scope="session")
def named(small_ratings, tmp_path_factory):
    """A release of string ids, one of which tries to steer the terminal."""
    table = small_ratings.to_arrow()
    users = [f"ann {user}" if user != 7 else "\x1b[31mred[bold]" for user in table["user"].to_pylist()]
    items = [f"film {item}" for item in table["item"].to_pylist()]
    ratings = Ratings.from_arrays(users, items, table["rating"], scale=small_ratings.scale)
    return DPSR(1.0).fit(ratings).save(tmp_path_factory.mktemp("daily") / "named")
