"""What a study is: jobs to be done, and what to make of their results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from dpsr.errors import DpsrError
from dpsr.evaluate.report.charts import require_matplotlib
from dpsr.evaluate.report.tables import Table
from dpsr.evaluate.runner.jobs import Job
from dpsr.evaluate.runner.results import Results, results_of


class StudyError(DpsrError):
    """A study that needs all of its jobs did not get them."""


@dataclass(frozen=True, eq=False)
class StudyReport:
    """What a study found: every row measured, by file name; the tables made of them; the files written. NOT PRIVATE."""

    rows: Mapping[str, pa.Table]
    tables: tuple[Table, ...]
    files: tuple[Path, ...]

    @property
    def report(self) -> Path:
        """The Markdown report, the file to read first."""
        return self.files[0]


@dataclass(frozen=True, eq=False)
class Study:
    """What to measure, and `write(results, folder)`, which makes the report of it.

    Where `complete` is set, every job must succeed: what failed before is tried again, and if it fails again nothing is
    written. Otherwise a failure is a row like any other.
    """

    jobs: Sequence[Job]
    write: Callable[[Results, Path], StudyReport]
    complete: bool = True


def run_study(study: Study, folder: str | Path, *, retry: bool = False, **settings: Any) -> StudyReport:
    """Run what is missing, then write everything. `settings` are those of `runner.results.results_of`."""
    require_matplotlib()
    out = Path(folder)
    results = results_of(study.jobs, out, retry=retry or study.complete, **settings)
    failures = results.failures()
    if study.complete and failures:
        job, why = failures[0]
        raise StudyError(
            f"every run must end with a result, found {len(failures)} of {len(results.runs)} without, the first on "
            f"{job}: {why}. What succeeded is kept in {out}; put this right and give the same command again."
        )
    return study.write(results, out)
