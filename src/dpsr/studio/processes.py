"""Commands as processes: what one answered, kept as long as the file it read has not changed.

A command runs with this Python and this folder, without a shell. Answers that are kept are what the commands print:
counts, forecasts, budgets; never a rating.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any

PATIENCE = 1_800
_KEPT = 32


@dataclass(frozen=True)
class Outcome:
    """A record, or the sentence that says why not."""

    record: Any
    words: str

    @property
    def refused(self) -> bool:
        return self.record is None


def command_line(arguments: Sequence[str]) -> list[str]:
    """This very program as a process; `-P` keeps files of the working folder from passing for libraries."""
    return [sys.executable, "-P", "-m", "dpsr", *arguments]


def ask(arguments: Sequence[str]) -> Outcome:
    """Run a command that answers with JSON and changes nothing."""
    try:
        done = subprocess.run(
            command_line([*arguments, "--json"]),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Outcome(None, "The command took more than half an hour. Run it in a terminal.")
    return outcome_of(done.stdout, done.stderr)


def outcome_of(printed: str, said: str) -> Outcome:
    """The record on stdout; without one, the last complaint on stderr."""
    try:
        return Outcome(json.loads(printed), "")
    except ValueError:
        return Outcome(None, complaint(said))


def complaint(said: str) -> str:
    """The sentence after `error:`, or that there was none."""
    lines = [line.removeprefix("error: ") for line in said.splitlines() if line.startswith("error: ")]
    return lines[-1] if lines else "The command ended without a word. Run it in a terminal to see why."


class Answers:
    """Answers of commands that only read, by what they were asked and what the file looked like then."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[object, ...], Outcome] = OrderedDict()
        self._lock = Lock()

    def of(self, arguments: Sequence[str], source: str) -> Outcome:
        """Ask, unless the same was answered about the same file."""
        key = (*arguments, _state(source))
        with self._lock:
            if key in self._kept:
                return self._kept[key]
        found = ask(arguments)
        if not found.refused and _state(source) is not None:
            with self._lock:
                self._kept[key] = found
                while len(self._kept) > _KEPT:
                    self._kept.popitem(last=False)
        return found


def _state(source: str) -> tuple[int, int] | None:
    """Size and time of a file; None for what is none."""
    try:
        found = os.stat(Path(source))
    except (OSError, ValueError):
        return None
    return found.st_size, found.st_mtime_ns
