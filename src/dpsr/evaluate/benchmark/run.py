"""The order of a benchmark: what is there is kept, what is missing is run, and everything is written anew.

Results are appended line by line as they arrive (`results.jsonl`); the tables, charts and the report are made from all
lines that belong to this request. Policy and files only.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from dpsr.errors import ParameterError
from dpsr.evaluate.attacks.run import BEST_GUESS, MEAN_LEAK
from dpsr.evaluate.benchmark.claims import Done, claims
from dpsr.evaluate.benchmark.jobs import Job, cross, source_digest
from dpsr.evaluate.benchmark.methods import budgeted, takes_budget
from dpsr.evaluate.benchmark.pictures import write_chart
from dpsr.evaluate.benchmark.pool import run_jobs
from dpsr.evaluate.benchmark.report import fill, markdown, sections
from dpsr.evaluate.benchmark.sets import Source
from dpsr.evaluate.benchmark.slices import charts
from dpsr.evaluate.benchmark.summaries import units_of
from dpsr.evaluate.benchmark.table import FILES, tidy, write_table
from dpsr.evaluate.benchmark.work import Row
from dpsr.evaluate.downstream.inputs import RAW
from dpsr.evaluate.frontier_store import Store
from dpsr.evaluate.tables import Table

Progress = Callable[[int, int, str], None]
Results = list[tuple[Job, list[Row]]]

ON_MECHANISMS = (MEAN_LEAK, BEST_GUESS)
STORE, DETAILS = "results.jsonl", "details"


@dataclass(frozen=True)
class Request:
    """What to measure. `timeout` is seconds a run, `workers` processes at a time (0: as many as there are cores).

    Learners and attacks run on the first seed, at the budgets `beside` or else at all of them.
    """

    sources: Sequence[Source]
    methods: Sequence[str]
    epsilons: Sequence[float]
    seeds: Sequence[int]
    inputs: Sequence[str] = ()
    attacks: Sequence[str] = ()
    beside: Sequence[float] = ()
    effort: int = 1
    timeout: float = 900.0
    workers: int = 0
    retry: bool = False

    def __post_init__(self) -> None:
        if not (self.seeds and self.epsilons and all(e > 0 for e in self.epsilons)):
            raise ParameterError(
                f"a benchmark needs at least one seed and one positive epsilon, found seeds {list(self.seeds)} and "
                f"epsilons {list(self.epsilons)}."
            )

    def jobs(self) -> list[Job]:
        """Everything asked for, in the order in which it is begun."""
        only_beside = not self.methods and (self.inputs or self.attacks)
        methods = [] if only_beside else budgeted(self.methods)
        jobs = cross("method", self.sources, methods, self.epsilons, self.seeds)
        inputs = [(name, name != RAW) for name in self.inputs]
        few = self.beside or self.epsilons
        jobs += cross("downstream", self.sources, inputs, few, self.seeds[:1])
        attacked = [(name, name in ON_MECHANISMS or takes_budget(name)) for name in self.attacks]
        return jobs + cross("attack", self.sources, attacked, few, self.seeds[:1], self.effort)


@dataclass(frozen=True)
class Benchmark:
    """What one run found, and the files it wrote. NOT PRIVATE."""

    methods: pa.Table
    downstream: pa.Table
    attacks: pa.Table
    significance: Table
    files: tuple[Path, ...]

    @property
    def report(self) -> Path:
        """The Markdown report, the file to read first."""
        return self.files[0]


def benchmark(
    request: Request, out: Path, *, document: Path | None = None, progress: Progress | None = None
) -> Benchmark:
    """Run what is missing, write everything. `document` is a file whose marked sections are refilled."""
    jobs = request.jobs()
    results = _complete(request, jobs, out, progress or (lambda done, total, what: None))
    return _write(request, results, out, document)


def _complete(request: Request, jobs: Sequence[Job], out: Path, progress: Progress) -> Results:
    store, found = Store(out / STORE), dict[Job, list[Row]]()
    for job in jobs:
        kept = store.get(**job.key)
        if kept is not None and not (request.retry and any(row.get("error") for row in kept["rows"])):
            found[job] = kept["rows"]
    missing = [job for job in jobs if job not in found]
    progress(len(found), len(jobs), "starting" if missing else "writing")
    workers = request.workers or os.cpu_count() or 1
    for job, rows in run_jobs(missing, out / DETAILS, workers=workers, timeout=request.timeout):
        found[job] = store.put({"rows": rows}, **job.key)["rows"]
        progress(len(found), len(jobs), str(job))
    return [(job, found[job]) for job in jobs]


def _write(request: Request, results: Results, out: Path, document: Path | None) -> Benchmark:
    tables = {kind: tidy(kind, results) for kind in FILES}
    table = tables["method"]
    units = units_of(table)
    fitted = tuple(job for job, rows in results if job.kind == "method" and not any(row.get("error") for row in rows))
    done = Done(fitted, units, out / DETAILS)
    significance = claims(done)
    parts = sections(_facts(request), table, significance, tables["downstream"], tables["attack"])
    written = [_save(out / "benchmark.md", markdown(parts)), _save(out / "significance.csv", significance.csv())]
    for kind, name in FILES.items():
        if tables[kind].num_rows:
            written += write_table(tables[kind], out, name)
    for chart in charts(done, table, _shown_at(done.epsilons)):
        written += write_chart(chart, units, out)
    if document is not None:
        fill(document, parts)
    return Benchmark(table, tables["downstream"], tables["attack"], significance, tuple(written))


def _shown_at(epsilons: Sequence[float]) -> float | None:
    """The epsilon of charts that show one: the nearest to 1."""
    return min(epsilons, key=lambda e: (abs(e - 1), e)) if epsilons else None


def _facts(request: Request) -> Mapping[str, str]:
    return {
        "sets": ", ".join(source.name for source in request.sources),
        "methods": ", ".join(request.methods) or "none",
        "ε": ", ".join(f"{epsilon:g}" for epsilon in request.epsilons),
        "seeds": ", ".join(map(str, request.seeds)),
        "source digest": source_digest(),
        "processes at a time": str(request.workers or os.cpu_count()),
        "seconds allowed a run": f"{request.timeout:g}",
    }


def _save(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path
