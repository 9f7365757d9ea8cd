"""Every command explains itself, and the reference is complete."""

from pathlib import Path

import pytest
import typer

from dpsr.cli.app import app
from dpsr.cli.reference import _commands, reference

COMMANDS = dict(_commands(typer.main.get_command(app), "dpsr"))
DOCS = Path(__file__).parents[2] / "docs" / "cli.md"


def test_the_written_reference_is_the_generated_one():
    assert DOCS.read_text("utf-8") == reference(), "run `make docs`"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_a_help_page_with_a_runnable_example(dpsr, name):
    outcome = dpsr(*name.split()[1:], "--help")
    assert outcome.code == 0
    assert f"Example: {name}" in " ".join(outcome.out.split())


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_says_what_it_does(name):
    for parameter in COMMANDS[name].params:
        assert parameter.name == "help" or getattr(parameter, "help", None), f"{name}: {parameter.name}"


def test_the_bare_command_shows_help_and_the_version_is_known(dpsr):
    assert "release" in dpsr("--help").out
    assert dpsr("--version").out.startswith("dpsr 0.")
