"""One method on one split: fitted, scored, timed.

The row says what the method protects (unit, exact epsilon, delta, what is public), how well it predicts the test
ratings, and what it took: seconds to fit by the clock and by the processor (compiling is not timed: every method is
first fitted to a handful of made-up ratings), and the largest resident memory of its process until it was fitted, which
includes the interpreter and the data; the method `constant` shows how much these are.
"""

from __future__ import annotations

import resource
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from math import isfinite
from pathlib import Path
from time import perf_counter, process_time

from dpsr.data import realistic
from dpsr.evaluate.contract import Protection
from dpsr.evaluate.protocol import PROTOCOLS, Predictions
from dpsr.evaluate.registry import build
from dpsr.evaluate.runner.jobs import Job, Row
from dpsr.evaluate.runner.store import save_arrays
from dpsr.pipeline import DPSR


def measure_method(job: Job, arrays: Path) -> list[Row]:
    """Fit on the training part, then look at the test part. The method never meets the latter."""
    _warm_up(job.what, None if job.epsilon is None else 1.0)
    protocol = PROTOCOLS[job.protocol]
    split = protocol.split(job.set, job.seed)
    method = build(job.what, job.epsilon, job.delta, job.noise_seed, job.learner_seed)
    cost = cost_of(lambda: method.fit(split.train))
    scores = protocol.score(method, split, job.seed)
    save_arrays(arrays, Predictions.of(method, split, job.seed).arrays())
    return [finite({**told(method.protection), **scores, **cost})]


def measure_forecast(job: Job, _: Path) -> list[Row]:
    """RMSE over the constant's, as `DPSR.plan` expects it of the training mask."""
    train = PROTOCOLS[job.protocol].split(job.set, job.seed).train
    return [{"share_of_constant": DPSR.plan(train.mask, train.scale, [job.epsilon or 0.0])[0].share}]


def cost_of(fit: Callable[[], object]) -> Row:
    """What fitting takes: seconds by the clock and by the processor, and the largest memory."""
    forget_peak()
    before, busy = perf_counter(), process_time()
    fit()
    return {
        "fit_seconds": perf_counter() - before,
        "cpu_seconds": process_time() - busy,
        "peak_mb": peak_megabytes(),
    }


def told(protection: Protection) -> Row:
    """What a method protects, as a row says it."""
    return {
        "unit": protection.unit,
        "exact_epsilon": protection.epsilon,
        "delta": protection.delta,
        "public": protection.public,
        "note": protection.note,
    }


@cache
def _warm_up(what: str, epsilon: float | None) -> None:
    """Load compiled code and libraries. What goes wrong here goes wrong again, where it is noted."""
    with suppress(Exception):
        build(what, epsilon, 1e-5, 0).fit(realistic(0, n_users=40, n_items=30, n_ratings=400))


def forget_peak() -> None:
    """Start the largest resident memory anew at the present one, where the system can (Linux)."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def peak_megabytes() -> float:
    """The largest resident memory of this process since `forget_peak`, or since it began."""
    with suppress(OSError, StopIteration):
        lines = Path("/proc/self/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("VmHWM:")).split()[1]) / 2**10
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / 2**20 if sys.platform == "darwin" else most / 2**10


def finite(row: Row) -> Row:
    """JSON has no infinity and no NaN: what is not a finite number is left empty."""
    return {name: None if isinstance(value, float) and not isfinite(value) else value for name, value in row.items()}
