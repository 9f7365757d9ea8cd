"""Ratings with a pattern that can be searched for, and the command line run in processes of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from forked import Forked

ROOT = Path(__file__).parents[2]
LEVELS = 5
KEY = "c0ffee5eed" * 6 + "d15c"
"""32 bytes that the generator is made to give, so that a search knows what to look for."""


@dataclass(frozen=True)
class Secret:
    """A file of ratings, and the bytes by which its values would be known wherever they turn up."""

    csv: Path
    traces: dict[str, bytes]


def secret_ratings(folder: Path, n_users: int = 60, n_items: int = 40, seed: int = 5) -> Secret:
    """Ratings of people of whom the first rated everything, in an order of levels that nobody would hit by chance."""
    rng = np.random.default_rng(seed)
    rows, heavy = [], rng.integers(0, LEVELS, n_items)
    for user in range(n_users):
        items = range(n_items) if user == 0 else sorted(rng.choice(n_items, n_items // 4, replace=False))
        levels = heavy if user == 0 else rng.integers(0, LEVELS, len(items))
        rows += [f"u{user:05d},i{item:05d},{level + 1}" for item, level in zip(items, levels, strict=True)]
    path = folder / "ratings.csv"
    path.write_text("\n".join(["userId,movieId,rating", *rows]) + "\n")
    kinds = (np.uint8, np.uint16, np.int32, np.int64, np.float32, np.float64)
    traces = {f"levels as {np.dtype(kind)}": heavy.astype(kind).tobytes() for kind in kinds}
    traces |= {f"ratings as {np.dtype(kind)}": (heavy + 1).astype(kind).tobytes() for kind in kinds}
    traces |= {"a line of the file": rows[3].encode(), "the key": bytes.fromhex(KEY), "the key in digits": KEY.encode()}
    return Secret(path, traces)


def release(secret: Secret, out: Path, *more: object, epsilon: str = "2") -> list[str]:
    """The arguments of a release of these ratings."""
    options = ["--scale", "1:5:1", "--epsilon", epsilon, "--out", out, "--yes", *more]
    return ["release", str(secret.csv), *map(str, options)]


@dataclass(frozen=True)
class Ended:
    """How a process ended and what it said."""

    code: int
    said: str

    @property
    def traceback(self) -> bool:
        return "Traceback (most recent call last)" in self.said

    @property
    def steps(self) -> int:
        return int(re.findall(r"steps: (\d+)", self.said)[-1])


def dpsr(*arguments: object, cwd: Path, limit: float = 300, **environment: str) -> Ended:
    """The command in a process of its own; code -1000 if it did not end."""
    return _run([sys.executable, "-m", "dpsr", *map(str, arguments)], cwd, limit, environment)


def victim(arguments: list[str], *, cwd: Path, at: int = 0, sign: int = 0, key: str = "", **environment: str) -> Ended:
    """The same, with a signal at a step."""
    command = [sys.executable, "-m", "benchmarks.attack.victim", str(at), str(int(sign)), key, *arguments]
    return _run(command, cwd, 300, environment)


def _run(command: list[str], cwd: Path, limit: float, environment: dict[str, str]) -> Ended:
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    variables = {**os.environ, "PYTHONPATH": path, "COLUMNS": "300", **environment}
    variables.pop("DPSR_LEDGER", None)
    with Forked(command, cwd=cwd, env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        try:
            said, _ = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            process.kill()
            return Ended(-1000, "it did not end")
    return Ended(process.returncode, said.decode("utf-8", "surrogateescape"))
