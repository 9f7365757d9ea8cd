"""Run the paper's experiment and write everything it says: Markdown, CSV, JSON, PNG and SVG.

Policy and files only; the numbers come from `experiment` and `ablation`. All of it is seeded and computed from raw
ratings, so nothing in the folder is private. The ratings are made up, so nobody's privacy is at stake.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numba

from dpsr.errors import ParameterError
from dpsr.evaluate.ablation import SensitivityResult, StageResult, sensitivity, stages
from dpsr.evaluate.ablation_tables import sensitivity_table, stage_table
from dpsr.evaluate.experiment import (
    EPSILONS,
    NORMALISATIONS,
    READINGS,
    Arena,
    Progress,
    Result,
    with_privacy,
    without_privacy,
)
from dpsr.evaluate.figures import figure_1, figure_2
from dpsr.evaluate.significance import recheck_printed_tests
from dpsr.evaluate.tables import Table, all_results, claims, printed_tests, summarise, table_1, table_2

NOTICE = (
    "NOT PRIVATE: the noise is seeded and the scores read raw test ratings. The ratings are synthetic, so nobody is "
    "harmed; do not publish scores of real ratings computed this way beside a release."
)

Item = TypeVar("Item")


@dataclass(frozen=True)
class Reproduction:
    """Everything one run found, and the files it wrote. NOT PRIVATE."""

    results: tuple[Result, ...]
    stages: tuple[StageResult, ...]
    sensitivity: tuple[SensitivityResult, ...]
    tables: tuple[Table, ...]
    files: tuple[Path, ...]

    @property
    def report(self) -> Path:
        """The Markdown report, the file to read first."""
        return self.files[0]


def reproduce(
    out_dir: str | Path,
    *,
    seeds: int = 5,
    epsilons: Sequence[float] = EPSILONS,
    progress: Progress | None = None,
) -> Reproduction:
    """Repeat the paper's experiment for seeds 0, ..., seeds - 1 and write the tables and figures to `out_dir`.

    `progress(done, total, what)` is called before every step and once at the end.
    """
    if seeds < 1 or not epsilons:
        raise ParameterError(f"an experiment needs a seed and a budget, found seeds={seeds}, epsilons={epsilons}.")
    steps = list(_steps(seeds, tuple(epsilons)))
    found: list[Any] = []
    with _one_thread():
        for done, (what, work) in enumerate(steps):
            _report(progress, done, len(steps), what)
            found.extend(work())
    _report(progress, len(steps), len(steps), "writing")
    return _write(Path(out_dir), found)


def _report(progress: Progress | None, done: int, total: int, what: str) -> None:
    if progress is not None:
        progress(done, total, what)


def _steps(seeds: int, epsilons: tuple[float, ...]) -> Iterator[tuple[str, Callable[[], Iterable[Any]]]]:
    """The work, in pieces of about a second."""
    for normalisation in NORMALISATIONS:
        for seed in range(seeds):
            arena, what = Arena.build(normalisation, seed), f"{normalisation}, seed {seed}"
            yield f"{what}, no privacy", partial(without_privacy, arena)
            for epsilon in epsilons:
                yield f"{what}, epsilon {epsilon:g}", partial(with_privacy, arena, epsilon)
                yield f"{what}, epsilon {epsilon:g}, stages", partial(stages, arena, epsilon)
    for seed in range(seeds):
        yield f"sensitivity, seed {seed}", partial(sensitivity, Arena.build(NORMALISATIONS[0], seed))


@contextmanager
def _one_thread() -> Iterator[None]:
    """At 300 x 200 starting threads costs more than they save, above all on a busy machine."""
    before = numba.get_num_threads()
    numba.set_num_threads(1)
    try:
        yield
    finally:
        numba.set_num_threads(before)


def _write(folder: Path, found: list[Any]) -> Reproduction:
    results, stage_results = _only(found, Result), _only(found, StageResult)
    sensitivity_results = _only(found, SensitivityResult)
    tables = _tables(results, stage_results, sensitivity_results)
    folder.mkdir(parents=True, exist_ok=True)
    files = [_save(folder / "report.md", _markdown(tables))]
    files.append(_save(folder / "results.json", _json(results, stage_results, sensitivity_results)))
    files += [_save(folder / f"{table.name}.csv", table.csv()) for table in tables]
    files.append(_save(folder / "results.csv", all_results(results).csv()))
    files += _figures(folder, results)
    return Reproduction(results, stage_results, sensitivity_results, tuple(tables), tuple(files))


def _only(found: list[Any], kind: type[Item]) -> tuple[Item, ...]:
    return tuple(item for item in found if isinstance(item, kind))


def _tables(
    results: Sequence[Result], stage_results: Sequence[StageResult], sensitivity_results: Sequence[SensitivityResult]
) -> list[Table]:
    summaries = summarise(results)
    panels = [(normalisation, reading.name) for normalisation in NORMALISATIONS for reading in READINGS]
    tables = [claims(summaries, panels), printed_tests(recheck_printed_tests())]
    for panel in panels:
        tables += [table_1(summaries, *panel), table_2(summaries, *panel)]
    tables += [stage_table(stage_results, normalisation) for normalisation in NORMALISATIONS]
    return [*tables, sensitivity_table(sensitivity_results)]


def _markdown(tables: Sequence[Table]) -> str:
    readings = "\n".join(f"* **{reading.name}**: {reading.description}" for reading in READINGS)
    head = f"# The paper's experiment\n\n{NOTICE}\n\nReadings of the factorisation:\n\n{readings}\n\n"
    return head + "\n".join(table.markdown() for table in tables)


def _json(*groups: Sequence[Any]) -> str:
    names = ("results", "stages", "sensitivity")
    record = {name: [asdict(row) for row in group] for name, group in zip(names, groups, strict=True)}
    return json.dumps({"notice": NOTICE, **record}, indent=1)


def _figures(folder: Path, results: Sequence[Result]) -> list[Path]:
    summaries, files = summarise(results), []
    for normalisation in NORMALISATIONS:
        for name, draw in (("figure1", figure_1), ("figure2", figure_2)):
            figure = draw(summaries, normalisation)
            for kind in ("png", "svg"):
                files.append(folder / f"{name}_{normalisation}.{kind}")
                figure.savefig(files[-1], dpi=120)
    return files


def _save(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path
