"""The paper's tables with ours beside them, its claims counted, its stages and parameters: means over seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from dpsr.evaluate.baselines.factorisation import TRAINING_CHOICES
from dpsr.evaluate.measure.learners import THE_MODEL_ITSELF
from dpsr.evaluate.metrics.significance import SeedComparison, compare_seeds
from dpsr.evaluate.report.tables import Cells, Table
from dpsr.evaluate.report.tidy import Mean, grouped
from dpsr.evaluate.runner.jobs import Row
from dpsr.evaluate.studies.paper import printed

NO_FACTORISATION = "none"
"""The reading of results that involve no factorisation by Adam."""

FACTORISED = ("No Privacy", "Laplace", "Gaussian", "DPSR", "DPSR as published")
UNFACTORISED = ("DPSR matrix", "DPSR as published matrix", "Laplace, ALS")
YARDSTICKS = ("Constant", "Bias", "ALS")
REFERENCES = ("Laplace", "Gaussian", "No Privacy", "Constant", "Laplace, ALS")
_FORMS = ("DPSR", "DPSR as published", "DPSR matrix")

Key = tuple[str, str, float | None, str]
"""Normalisation, reading, epsilon, method."""


@dataclass(frozen=True)
class Summary:
    """The mean over seeds of every metric, and the RMSE seed by seed."""

    metrics: Mapping[str, Mean]
    rmse: list[float]


Summaries = dict[Key, Summary]


def summarise(scores: pa.Table) -> Summaries:
    """One summary per normalisation, reading, epsilon and method."""
    by = ("normalisation", "reading", "epsilon", "method")
    names = (*printed.METRICS, "chance_precision", "chance_ndcg")
    found = {metric: grouped(scores.sort_by("seed"), by, metric) for metric in names}
    return {
        (key[0], key[1], key[2], key[3]): Summary({m: Mean.of(found[m][key]) for m in names}, errors)
        for key, errors in found["rmse"].items()
    }


def budgets_of(summaries: Summaries) -> list[float]:
    """Every epsilon, ascending."""
    return sorted({key[2] for key in summaries if key[2] is not None})


def table_1(summaries: Summaries, normalisation: str, reading: str) -> Table:
    """Every method at every budget, the paper's figures beside ours; yardsticks last."""
    rows: list[Cells] = [
        ("none" if key[2] is None else f"{key[2]:g}", key[3], *_with_printed(summaries[key], key[2], key[3]))
        for key in _panel(summaries, normalisation, reading)
    ]
    chance = summaries[normalisation, NO_FACTORISATION, None, "Constant"].metrics
    ranking = (f"{chance['chance_precision'].value:.3f}", "", f"{chance['chance_ndcg'].value:.3f}", "")
    rows.append(("", "Random order", "", "", "", "", *ranking))
    titles = [printed.METRIC_TITLES[metric] for metric in printed.METRICS]
    header = ("epsilon", "method", *(cell for title in titles for cell in (title, f"{title}, paper")))
    title = f"Table 1, {normalisation}, factorisation {reading} (mean ± standard deviation over seeds; not private)"
    return Table(f"table1_{normalisation}_{reading}", title, header, tuple(rows))


def _panel(summaries: Summaries, normalisation: str, reading: str) -> list[Key]:
    """The rows of a panel in order: budgets ascending, then what needs no budget."""
    order = (*FACTORISED, *UNFACTORISED, *YARDSTICKS)
    keys = [key for key in summaries if key[0] == normalisation and key[1] in (reading, NO_FACTORISATION)]
    return sorted(keys, key=lambda key: (key[2] is None, key[2] or 0.0, order.index(key[3])))


def _with_printed(summary: Summary, epsilon: float | None, method: str) -> list[str]:
    theirs, cells = printed.TABLE_1.get((epsilon, method)), []
    for metric in printed.METRICS:
        mean = summary.metrics[metric]
        cells.append(f"{mean.value:.3f} ± {mean.deviation:.3f}")
        cells.append("" if theirs is None else f"{theirs[metric].mean:.3f} ± {theirs[metric].deviation:.3f}")
    return cells


def comparisons(summaries: Summaries, normalisation: str, reading: str) -> list[SeedComparison]:
    """The three forms of DPSR against each reference at every budget, on RMSE."""

    def errors(method: str, epsilon: float) -> list[float]:
        home = reading if method in FACTORISED else NO_FACTORISATION
        budget = None if method in ("No Privacy", *YARDSTICKS) else epsilon
        return summaries[normalisation, home, budget, method].rmse

    return [
        compare_seeds(method, reference, epsilon, errors(method, epsilon), errors(reference, epsilon))
        for method in _FORMS
        for reference in REFERENCES
        for epsilon in budgets_of(summaries)
    ]


