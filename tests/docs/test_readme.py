"""The README's commands run as printed, in their order, on the sample that comes with it; so does its Python."""

import os
import re
import shlex
import sys
from pathlib import Path

import pytest
import typer

from dpsr.cli import main
from dpsr.cli.app import app
from dpsr.cli.reference import _commands

README = Path(__file__).parents[2] / "README.md"


def block(language):
    return re.search(rf"^```{language}\n(.*?)^```", README.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)[1]


@pytest.fixture(scope="module")
def walked(tmp_path_factory):
    """Every command once, as a reader would type it; what each printed."""
    before, printed = Path.cwd(), {}
    os.chdir(tmp_path_factory.mktemp("readme"))
    try:
        for line in block("console").splitlines():
            words = shlex.split(line)
            if words[0] == "cd":
                os.chdir(words[1])
                continue
            printed[line] = run(words)
        yield Path.cwd(), printed
    finally:
        os.chdir(before)


def run(words):
    from io import StringIO

    from dpsr.cli import terminal

    argv, kept, sys.argv = sys.argv, terminal.out._file, words  # `file` would be today's standard output, for ever
    terminal.out.file = StringIO()
    try:
        with pytest.raises(SystemExit) as stop:
            main()
        assert not stop.value.code, words
    finally:
        sys.argv, shown = argv, terminal.out.file.getvalue()
        terminal.out._file = kept
    return shown


def test_the_commands_lead_from_a_sample_to_a_signed_release(walked):
    folder, printed = walked
    assert {"ratings.csv", "ledger.db", "officer.pub", "release"} <= {path.name for path in folder.iterdir()}
    verified = next(shown for line, shown in printed.items() if line.startswith("dpsr verify"))
    assert "Verified" in verified
    assert "signed by the key" in verified
    assert "recorded this certificate" in verified


def test_the_python_runs_in_the_same_folder_and_prints_what_its_comment_says(walked, monkeypatch, capsys):
    folder, _ = walked
    monkeypatch.chdir(folder)
    exec(compile(block("python"), "README.md", "exec"), {})
    stated = re.search(r"print\(model.certificate\) *# (.*)", block("python"))[1]
    assert stated in capsys.readouterr().out.splitlines()
    assert (folder / "from_python" / "certificate.json").exists()


def test_a_shop_with_a_log_gets_its_lists(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    goods = ["milk", "bread", *(f"article {k}" for k in range(10))]
    rows = [f"c{k},{goods[(k * j) % len(goods)]},{1 + j % 3}" for k in range(400) for j in range(1, 8)]
    (tmp_path / "orders.csv").write_text("\n".join(["customer,article,quantity", *rows]))
    lines = re.findall(r"^ {4}(dpsr .*shop.*)$", README.read_text("utf-8"), flags=re.MULTILINE)
    shown = [run(shlex.split(line)) for line in lines]
    assert [line.split()[1] for line in lines] == ["release", "verify", "personalise", "recommend"]
    assert "Verified, private" in shown[1]
    assert "400 people" in shown[2]
    assert "article" in shown[3]


def test_links_of_the_readme_lead_somewhere():
    for target in re.findall(r"\]\(([^)#:]+)\)", README.read_text("utf-8")):
        assert (README.parent / target).exists(), target


def test_the_dockerfile_copies_what_is_there():
    text = (README.parent / "Dockerfile").read_text("utf-8")
    for names in re.findall(r"^COPY (?!--from)(.*) \S+$", text, flags=re.MULTILINE):
        for name in names.split():
            assert (README.parent / name).exists(), name


def test_the_ten_minutes_are_the_readme_s_commands_in_the_same_order():
    """So that they are run, too."""
    page = (README.parent / "docs" / "tenminutes.md").read_text("utf-8")
    found = re.findall(r"^```console\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    assert "".join(found) == block("console")


@pytest.mark.parametrize("name", ["tenminutes", "unit", "nightly", "troubleshooting", "benchmark", "index"])
def test_links_of_the_journey_lead_somewhere(name):
    docs = README.parent / "docs"
    for target in re.findall(r"\]\(([^)#:]+)", (docs / f"{name}.md").read_text("utf-8")):
        assert (docs / target).exists(), target


@pytest.mark.parametrize("name", ["tenminutes", "unit", "nightly", "troubleshooting", "curator", "officer"])
def test_every_command_line_of_the_journey_names_existing_commands_and_options(name):
    root = typer.main.get_command(app)
    commands = dict(_commands(root, "dpsr"))
    text = (README.parent / "docs" / f"{name}.md").read_text("utf-8")
    for line in re.findall(r"^(?: {4})?(dpsr [a-z][^\n]*)$", text, flags=re.MULTILINE):
        words = shlex.split(line.split("#")[0].split(">")[0].rstrip(" \\"))
        command = commands.get(" ".join(words[:2])) or commands[" ".join(words[:3])]
        known = {option for one in command.params for option in (*one.opts, *one.secondary_opts, "-h", "--help")}
        assert {word.partition("=")[0] for word in words[2:] if word.startswith("-") and word != "-"} <= known, line


def test_the_page_of_the_benchmark_is_one_that_people_read():
    assert len((README.parent / "docs" / "benchmark.md").read_text("utf-8").splitlines()) < 250


def test_what_the_units_cost_is_what_the_tables_of_every_epsilon_say():
    """README and the page about units round figures that longer tables print; those are printed anew, these by hand."""
    docs = README.parent / "docs"
    lines = [line for page in (README, docs / "people.md") for line in page.read_text("utf-8").splitlines()]
    rows = [line.split("|")[2:] for line in lines if line.startswith("| dpsr, personalised") and "kept" not in line]
    at_one, at_five = ([f"{float(row[place].split()[0]):.3f}" for row in rows] for place in (2, 5))
    films, tweets = slice(0, None, 2), slice(1, None, 2)
    assert len(rows) == 6, "two sets at each of three units: value, user, rating"
    tables = README.read_text("utf-8") + (docs / "unit.md").read_text("utf-8")
    for unit, *figures in zip(("value", "user", "rating"), at_one[films], at_one[tweets], strict=True):
        row = next(line for line in tables.splitlines() if line.startswith(f'| `"{unit}"`'))
        assert row.endswith(f"| {', '.join(figures)} |")
    for name, figures in (
        ("ml-latest-small (610 people), ε = 1", at_one[films]),
        ("ml-latest-small, ε = 5", at_five[films]),
        ("movietweetings-100k (16,554 people), ε = 1", at_one[tweets]),
        ("movietweetings-100k, ε = 5", at_five[tweets]),
    ):
        value, user, rating = figures
        assert f"| {name} | {value} | {rating} | {user} |" in tables
