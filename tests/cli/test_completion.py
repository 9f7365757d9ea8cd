"""Shell completion, start-up time in modules, and one exit code per meaning."""

import os
import subprocess
import sys

import pytest

from dpsr.cli.app import app

DPSR = [sys.executable, "-m", "dpsr"]


@pytest.fixture
def completed(monkeypatch, capsys):
    """What a shell is offered for the words typed so far; it asks through the environment."""

    def complete(words, shell):
        asked = {
            "_DPSR_COMPLETE": f"complete_{shell}", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split(" ")) - 1),
            "_TYPER_COMPLETE_ARGS": words, "_TYPER_COMPLETE_FISH_ACTION": "get-args",
        }  # fmt: skip
        for name, value in asked.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(sys, "argv", ["dpsr"])
        with pytest.raises(SystemExit):
            app(prog_name="dpsr")
        return capsys.readouterr().out

    return complete


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("dpsr re", ["release", "recommend", "reproduce"]),
        ("dpsr recommend folder --fo", ["--format", "--force"]),
        ("dpsr recommend folder --format ", ["table", "json", "csv"]),
        ("dpsr release ratings.csv --method ", ["default", "paper", "as-published"]),
        ("dpsr release ratings.csv --duplicates ", ["error", "first", "last"]),
    ],
)
def test_commands_options_and_choices_are_completed(completed, shell, words, offered):
    shown = completed(words, shell)
    for word in offered:
        assert word in shown


def test_completion_can_be_shown_and_installed(tmp_path):
    environment = {**os.environ, "HOME": str(tmp_path), "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    run = subprocess.run(
        [*DPSR, "--show-completion", "bash"], capture_output=True, text=True, env=environment, check=False
    )
    assert run.returncode == 0
    assert "complete -o default" in run.stdout, "and where nothing is offered, the shell completes file names"
    run = subprocess.run(
        [*DPSR, "--install-completion", "bash"], capture_output=True, text=True, env=environment, check=False
    )
    assert run.returncode == 0
    assert (tmp_path / ".bash_completions").exists() or (tmp_path / ".bashrc").exists()


def test_help_does_not_wait_for_numerical_libraries():
    heavy = ("numpy", "scipy", "pyarrow", "numba", "sklearn", "matplotlib", "duckdb", "sqlalchemy")
    code = f"import sys; import dpsr.cli.app; print([m for m in {heavy} if m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


@pytest.mark.parametrize("command", [("recommend", "--user", "1"), ("predict", "pairs.csv"), ("compare",)])
def test_a_folder_that_is_missing_or_no_release_is_refused_in_one_line(dpsr, tmp_path, command):
    (tmp_path / "pairs.csv").write_text("user,item\n1,2\n")
    name, *options = command
    (tmp_path / "thesis").mkdir()
    for folder in (tmp_path / "nowhere", tmp_path / "thesis"):
        outcome = dpsr(name, folder, *(tmp_path / o if o.endswith(".csv") else o for o in options))
        assert outcome.code == 2
        assert "not a readable release folder" in outcome.err
        assert outcome.err.count("\n") == 1
