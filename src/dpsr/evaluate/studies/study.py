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
from dpsr.evaluate.runner.jobs import Job, code_digest
from dpsr.evaluate.runner.results import Results, results_of
from dpsr.evaluate.sets import RatingSet


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


def facts_of(
    measure: str,
    sets: Sequence[RatingSet],
    methods: Sequence[str],
    epsilons: Sequence[float],
    seeds: Sequence[int],
    *,
    budget: str = "ε",
) -> dict[str, str]:
    """What a report tells about its run; `budget` says what epsilon is the price of."""
    return {
        "sets": ", ".join(one.name for one in sets),
        "methods": ", ".join(methods) or "none",
        budget: ", ".join(f"{epsilon:g}" for epsilon in epsilons),
        "seeds": ", ".join(map(str, seeds)),
        "source digest": code_digest(measure.partition(":")[0]),
    }


def listed_facts(facts: Mapping[str, str]) -> str:
    """As a list in Markdown."""
    return "\n".join(f"* {name}: {value}" for name, value in facts.items()) + "\n"


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
