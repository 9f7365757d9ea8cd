"""Against a run: folders inside each other, death and signals at every step, a disk that is full.

What was charged stays charged, what is visible was charged, recorded and verifies, and nothing raw is left but in the
folder that the curator chose for it. After kill -9 nothing can be cleaned up at once: then what is left is for its
owner alone to read, and the next run removes it.
"""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks.attack.attempt import Attempt, World
from benchmarks.attack.commands import ROOT, Secret, dpsr, release, secret_ratings, victim
from benchmarks.attack.search import found_in
from dpsr.errors import DpsrError
from dpsr.pipeline.verification import verify_release
from dpsr.privacy.ledger.ledger import Ledger

SIGNALS = (signal.SIGHUP, signal.SIGTERM, signal.SIGINT)


def attacks(world: World) -> Iterator[Attempt]:
    """On ratings in memory and on disk."""
    yield inside(world)
    for engine in ("disk",) if world.quick else ("memory", "disk"):
        yield killed(world, engine)
        yield signalled(world, engine)
    yield full_disk(world)


def _scene(world: World, name: str) -> tuple[Path, Secret, str]:
    place = world.place(name)
    ledger = str(place / "ledger.db")
    Ledger.create(ledger, "films", "90")
    return place, secret_ratings(place), ledger


def inside(world: World) -> Attempt:
    """A release that is deleted with the work folder."""
    attempt = Attempt("folders inside each other", "out in work, work in out, the same, and through links, on disk")
    place, secret, ledger = _scene(world, "inside")
    (place / "real").mkdir()
    (place / "link").symlink_to(place / "real")
    layouts = [("w", "w/release"), ("o/w", "o"), ("same", "same"), ("link", "real/release"), ("link", "plain")]
    for number, (work, out) in enumerate(layouts[:1] if world.quick else layouts):
        before = Ledger.open(ledger).budget("films").charges
        arguments = release(secret, place / out, "--engine", "disk", "--work", place / work, "--ledger", ledger)
        ended = dpsr(*arguments, cwd=place)
        charged = Ledger.open(ledger).budget("films").charges > before
        lost = charged and not (place / out / "certificate.json").exists()
        attempt.note(f"work {work}, out {out}: charged and lost", lost)
        attempt.note(f"work {work}, out {out}: {ended.said.strip()[-60:]!r}", ended.traceback)
        left = found_in([place], secret)
        attempt.note(f"layout {number}: raw values left", ended.code == 0 and bool(left))
    return attempt


def _steps(arguments: list[str], place: Path, world: World) -> list[int]:
    """Steps to strike at: ten all along the run, or one in its middle where time is short."""
    if world.quick:
        return [20]
    last = victim(arguments, cwd=place).steps
    return sorted({max(1, round(last * k / 10)) for k in range(1, 11)})


def _options(engine: str, ledger: str) -> list[str]:
    return ["--engine", engine, "--ledger", ledger]


def killed(world: World, engine: str) -> Attempt:
    """kill -9 at steps all along a run."""
    attempt = Attempt(f"kill -9, {engine}", "at steps all along a release; then the same command again")
    place, secret, ledger = _scene(world, f"killed-{engine}")
    steps = _steps(release(secret, place / "count", *_options(engine, ledger)), place, world)
    for step in steps:
        out = place / f"r{step}"
        victim(release(secret, out, *_options(engine, ledger)), cwd=place, at=step, sign=signal.SIGKILL)
        _judge(attempt, f"step {step}", out, ledger)
        readable = [path for path in _left_folders(place) if path.stat().st_mode & 0o077]
        raw = found_in(readable, secret)
        attempt.note(f"step {step}: raw values where others may read ({raw[:1]})", bool(raw))
    again = place / f"r{steps[len(steps) // 2]}"
    ended = dpsr(*release(secret, again, *_options(engine, ledger), "--force"), cwd=place)
    attempt.note(f"the next run fails: {ended.said.strip()[-80:]!r}", ended.code != 0)
    left = found_in([path for path in _left_folders(place) if again.name in path.name], secret)
    attempt.note(f"the next run leaves raw values of the killed one ({left[:1]})", bool(left))
    return attempt


def signalled(world: World, engine: str) -> Attempt:
    """Signals that a run can answer."""
    attempt = Attempt(
        f"signals, {engine}", "SIGHUP, SIGTERM and SIGINT along a release: nothing raw, nothing half-written"
    )
    place, secret, ledger = _scene(world, f"signalled-{engine}")
    steps = _steps(release(secret, place / "count", *_options(engine, ledger)), place, world)
    known: list[str] = []
    for number, step in enumerate(steps):
        sign, out = SIGNALS[number % len(SIGNALS)], place / f"r{step}"
        ended = victim(release(secret, out, *_options(engine, ledger)), cwd=place, at=step, sign=sign)
        _judge(attempt, f"{sign.name} at step {step}", out, ledger)
        attempt.note(f"{sign.name} at step {step}: a traceback", ended.traceback)
        left = found_in([place], secret)
        attempt.note(f"{sign.name} at step {step}: raw values left ({left[:1]})", len(left) > len(known))
        known = left
    return attempt


def full_disk(world: World) -> Attempt:
    """No file may grow beyond some bytes."""
    attempt = Attempt("full disk", "files cannot grow beyond a few sizes, in memory and on disk")
    place, secret, ledger = _scene(world, "full")
    sizes = (20_000,) if world.quick else (1_000, 8_000, 20_000, 60_000)
    for engine in ("disk",) if world.quick else ("memory", "disk"):
        for size in sizes:
            out = place / f"{engine}{size}"
            command = [sys.executable, "-m", "dpsr", *release(secret, out, *_options(engine, ledger))]
            run = subprocess.run(
                command,
                cwd=place,
                capture_output=True,
                text=True,
                check=False,
                env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])},
                preexec_fn=lambda size=size: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size)),
            )
            said = run.stdout + run.stderr
            _judge(attempt, f"{engine}, {size:,} bytes", out, ledger)
            attempt.note(f"{engine}, {size:,} bytes: {said.strip()[-80:]!r}", "Traceback" in said or run.returncode < 0)
            left = found_in([place], secret)
            attempt.note(f"{engine}, {size:,} bytes: raw values left ({left[:1]})", bool(left))
    return attempt


def _judge(attempt: Attempt, when: str, out: Path, ledger: str) -> None:
    """What is visible was charged, recorded and verifies."""
    if not out.exists():
        attempt.note(when, False)
        return
    try:
        attempt.note(f"{when}: a folder that does not verify", not verify_release(out, ledger=ledger).intact)
    except DpsrError:
        attempt.note(f"{when}: a folder that is none", True)


def _left_folders(place: Path) -> list[Path]:
    return [path for path in place.iterdir() if path.is_dir() and path.name.startswith(".")]
