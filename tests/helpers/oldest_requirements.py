"""Print the oldest versions that `pyproject.toml` allows for the core, one requirement a line: `make oldest`."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2] / "pyproject.toml"


def oldest(project: Path = PROJECT) -> list[str]:
    """Every `name>=version` of the core as `name==version`."""
    return [one.replace(">=", "==") for one in tomllib.loads(project.read_text())["project"]["dependencies"]]


if __name__ == "__main__":
    sys.stdout.write("\n".join(oldest()) + "\n")
