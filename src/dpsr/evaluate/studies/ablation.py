"""What each idea of the default pipeline contributes: leave one out, measure the RMSE. NOT PRIVATE.

The recipes are in `pipelines`. All of one (set, epsilon, seed) get the same noise seed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from dpsr.errors import ParameterError
from dpsr.evaluate.measure import METHOD
from dpsr.evaluate.pipelines import RECIPES
from dpsr.evaluate.protocol import ERRORS_ONLY
from dpsr.evaluate.registry import OURS, recipe_name
from dpsr.evaluate.report.files import write_rows, write_text
from dpsr.evaluate.report.tables import Cells, Table, markdown
from dpsr.evaluate.report.tidy import Averages, distinct, tidy
from dpsr.evaluate.runner.jobs import Seeds, cross, noise_seed
from dpsr.evaluate.runner.results import Results
from dpsr.evaluate.sets import sets_in_folder
from dpsr.evaluate.studies.study import Study, StudyReport
from dpsr.types import Scale

EPSILONS = (0.5, 1.0, 3.0, 10.0)

VARIANTS: Mapping[str, str] = {"full": OURS, **{name: recipe_name(name) for name in RECIPES}}
"""The method of every row."""


def ablation_study(
    data: str | Path,
    *,
    scales: Mapping[str, Scale] | None = None,
    epsilons: Sequence[float] = EPSILONS,
    seeds: Sequence[int] = (0,),
    variants: Sequence[str] | None = None,
) -> Study:
    """Every variant on every known set in the folder `data`, or on those of `scales`."""
    names = list(VARIANTS) if variants is None else list(variants)
    unknown = [name for name in names if name not in VARIANTS]
    if unknown or not names or not epsilons or not seeds:
        raise ParameterError(
            f"an ablation needs a variant ({', '.join(VARIANTS)}), a budget and a seed, found {names}, "
            f"epsilons={epsilons}, seeds={seeds}."
        )
    methods = [(VARIANTS[name], True) for name in names]
    budgets = [float(epsilon) for epsilon in epsilons]
    sets = sets_in_folder(Path(data), scales)
    return Study(cross(METHOD, sets, methods, budgets, seeds, protocol=ERRORS_ONLY, seeding=_same_noise), _write)


def _same_noise(ratings: str, _: str, epsilon: float | None, seed: int) -> Seeds:
    own = noise_seed(ratings, "ablation", epsilon, seed)
    return Seeds(own, own)


def _write(results: Results, folder: Path) -> StudyReport:
    rows = tidy(METHOD, results.runs)
    tables = tuple(ablation_table(rows, name) for name in distinct(rows, "set"))
    seeds = ", ".join(map(str, sorted(distinct(rows, "seed"))))
    head = f"# What each idea contributes\n\nNOT PRIVATE: seeded noise, raw test ratings. Seeds {seeds}. "
    head += "A figure without a percentage is the same fit: what is left out was not used there.\n\n"
    report = write_text(folder / "ablation.md", head + markdown(tables))
    return StudyReport({"ablation": rows}, tables, (report, *write_rows(rows, folder, "ablation")))


def ablation_table(rows: pa.Table, name: str) -> Table:
    """Mean RMSE of every variant, and how much worse it is than the full pipeline."""
    averages, epsilons, run = Averages(rows), sorted(distinct(rows, "epsilon")), distinct(rows, "method")
    shown: list[Cells] = [
        (title, *(_against_full(averages, name, method, epsilon) for epsilon in epsilons))
        for title, method in VARIANTS.items()
        if method in run
    ]
    title = f"{name}: RMSE, and how much worse than the full pipeline in per cent"
    return Table(f"ablation_{name}", title, ("ε", *(f"{epsilon:g}" for epsilon in epsilons)), tuple(shown))


def _against_full(averages: Averages, name: str, method: str, epsilon: float) -> str:
    found, full = averages.at(name, method, epsilon), averages.at(name, OURS, epsilon)
    if found is None:
        return ""
    if full is None or found.value == full.value:
        return f"{found.value:.4f}"
    return f"{found.value:.4f} ({100 * (found.value / full.value - 1):+.1f})"
