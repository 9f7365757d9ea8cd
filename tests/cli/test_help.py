"""Help as a stranger meets it: 80 columns, a user's order, -h, no types of the programming language."""

import os
import re
import subprocess
import sys

import forked
import pytest
import typer

from dpsr.cli.app import app
from dpsr.cli.reference import _commands

COMMANDS = list(_commands(typer.main.get_command(app), "dpsr"))


def shell(*words, columns="80"):
    run = forked.run([sys.executable, "-m", "dpsr", *words], env={**os.environ, "COLUMNS": columns})
    return run.returncode, run.stdout, run.stderr


@pytest.mark.parametrize("name", [name for name, _ in COMMANDS])
def test_help_shows_no_types_no_braces_and_breaks_no_word(dpsr, monkeypatch, name):
    monkeypatch.setattr("shutil.get_terminal_size", lambda *_, **__: os.terminal_size((80, 24)))
    shown = dpsr(*name.split()[1:], "-h").out
    assert "...." not in shown
    assert not re.search(r"<(bool|str|int|float|path|\w+Source)>|\{\w+\}", shown)
    body = shown.split("Example: ")[0]
    assert max(map(len, body.splitlines())) <= 80
    if name == "dpsr release":
        assert "as-published." in body
        assert "value (of every rating), rating (that it exists), or user (whole people)" in " ".join(body.split())


def test_h_is_help_and_the_program_has_its_name_whoever_started_it():
    run = subprocess.run([sys.executable, "-m", "dpsr", "-h"], capture_output=True, text=True)
    assert run.returncode == 0
    assert run.stdout.startswith("Usage: dpsr COMMAND")


def test_commands_stand_in_the_order_in_which_somebody_needs_them():
    shown = shell("-h")[1]
    order = ["demo", "describe", "plan", "ledger", "release", "recommend", "verify", "benchmark"]
    places = [shown.index(f"\n  {name} ") for name in order]
    assert places == sorted(places)


def test_a_bare_command_shows_its_help():
    assert "Usage: dpsr ledger COMMAND" in shell("ledger")[1]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["release", "ratings.csv", "--scale", "1:5:1"],
            "Missing option '--epsilon'. Example: dpsr release ratings.csv",
        ),
        (["relaese"], "No such command 'relaese'"),
        (["release", "--colour"], "No such option: --colour"),
        (["explain", "--epsilon", "1,5"], "'--epsilon': Input should be a valid number, found '1,5'. Example: dpsr"),
        (
            ["serve", "r", "--port", "70000"],
            "Input should be less than or equal to 65535, found '70000'. Example: dpsr",
        ),
        (["explain", "--unit", "person"], "'--unit': 'person' is not one of 'value', 'rating', 'user'. Example: dpsr"),
    ],
)
def test_a_wrong_command_line_is_one_sentence_with_a_right_one(words, said):
    code, out, err = shell(*words)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert said in err
    assert "?." not in err


def test_a_number_that_is_none_is_said_without_the_words_of_a_parser(dpsr):
    refused = dpsr("explain", "--epsilon", "50%")
    assert refused.code == 2
    assert "'--epsilon'" in refused.err
    assert "parse string" not in refused.err
