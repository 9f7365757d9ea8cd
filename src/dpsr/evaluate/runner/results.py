"""The results of a list of jobs: what is there is kept, what is missing is run, rows are stored as they arrive."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from dpsr.evaluate.runner.jobs import Job, Row
from dpsr.evaluate.runner.pool import run_jobs
from dpsr.evaluate.runner.store import PREDICTIONS, Store

Progress = Callable[[int, int, str], None]
"""Called with the jobs done, the jobs in all and what was done last."""

TIMEOUT = 900.0
"""Seconds a job may take unless told otherwise."""


@dataclass(frozen=True, eq=False)
class Results:
    """What jobs found, in the order of the jobs; `folder` holds their predictions. NOT PRIVATE."""

    runs: tuple[tuple[Job, list[Row]], ...]
    folder: Path

    def of(self, measure: str) -> list[tuple[Job, list[Row]]]:
        """The runs of one measure."""
        return [(job, rows) for job, rows in self.runs if job.measure == measure]

    def succeeded(self, measure: str) -> list[Job]:
        """The jobs of one measure that ended with a result."""
        return [job for job, rows in self.of(measure) if not any(row.get("error") for row in rows)]

    def failures(self) -> list[tuple[Job, str]]:
        """Jobs without a result, and why."""
        return [(job, str(row["error"])) for job, rows in self.runs for row in rows if row.get("error")]


def results_of(
    jobs: Sequence[Job],
    folder: Path,
    *,
    workers: int = 0,
    timeout: float = TIMEOUT,
    retry: bool = False,
    progress: Progress | None = None,
) -> Results:
    """Run what `folder` does not hold yet.

    `workers` is processes at a time (0: as many as there are cores), `timeout` seconds a job; `retry` runs again what
    failed before.
    """
    tell = progress or (lambda done, total, what: None)
    store, found = Store(folder), dict[Job, list[Row]]()
    jobs = list(dict.fromkeys(jobs))
    for job in jobs:
        kept = store.get(job)
        if kept is not None and not (retry and any(row.get("error") for row in kept)):
            found[job] = kept
    missing = [job for job in jobs if job not in found]
    tell(len(found), len(jobs), "starting" if missing else "writing")
    workers = workers or os.cpu_count() or 1
    for job, rows in run_jobs(missing, folder / PREDICTIONS, workers=workers, timeout=timeout):
        found[job] = store.put(job, rows)
        tell(len(found), len(jobs), str(job))
    return Results(tuple((job, found[job]) for job in jobs), folder / PREDICTIONS)
