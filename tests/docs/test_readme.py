"""The README's commands run as printed, in their order, on the sample that comes with it; so does its Python."""

import os
import re
import shlex
import sys
from pathlib import Path

import pytest

from dpsr.cli import main

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

    argv, kept, sys.argv = sys.argv, terminal.out.file, words
    terminal.out.file = StringIO()
    try:
        with pytest.raises(SystemExit) as stop:
            main()
        assert not stop.value.code, words
    finally:
        sys.argv, shown = argv, terminal.out.file.getvalue()
        terminal.out.file = kept
    return shown


def test_the_commands_lead_from_a_sample_to_a_signed_release(walked):
    folder, printed = walked
    assert {"ratings.csv", "ledger.db", "officer.pub", "release"} <= {path.name for path in folder.iterdir()}
    verified = next(shown for line, shown in printed.items() if line.startswith("dpsr verify"))
    assert "Verified" in verified
    assert "signed by the key" in verified
    assert "recorded this certificate" in verified


def test_the_python_runs_in_the_same_folder(walked, monkeypatch):
    folder, _ = walked
    monkeypatch.chdir(folder)
    exec(compile(block("python"), "README.md", "exec"), {})
    assert (folder / "from_python" / "certificate.json").exists()


def test_links_of_the_readme_lead_somewhere():
    for target in re.findall(r"\]\(([^)#:]+)\)", README.read_text("utf-8")):
        assert (README.parent / target).exists(), target


def test_the_dockerfile_copies_what_is_there():
    text = (README.parent / "Dockerfile").read_text("utf-8")
    for names in re.findall(r"^COPY (?!--from)(.*) \S+$", text, flags=re.MULTILINE):
        for name in names.split():
            assert (README.parent / name).exists(), name
