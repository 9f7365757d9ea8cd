"""Mutated release folders in slices, each a process of its own: `make fuzz` tries ten thousand.

    python tests/helpers/fuzz_folders.py [COUNT [FIRST]]

A case that kills its process, hangs or breaks a promise is counted and named, and the slice goes on behind it.
"""

import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

PROGRAM = Path(__file__).with_name("mutated_folders.py")
SLICE = 500
PATIENCE = 600
"""Seconds a slice may take; a folder takes hundredths of one."""


@dataclass
class Tally:
    """What became of the cases: how many were tried, how many loaded, and the last words about each that failed."""

    tried: int = 0
    loaded: int = 0
    failed: dict[int, str] = field(default_factory=dict)


def run_cases(cases, *, patience=PATIENCE):
    """Try the cases; a failure ends its process, and another goes on with the next case."""
    tally, todo = Tally(), list(cases)
    while todo:
        with tempfile.TemporaryDirectory() as work:
            command = [sys.executable, str(PROGRAM), str(Path(work) / "w"), *map(str, todo)]
            said, words, code = _run(command, patience)
        begun = [int(line) for line in said.splitlines() if line.isdecimal()]
        if not begun:
            raise RuntimeError(f"no case was begun: {words}")
        tally.tried += len(begun)
        tally.loaded += sum(int(line.split()[1]) for line in said.splitlines() if line.startswith("loaded"))
        if code:
            tally.failed[begun[-1]] = f"exit code {code}: {words.strip()[-500:]}"
        todo = todo[len(begun) :]
    return tally


def _run(command, patience):
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=patience)
    except subprocess.TimeoutExpired as late:
        return (late.stdout or b"").decode(), "it hung", -1
    return done.stdout, done.stderr, done.returncode


def main(count=10_000, first=0):
    total, began = Tally(), time.monotonic()
    for start in range(first, first + count, SLICE):
        tally = run_cases(range(start, min(start + SLICE, first + count)))
        total.tried, total.loaded = total.tried + tally.tried, total.loaded + tally.loaded
        total.failed |= tally.failed
        for case, words in tally.failed.items():
            print(f"case {case}: {words}", flush=True)  # noqa: T201
    seconds = time.monotonic() - began
    print(f"{total.tried:,} folders, {len(total.failed)} failed, {total.loaded:,} loaded, {seconds:.0f} s")  # noqa: T201
    return 1 if total.failed else 0


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
