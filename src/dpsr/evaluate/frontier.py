"""The frontier of privacy and accuracy on real rating sets: who reaches which error at which epsilon.

Random 80/20 splits, one per seed; predictions clipped to the scale. Policy and files only: methods, sets, tables and
the picture have modules of their own. Everything is seeded and read from raw ratings: NOT PRIVATE, for the curator's
and the developer's eyes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from math import isnan
from pathlib import Path
from time import perf_counter
from typing import Any

from dpsr.data import Ratings
from dpsr.errors import ParameterError
from dpsr.evaluate.experiment import Progress
from dpsr.evaluate.frontier_figure import draw
from dpsr.evaluate.frontier_methods import CONSTANT, METHODS, OURS, Method, noise_seed
from dpsr.evaluate.frontier_records import Averages, Plan, Record
from dpsr.evaluate.frontier_sets import EPSILONS, TEST_SHARE, RatingFile, find_sets, without_scale
from dpsr.evaluate.frontier_store import Store, code_digest
from dpsr.evaluate.frontier_tables import all_records, frontier_tables
from dpsr.evaluate.scores import score
from dpsr.evaluate.tables import Table
from dpsr.pipeline import DPSR
from dpsr.types import Scale

NOTICE = (
    "NOT PRIVATE: the noise is seeded and the scores read raw test ratings. For the curator and for development; "
    "do not publish them beside a release of the same ratings."
)
STORE = "frontier.jsonl"


@dataclass(frozen=True)
class Frontier:
    """Everything one run found, and the files it wrote. NOT PRIVATE."""

    records: tuple[Record, ...]
    plans: tuple[Plan, ...]
    tables: tuple[Table, ...]
    files: tuple[Path, ...]

    @property
    def report(self) -> Path:
        """The Markdown report, the file to read first."""
        return self.files[0]


@dataclass(frozen=True)
class _Step:
    """One fit, or one plan where `method` is None."""

    file: RatingFile
    method: Method | None
    epsilon: float | None
    seed: int

    @property
    def key(self) -> dict[str, Any]:
        what = "plan" if self.method is None else self.method.name
        return {"set": self.file.name, "method": what, "epsilon": self.epsilon, "seed": self.seed}

    def __str__(self) -> str:
        parts = [self.file.name, self.key["method"], f"seed {self.seed}"]
        return ", ".join(parts if self.epsilon is None else [*parts, f"ε {self.epsilon:g}"])


def frontier(
    data_dir: str | Path,
    out_dir: str | Path,
    *,
    sets: Mapping[str, Scale] | None = None,
    epsilons: Sequence[float] = EPSILONS,
    seeds: Sequence[int] = (0, 1, 2),
    methods: Sequence[str] | None = None,
    progress: Progress | None = None,
) -> Frontier:
    """Fit every method to every set at every epsilon and seed, and write tables and pictures to `out_dir`.

    `sets` maps file names without `.parquet` to scales; without it, the known sets found in `data_dir` are run.
    `methods` are names of `frontier_methods.METHODS`. What an earlier run with the same code, version and data stored
    in `out_dir` is not computed again. `progress(done, total, what)` is called before every step and once at the end.
    """
    budgets, chosen = _checked(epsilons, seeds, methods)
    folder = Path(data_dir)
    files = find_sets(folder, sets)
    store = Store(Path(out_dir) / STORE)
    steps = _steps(files, budgets, seeds, chosen)
    split = cache(_split)
    digests = {file.name: file.digest() for file in files}
    found = []
    for done, step in enumerate(steps):
        if progress is not None:
            progress(done, len(steps), str(step))
        key = {**step.key, "data": digests[step.file.name]}
        stored = store.get(**key)
        found.append((step, store.put(_run(step, *split(step.file, step.seed)), **key) if stored is None else stored))
    if progress is not None:
        progress(len(steps), len(steps), "writing")
    records = tuple(_record(step, result) for step, result in found if step.method is not None)
    plans = tuple(_plan(step, result) for step, result in found if step.method is None)
    return _write(Path(out_dir), files, budgets, records, plans, without_scale(folder, files))


def parse_epsilons(text: str) -> tuple[float, ...]:
    """Budgets from a comma-separated list.

    >>> parse_epsilons("0.5, 1,3")
    (0.5, 1.0, 3.0)
    """
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError as error:
        raise ParameterError(f"epsilons are numbers separated by commas, found {text!r}. Write 0.5,1,3.") from error


def _checked(
    epsilons: Sequence[float], seeds: Sequence[int], methods: Sequence[str] | None
) -> tuple[tuple[float, ...], list[Method]]:
    if not seeds or not epsilons:
        raise ParameterError(f"a frontier needs a seed and a budget, found seeds={seeds}, epsilons={epsilons}.")
    unknown = [name for name in methods or () if name not in METHODS]
    if unknown or (methods is not None and not methods):
        raise ParameterError(f"methods are {', '.join(METHODS)}; found {', '.join(unknown) or 'none'}.")
    chosen = [method for name, method in METHODS.items() if methods is None or name in methods]
    return tuple(sorted({float(epsilon) for epsilon in epsilons})), chosen


def _steps(
    files: Sequence[RatingFile], epsilons: tuple[float, ...], seeds: Sequence[int], methods: Sequence[Method]
) -> list[_Step]:
    """Method after method, so that what stands first in `METHODS` is known first, for all sets."""
    steps = []
    for method in methods:
        for file in files:
            for seed in seeds:
                steps += [_Step(file, method, epsilon, seed) for epsilon in (epsilons if method.budgeted else (None,))]
    if {OURS, CONSTANT} <= {method.name for method in methods}:
        steps += [_Step(file, None, epsilon, seed) for file in files for seed in seeds for epsilon in epsilons]
    return steps


def _split(file: RatingFile, seed: int) -> tuple[Ratings, Ratings]:
    return file.read().split(TEST_SHARE, seed=seed)


def _run(step: _Step, train: Ratings, test: Ratings) -> dict[str, Any]:
    """The numbers of one step, ready for JSON."""
    budget = 0.0 if step.epsilon is None else step.epsilon
    if step.method is None:
        return {"share": DPSR.plan(train.mask, train.scale, [budget])[0].share}
    own = noise_seed(step.file.name, step.method.name, step.epsilon, step.seed)
    before = perf_counter()
    fitted = step.method.fit(train, budget, own)
    seconds = perf_counter() - before
    scores = score(fitted.predictor, train, test).as_dict()
    kept = {name: scores[name] for name in ("rmse", "mae", "precision", "ndcg", "chance_precision", "chance_ndcg")}
    numbers = {name: None if isnan(value) else value for name, value in kept.items()}
    return {**numbers, "seconds": seconds, "exact_epsilon": fitted.exact_epsilon}


def _record(step: _Step, result: dict[str, Any]) -> Record:
    numbers = {name: float("nan") if value is None else value for name, value in result.items()}
    return Record(**{**step.key, **numbers, "exact_epsilon": result["exact_epsilon"]})


def _plan(step: _Step, result: dict[str, Any]) -> Plan:
    return Plan(step.file.name, step.epsilon or 0.0, step.seed, result["share"])


def _write(
    folder: Path,
    files: Sequence[RatingFile],
    epsilons: tuple[float, ...],
    records: tuple[Record, ...],
    plans: tuple[Plan, ...],
    left_out: list[str],
) -> Frontier:
    averages, names = Averages.of(records), [file.name for file in files]
    tables = frontier_tables(averages, plans, records, names, epsilons)
    seeds = sorted({record.seed for record in records})
    written = [_save(folder / "frontier.md", _markdown(tables, seeds, left_out))]
    written.append(_save(folder / "frontier.csv", all_records(records).csv()))
    written.append(_save(folder / "frontier.json", _json(records, plans)))
    for name in names:
        picture = draw(averages, name, epsilons)
        for kind in ("png", "svg"):
            written.append(folder / f"frontier_{name}.{kind}")
            picture.savefig(written[-1], dpi=130)
    return Frontier(records, plans, tuple(tables), tuple(written))


def _markdown(tables: Sequence[Table], seeds: Sequence[int], left_out: list[str]) -> str:
    head = (
        f"# Privacy and accuracy\n\n{NOTICE}\n\nRandom 80/20 splits, seeds {', '.join(map(str, seeds))}; predictions "
        f"clipped to the scale; mean ± standard deviation over seeds. Code {code_digest()}.\n\n"
    )
    if left_out:
        head += f"Left out, because nobody declared their scale: {', '.join(left_out)}.\n\n"
    return head + "\n".join(table.markdown() for table in tables)


def _json(records: Sequence[Record], plans: Sequence[Plan]) -> str:
    rows = [{name: None if value != value else value for name, value in record.as_dict().items()} for record in records]
    found = {"notice": NOTICE, "code": code_digest(), "records": rows, "plans": [asdict(plan) for plan in plans]}
    return json.dumps(found, indent=1)


def _save(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path