def table_2(summaries: Summaries, normalisation: str, reading: str) -> Table:
    """Relative RMSE improvement of DPSR with its tests; for the repaired and the published Stage 1."""
    rows = [
        (c.epsilon, c.method, c.reference, c.improvement_percent, _printed_improvement(c), c.paired_t, c.paired_p)
        for c in comparisons(summaries, normalisation, reading)
    ]
    header = ("epsilon", "method", "against", "improvement %", "improvement %, paper", "t, paired", "p")
    title = f"Table 2, {normalisation}, factorisation {reading} (positive: DPSR has the smaller RMSE)"
    return Table(f"table2_{normalisation}_{reading}", title, header, tuple(rows), digits=2)


def _printed_improvement(comparison: SeedComparison) -> float | None:
    columns = ("Laplace", "Gaussian")
    row = printed.TABLE_2.get(comparison.epsilon or 0.0)
    if row is None or comparison.method != "DPSR" or comparison.reference not in columns:
        return None
    return row[columns.index(comparison.reference)]


_CLAIMS = (("Laplace", False), ("Laplace", True), *((reference, False) for reference in REFERENCES[1:]))
"""Than whom DPSR is claimed to be better, and whether the difference must be significant."""


def claims_table(summaries: Summaries, panels: Sequence[tuple[str, str]]) -> Table:
    """At how many budgets each claim of the paper comes true, panel by panel, for the three forms of DPSR."""
    n = len(budgets_of(summaries))
    rows: list[Cells] = []
    for normalisation, reading in panels:
        found = comparisons(summaries, normalisation, reading)
        cells = [" / ".join(str(_count(found, form, *claim)) for form in _FORMS) for claim in _CLAIMS]
        rows.append((normalisation, reading, *cells))
    header = ("normalisation", "factorisation", *(f"{r}{', p < 0.05' if sure else ''}" for r, sure in _CLAIMS))
    title = (
        f"At how many of {n} budgets DPSR has a smaller RMSE than ... (repaired, as published, repaired matrix itself)"
    )
    return Table("claims", title, header, tuple(rows))


def _count(found: Sequence[SeedComparison], method: str, reference: str, sure: bool) -> int:
    return sum(
        c.improvement_percent > 0 and (not sure or c.paired_p < 0.05)
        for c in found
        if c.method == method and c.reference == reference
    )


def printed_tests_table(tests: Sequence[printed.PrintedTest]) -> Table:
    """The arithmetic of the paper's t-tests."""
    rows = tuple(
        (t.epsilon, t.t_printed, t.p_printed, t.p_paired, t.p_unpaired, t.t_from_table, t.p_from_table) for t in tests
    )
    header = (
        "epsilon", "t, paper", "p, paper", "p of that t, 4 df", "p of that t, 8 df", "t from Table 1",
        "p from Table 1, 8 df",
    )  # fmt: skip
    return Table("printed_tests", "The paper's t-tests of DPSR against Laplace, recomputed", header, rows)


Seeds = Sequence[Sequence[Row]]
"""The rows of one table's learners, seed by seed."""


def stage_table(normalisation: str, stages: Mapping[tuple[str, str], Seeds]) -> Table:
    """What each stage does to the noise on the observed cells and to the held-out error of what is trained on it."""
    rows: list[Cells] = [
        (*names, float(np.mean([rows[0]["observed_rmse"] for rows in seeds])), *_held_out(seeds))
        for names, seeds in stages.items()
    ]
    header = ("epsilon", "output of", "RMSE on observed cells", "matrix, test RMSE", *_factorised_titles())
    title = f"Stages of DPSR (repaired), {normalisation}: error left on the observed cells, and test RMSE"
    return Table(f"stages_{normalisation}", title, header, tuple(rows))


def sensitivity_table(epsilon: float, settings: Mapping[tuple[str, str], Seeds]) -> Table:
    """One parameter at a time, the others as in the paper."""
    rows: list[Cells] = [(*names, *_held_out(seeds)) for names, seeds in settings.items()]
    header = ("parameter", "value", "matrix, test RMSE", *_factorised_titles())
    title = f"Sensitivity of DPSR (repaired), minmax, epsilon = {epsilon:g}: test RMSE"
    return Table("sensitivity", title, header, tuple(rows))


def _factorised_titles() -> list[str]:
    return [f"factorised, {choice}" for choice in TRAINING_CHOICES]


def _held_out(seeds: Seeds) -> list[float | None]:
    """Mean test RMSE of the matrix itself, where there is one, and of the factorisation under each reading."""
    errors = [{row["learner"]: row["rmse"] for row in rows} for rows in seeds]
    learners = (THE_MODEL_ITSELF, *(f"mf-{choice}" for choice in TRAINING_CHOICES))
    return [
        float(np.mean([error[learner] for error in errors])) if learner in errors[0] else None for learner in learners
    ]
