"""The commands behind the pages are commands: what is shown is what is run, and every option exists."""

import shlex
from dataclasses import replace

import pytest
import typer

from dpsr.cli.app import app
from dpsr.cli.reference import _commands
from dpsr.studio import commands
from dpsr.studio.commands import Choices
from dpsr.studio.frontier import forecast
from dpsr.studio.processes import Outcome, complaint, outcome_of
from dpsr.studio.sources import _size

COMMANDS = dict(_commands(typer.main.get_command(app), "dpsr"))
ALL = Choices(
    "r.csv", "", "u", "i", "s", ";", "last", "items.csv", "1:5:1", "user", "1", "1e-6", "l.db", "films", "out"
)


@pytest.mark.parametrize(
    "arguments",
    [
        commands.columns(ALL),
        commands.describe(ALL),
        commands.describe(replace(ALL, source="sqlite:///x.db", table="t")),
        commands.plan(ALL),
        commands.plan_people(ALL, {"n_users": 9, "n_items": 8, "n_ratings": 7}),
        commands.show_ledger("l.db"),
        commands.begin_ledger("l.db", "films", "3", "user", "1e-6"),
        commands.release(ALL),
        commands.release(replace(ALL, unit="value")),
        commands.verify("out", "l.db"),
    ],
)
def test_every_command_and_option_exists(arguments):
    line = shlex.split(commands.shown(arguments))
    assert line == ["dpsr", *arguments]
    name = " ".join(line[:3]) if line[1] == "ledger" else " ".join(line[:2])
    known = {option for parameter in COMMANDS[name].params for option in parameter.opts}
    assert {word.partition("=")[0] for word in arguments if word.startswith("--")} <= known


def test_choices_travel_through_an_address_and_back():
    from urllib.parse import parse_qsl

    assert Choices.of(dict(parse_qsl(ALL.query()))) == ALL
    assert Choices.of({"source": " a\x00\nb ", "stranger": "x"}).source == "ab"


def test_values_that_look_like_options_stay_values():
    strange = replace(ALL, source="--yes", out="--force", user="--json", delimiter="-", items="-x")
    line = commands.release(strange)
    assert "./--yes" in line
    assert "./--force" in line
    assert "--user=--json" in line
    assert "--force" not in line
    assert "--yes" not in line


def test_a_refusal_is_the_sentence_behind_error():
    assert complaint("Settings of dpsr.toml: x\nerror: it must hold. Do that.\n") == "it must hold. Do that."
    assert "terminal" in complaint("Traceback")
    assert outcome_of("no json", "error: so").words == "so"


def test_sizes_are_in_words():
    assert [_size(n) for n in (7, 12_345, 3_400_000)] == ["7 bytes", "12 KB", "3 MB"]


SHAPE = {"n_users": 1_000, "n_items": 500, "n_ratings": 60_000}
ROWS = [
    {"epsilon": 0.5, "rmse": 0.9, "people_for_factors": 8_123.4},
    {"epsilon": 1.0, "rmse": 0.8, "people_for_factors": None},
]
PLAN = {"forecasts": ROWS, "own_means": 1.0, "spread_assumed": True}


class Recorded:
    """Answers of commands, written down."""

    def __init__(self):
        self.asked = []

    def of(self, arguments, source):
        self.asked.append(list(arguments))
        return Outcome(SHAPE if arguments[0] == "describe" else PLAN, "")


@pytest.mark.parametrize("unit", ["rating", "user"])
def test_where_people_are_protected_the_forecast_is_made_from_totals_and_no_rating_is_read(unit):
    answers = Recorded()
    found = forecast(replace(ALL, unit=unit), answers)
    asked = answers.asked[-1]
    assert asked[:7] == ["plan", "--users", "1000", "--items", "500", "--ratings", "60000"]
    assert ALL.source not in asked
    assert [step.people for step in found.steps] == ["8,100", "more than there are on earth"]
    assert (found.steps[1].factor, found.steps[1].guess) == ("2.72", "73.11 %")
    assert bool(found.note) == (unit == "rating"), "a bound is called a bound"
    assert found.steps[0].y < found.steps[1].y, "less error is drawn lower"
