"""What the documentation shows is run: Python blocks as they stand, boxed commands through the real entry point."""

import math
import re
import shlex
import sys
from pathlib import Path

import forked
import pytest
import typer

from dpsr.cli import main
from dpsr.cli.app import app
from dpsr.cli.reference import _commands
from dpsr.data import realistic

DOCS = Path(__file__).parents[2] / "docs"
COMMANDS = dict(_commands(typer.main.get_command(app), "dpsr"))
GUIDES = ("adapters.md", "commands.md", "datascientist.md", "researcher.md")


def blocks(name, language):
    return re.findall(rf"^```{language}\n(.*?)^```", (DOCS / name).read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("name", ["adapters.md", "datascientist.md", "researcher.md"])
def test_the_python_of_a_page_runs_from_top_to_bottom(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": f"docs_{name.removesuffix('.md')}"}
    found = blocks(name, "python")
    assert len(found) > 4
    for code in found:
        exec(compile(code, name, "exec"), namespace)


def test_comments_that_state_a_result_state_the_right_one(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    code = "\n".join(blocks("datascientist.md", "python")[:4])
    exec(compile(code, "datascientist.md", "exec"), {})
    stated = re.findall(r"print\(.*?\)\s+# (Ratings\(.*|private: .*)", code)
    assert len(stated) == 2
    assert set(stated) <= set(capsys.readouterr().out.splitlines()), "the whole line, and not its beginning"


def test_the_boxed_commands_run_in_their_order(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "")
    realistic(0, n_users=80, n_items=50, n_ratings=2_000).to_frame().to_csv("ratings.csv", index=False)
    (tmp_path / "pairs.csv").write_text("user,item\n42,7\nnobody,7\n")
    lines = [line for block in blocks("commands.md", "console") for line in block.splitlines()]
    assert len(lines) > 10
    for line in lines:
        if "completion" in line:
            continue  # asks which shell is running; see test_completion.py
        monkeypatch.setattr(sys, "argv", shlex.split(line))
        code = 0
        try:
            main()
        except SystemExit as stop:
            code = int(stop.code or 0)
        assert code == 0, f"{line}: {capsys.readouterr().err}"
    assert {"recs.parquet", "predictions.parquet", "release", "other"} <= {path.name for path in tmp_path.iterdir()}


@pytest.mark.parametrize("name", GUIDES)
def test_every_command_line_shown_names_existing_commands_and_options(name):
    text = (DOCS / name).read_text("utf-8")
    for line in re.findall(r"^(?: {4})?(dpsr [a-z].*)$", text, flags=re.MULTILINE):
        words = shlex.split(line)
        command = COMMANDS[" ".join(words[:2])]
        known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
        assert {word.partition("=")[0] for word in words[2:] if word.startswith("-")} <= known, line


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_in_the_guide(name):
    guide = (DOCS / "commands.md").read_text("utf-8")
    assert f"`{' '.join(name.split()[:2])}`" in guide, f"add a row for {name} to docs/commands.md"


@pytest.mark.parametrize("name", GUIDES)
def test_links_lead_somewhere(name):
    for target in re.findall(r"\]\(([^)#]+)", (DOCS / name).read_text("utf-8")):
        assert (DOCS / target).exists(), target


def test_odds_in_words_are_rounded_to_the_safe_side():
    said = {
        (float(percent), float(epsilon))
        for page in (DOCS.parent / "README.md", *DOCS.glob("*.md"))
        for line in page.read_text("utf-8").splitlines()
        if "fifty-fifty" in line
        for percent, epsilon in re.findall(r"([\d.]+) % at ε = ([\d.]+)", line)
    }
    assert {epsilon for _, epsilon in said} == {1.0, 2.0, 3.0, 5.0}
    for percent, epsilon in said:
        bound = 100 / (1 + math.exp(-epsilon))
        assert bound <= percent < bound + 0.1, f"{percent} % at epsilon = {epsilon:g}"


def test_the_documents_name_no_path_of_a_machine():
    for name in GUIDES:
        assert not re.search(r"/(?:home|work|Users|tmp)/", (DOCS / name).read_text("utf-8"))


def test_all_exit_codes_are_documented_and_true(tmp_path):
    text = (DOCS / "commands.md").read_text("utf-8")
    for code in ("0", "1", "2", "130"):
        assert re.search(rf"^\| {code} \|", text, flags=re.MULTILINE)
    run = forked.run([sys.executable, "-m", "dpsr", "compare", tmp_path / "x"])
    assert run.returncode == 2
