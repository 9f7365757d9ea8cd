import sys
from dataclasses import dataclass

import pytest

from dpsr.cli import main


@dataclass
class Outcome:
    code: int
    out: str
    err: str


@pytest.fixture
def dpsr(monkeypatch, capsys):
    """Run the real entry point in this process and say what a shell would see."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["dpsr", *map(str, arguments)])
        monkeypatch.setenv("COLUMNS", "200")
        code = 0
        try:
            main()
        except SystemExit as stop:
            code = int(stop.code or 0)
        captured = capsys.readouterr()
        return Outcome(code, captured.out, captured.err)

    return run
