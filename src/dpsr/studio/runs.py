"""Releases in the making: `dpsr release` in a process of its own, one at a time.

It is a session of its own and writes to files that have no name, so neither a closed browser nor a stopped studio ends
it: what was charged is released, in the folder that was named. An order is filled once, however often it is sent.
"""

from __future__ import annotations

import os
import secrets
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import IO, Any

from dpsr.studio.processes import command_line, complaint, outcome_of

BUSY = (
    "One release is made at a time, and one is being made now. Wait until it is done, then look at what the ledger has "
    "left."
)


@dataclass
class Run:
    """One release: what was run, and what it said so far."""

    id: str
    arguments: list[str]
    folder: str
    ledger: str
    process: subprocess.Popen[bytes]
    printed: IO[bytes]
    said: IO[bytes]
    stages: list[str] = field(default_factory=list)

    @property
    def running(self) -> bool:
        return self.process.poll() is None

    @property
    def done(self) -> bool:
        """Whether the release is in its place."""
        return self.process.poll() == 0

    def progress(self) -> list[str]:
        """The stages that have begun."""
        lines = _text(self.said).splitlines()
        return [line.removesuffix(" ...") for line in lines if line.endswith(" ...")]

    def record(self) -> Any:
        """What the command printed at its end."""
        return outcome_of(_text(self.printed), "").record

    def complaint(self) -> str:
        """Why there is no release."""
        return complaint(_text(self.said))


class BusyError(Exception):
    """Another release is being made."""


class Runs:
    """All releases of this studio, by order."""

    def __init__(self) -> None:
        self._orders: dict[str, Run] = {}
        self._lock = Lock()

    def start(self, order: str, arguments: Sequence[str], folder: str, ledger: str) -> Run:
        """Fill an order; the same order again is the same run."""
        with self._lock:
            if order in self._orders:
                return self._orders[order]
            if self.current is not None:
                raise BusyError(BUSY)
            self._orders[order] = run = _begin(arguments, folder, ledger)
            return run

    def find(self, run_id: str) -> Run | None:
        """A run by its id."""
        return next((run for run in self.all if run.id == run_id), None)

    @property
    def all(self) -> list[Run]:
        return list(self._orders.values())

    @property
    def current(self) -> Run | None:
        """The one that is being made."""
        return next((run for run in self.all if run.running), None)


def _begin(arguments: Sequence[str], folder: str, ledger: str) -> Run:
    printed, said = tempfile.TemporaryFile(), tempfile.TemporaryFile()  # noqa: SIM115 (as long as the run is known)
    process = subprocess.Popen(
        command_line([*arguments, "--yes", "--json"]),
        stdin=subprocess.DEVNULL,
        stdout=printed,
        stderr=said,
        start_new_session=True,
    )
    return Run(secrets.token_hex(8), list(arguments), folder, ledger, process, printed, said)


def _text(file: IO[bytes]) -> str:
    """All of a file that another process writes, without moving its place in it."""
    size = os.fstat(file.fileno()).st_size
    return os.pread(file.fileno(), size, 0).decode("utf-8", "replace")
