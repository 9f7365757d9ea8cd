"""The frontier of privacy and accuracy on real rating sets: who reaches which error at which epsilon.

Random 80/20 splits, one per seed; predictions clipped to the scale; lists scored for everybody. Everything is seeded
and read from raw ratings: NOT PRIVATE, for the curator's and the developer's eyes.

Lists are not all made alike: our model orders by P(meets) P(likes), the first factor from the public mask, the others
by predicted rating alone. `popularity` shows how much of a ranking figure the mask gives without any value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from dpsr.errors import ParameterError
from dpsr.evaluate.measure import FORECAST, METHOD
from dpsr.evaluate.protocol import ALL_RANKED, ERRORS_ONLY
from dpsr.evaluate.registry import CONSTANT, METHODS, OURS, PERSONALISED
from dpsr.evaluate.report.charts import write_chart
from dpsr.evaluate.report.files import NOTICE, write_rows, write_text
from dpsr.evaluate.report.tables import Table, markdown
from dpsr.evaluate.report.tidy import distinct, tidy
from dpsr.evaluate.runner.jobs import Job, Seeds, code_digest, cross, noise_seed
from dpsr.evaluate.runner.results import Results
from dpsr.evaluate.sets import sets_in_folder, without_scale
from dpsr.evaluate.studies.frontier.people import PEOPLE_UNITS, people_tables
from dpsr.evaluate.studies.frontier.picture import frontier_chart
from dpsr.evaluate.studies.frontier.tables import frontier_tables
from dpsr.evaluate.studies.frontier.targets import EPSILONS, PEOPLE_EPSILONS
from dpsr.evaluate.studies.study import Study, StudyReport
from dpsr.types import Scale

NOISE: dict[str, str] = {
    "popularity": "most-rated",
    PERSONALISED: OURS,
    "dpsr-paper": "paper",
    "dpsr-as-published": "published",
    "laplace-als": "laplace",
    "gaussian-als": "gaussian",
}
"""Names under which the noise of the published figures was drawn, where they are not those of the methods. What is
personalised is the very release that is measured beside it."""

ORDER = (
    "constant", "bias", "als", "popularity", "dpsr", "dpsr-personalised", "dpsr-20", "dpsr-paper", "dpsr-as-published",
    "laplace-als", "laplace-mf", "gaussian-als",
)  # fmt: skip
"""In the order in which they are run: what is asked first comes first."""


def frontier_study(
    data: str | Path,
    *,
    scales: Mapping[str, Scale] | None = None,
    epsilons: Sequence[float] = EPSILONS,
    seeds: Sequence[int] = (0, 1, 2),
    methods: Sequence[str] | None = None,
) -> Study:
    """Every method that protects values, on every known set in the folder `data`, at every epsilon and seed.

    `scales` maps file names without `.parquet` to scales; without it, the known sets are run. `methods` are some of
    `ORDER`. Where ours and the constant are among them, the plan is compared with what was measured.
    """
    budgets, chosen = _budgets(epsilons, seeds), _chosen(ORDER, methods)
    sets = sets_in_folder(Path(data), scales)
    jobs: list[Job] = []
    for name in chosen:
        what = [(name, METHODS[name].budgeted)]
        jobs += cross(METHOD, sets, what, budgets, seeds, protocol=ALL_RANKED, seeding=_seeds)
    if {OURS, CONSTANT} <= set(chosen):
        jobs += cross(FORECAST, sets, [(OURS, True)], budgets, seeds, protocol=ALL_RANKED)
    left_out = without_scale(Path(data), sets)
    return Study(jobs, lambda results, folder: _write(results, folder, budgets, left_out))


def people_frontier_study(
    data: str | Path,
    unit: str,
    *,
    scales: Mapping[str, Scale] | None = None,
    epsilons: Sequence[float] = PEOPLE_EPSILONS,
    seeds: Sequence[int] = (0, 1, 2),
    methods: Sequence[str] | None = None,
) -> Study:
    """The same where `unit` is "rating" or "user": methods of that unit, personalised, errors alone; delta = 1e-5."""
    if unit not in PEOPLE_UNITS:
        raise ParameterError(f"a frontier of people has a unit among {', '.join(PEOPLE_UNITS)}, found {unit!r}.")
    budgets, chosen = _budgets(epsilons, seeds), _chosen(list(PEOPLE_UNITS[unit].titles), methods)
    sets = sets_in_folder(Path(data), scales)
    what = [(name, METHODS[name].budgeted) for name in chosen]
    jobs = cross(METHOD, sets, what, budgets, seeds, protocol=ERRORS_ONLY, seeding=_seeds)
    left_out = without_scale(Path(data), sets)
    return Study(jobs, lambda results, folder: _write_people(results, folder, budgets, left_out, unit))


def _budgets(epsilons: Sequence[float], seeds: Sequence[int]) -> list[float]:
    budgets = sorted({float(epsilon) for epsilon in epsilons})
    if not seeds or not budgets:
        raise ParameterError(f"a frontier needs a seed and a budget, found seeds={seeds}, epsilons={epsilons}.")
    return budgets


def _chosen(order: Sequence[str], methods: Sequence[str] | None) -> list[str]:
    unknown = [name for name in methods or () if name not in order]
    if unknown or (methods is not None and not methods):
        raise ParameterError(f"methods are {', '.join(order)}; found {', '.join(unknown) or 'none'}.")
    return [name for name in order if methods is None or name in methods]


def _seeds(ratings: str, method: str, epsilon: float | None, seed: int) -> Seeds:
    """Noise of its own; what learns from it, and the models without privacy, always start alike."""
    return Seeds(noise_seed(ratings, NOISE.get(method, method), epsilon, seed), 0)


def _write(results: Results, folder: Path, epsilons: Sequence[float], left_out: Sequence[str]) -> StudyReport:
    rows, plans = tidy(METHOD, results.runs), tidy(FORECAST, results.runs)
    names = distinct(rows, "set")
    tables = frontier_tables(rows, plans, names, epsilons)
    written = [
        write_text(folder / "frontier.md", _markdown(tables, sorted(distinct(rows, "seed")), left_out)),
        *write_rows(rows, folder, "frontier"),
    ]
    if plans.num_rows:
        written += write_rows(plans, folder, "plan")
    for name in names:
        written += write_chart(frontier_chart(rows, name, epsilons), folder, dpi=130)
    return StudyReport({"frontier": rows, "plan": plans}, tuple(tables), tuple(written))


def _write_people(
    results: Results, folder: Path, epsilons: Sequence[float], left_out: Sequence[str], unit: str
) -> StudyReport:
    rows = tidy(METHOD, results.runs)
    names = distinct(rows, "set")
    tables = people_tables(rows, names, epsilons, unit)
    written = [
        write_text(folder / f"frontier_{unit}.md", _markdown(tables, sorted(distinct(rows, "seed")), left_out)),
        *write_rows(rows, folder, f"frontier_{unit}"),
    ]
    for name in names:
        chart = frontier_chart(rows, name, epsilons, PEOPLE_UNITS[unit].look)
        written += write_chart(replace(chart, name=f"frontier_{unit}_{name}"), folder, dpi=130)
    return StudyReport({f"frontier_{unit}": rows}, tuple(tables), tuple(written))


def _markdown(tables: Sequence[Table], seeds: Sequence[int], left_out: Sequence[str]) -> str:
    head = (
        f"# Privacy and accuracy\n\n{NOTICE}\n\nRandom 80/20 splits, seeds {', '.join(map(str, seeds))}; predictions "
        f"clipped to the scale; mean ± standard deviation over seeds. Code {code_digest(METHOD.partition(':')[0])}.\n\n"
    )
    if left_out:
        head += f"Left out, because nobody declared their scale: {', '.join(left_out)}.\n\n"
    return head + markdown(tables)
