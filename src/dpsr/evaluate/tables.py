"""Results as tables: a header and rows, rendered as Markdown or CSV. No arithmetic beyond means and spreads."""

from __future__ import annotations

import csv
import io
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from dpsr.evaluate import printed
from dpsr.evaluate.experiment import NO_FACTORISATION, Result
from dpsr.evaluate.significance import Comparison, PrintedTest, compare

Cell = str | float | int | None
Key = tuple[str, str, float | None, str]

FACTORISED = ("No Privacy", "Laplace", "Gaussian", "DPSR", "DPSR as published")
UNFACTORISED = ("DPSR matrix", "DPSR as published matrix", "Laplace, ALS")
YARDSTICKS = ("Constant", "Bias", "ALS")
REFERENCES = ("Laplace", "Gaussian", "No Privacy", "Constant", "Laplace, ALS")
_FORMS = ("DPSR", "DPSR as published", "DPSR matrix")


@dataclass(frozen=True)
class Table:
    """A named table. Numbers keep their full precision in CSV and get `digits` in Markdown.

    Columns whose title starts with "p" hold p-values, which Markdown shows with four digits.
    """

    name: str
    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    digits: int = 3

    def markdown(self) -> str:
        """A pipe table under its title."""
        lines = [f"**{self.title}**", "", _pipe(self.header), _pipe(["---"] * len(self.header))]
        return "\n".join([*lines, *(_pipe(self._shown(row)) for row in self.rows)]) + "\n"

    def csv(self) -> str:
        """Comma-separated, with a header line."""
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\n")
        writer.writerow(self.header)
        writer.writerows(self.rows)
        return buffer.getvalue()

    def _shown(self, row: tuple[Cell, ...]) -> list[str]:
        return [
            _cell(cell, 4 if title.startswith("p") else self.digits)
            for title, cell in zip(self.header, row, strict=True)
        ]


def _cell(cell: Cell, digits: int) -> str:
    if cell is None or cell != cell:
        return ""
    if not isinstance(cell, float):
        return str(cell)
    least = 10.0**-digits
    return f"< {least:.{digits}f}" if digits == 4 and cell < least else f"{cell:.{digits}f}"


@dataclass(frozen=True)
class Summary:
    """Mean and sample standard deviation over seeds of every metric, and the RMSE seed by seed."""

    mean: dict[str, float]
    deviation: dict[str, float]
    rmse: list[float]


def summarise(results: Iterable[Result]) -> dict[Key, Summary]:
    """One summary per normalisation, reading, epsilon and method."""
    groups: dict[Key, list[Result]] = defaultdict(list)
    for result in results:
        groups[result.normalisation, result.reading, result.epsilon, result.method].append(result)
    return {key: _summary(sorted(group, key=lambda result: result.seed)) for key, group in groups.items()}


def _summary(group: list[Result]) -> Summary:
    metrics = (*printed.METRICS, "chance_precision", "chance_ndcg")
    values = {metric: np.array([result.scores.as_dict()[metric] for result in group]) for metric in metrics}
    spread = {m: float(v.std(ddof=1)) if len(v) > 1 else float("nan") for m, v in values.items()}
    return Summary({m: float(v.mean()) for m, v in values.items()}, spread, values["rmse"].tolist())


def table_1(summaries: dict[Key, Summary], normalisation: str, reading: str) -> Table:
    """Every method at every budget, the paper's figures beside ours; yardsticks last."""
    rows = [
        (_budget(epsilon), method, *_beside(summaries[key], epsilon, method))
        for epsilon, method, key in _panel(summaries, normalisation, reading)
    ]
    chance = summaries[normalisation, NO_FACTORISATION, None, "Constant"].mean
    ranking = (_number(chance["chance_precision"]), "", _number(chance["chance_ndcg"]), "")
    rows.append(("", "Random order", "", "", "", "", *ranking))
    titles = [printed.METRIC_TITLES[metric] for metric in printed.METRICS]
    header = ("epsilon", "method", *(cell for title in titles for cell in (title, f"{title}, paper")))
    title = f"Table 1, {normalisation}, factorisation {reading} (mean ± standard deviation over seeds; not private)"
    return Table(f"table1_{normalisation}_{reading}", title, header, tuple(rows))


def _panel(summaries: dict[Key, Summary], normalisation: str, reading: str) -> list[tuple[float | None, str, Key]]:
    """The rows of a panel in order: budgets ascending, then what needs no budget."""
    order = (*FACTORISED, *UNFACTORISED, *YARDSTICKS)
    keys = [key for key in summaries if key[0] == normalisation and key[1] in (reading, NO_FACTORISATION)]
    keys.sort(key=lambda key: (key[2] is None, key[2] or 0.0, order.index(key[3])))
    return [(key[2], key[3], key) for key in keys]


def _beside(summary: Summary, epsilon: float | None, method: str) -> list[str]:
    theirs, cells = printed.TABLE_1.get((epsilon, method)), []
    for metric in printed.METRICS:
        cells.append(f"{_number(summary.mean[metric])} ± {_number(summary.deviation[metric])}")
        cells.append("" if theirs is None else f"{theirs[metric].mean:.3f} ± {theirs[metric].deviation:.3f}")
    return cells


def _number(value: float) -> str:
    return f"{value:.3f}"


def comparisons(summaries: dict[Key, Summary], normalisation: str, reading: str) -> list[Comparison]:
    """The three forms of DPSR against each reference at every budget, on RMSE."""

    def errors(method: str, epsilon: float) -> list[float]:
        home = reading if method in FACTORISED else NO_FACTORISATION
        budget = None if method in ("No Privacy", *YARDSTICKS) else epsilon
        return summaries[normalisation, home, budget, method].rmse

    return [
        compare(method, reference, epsilon, errors(method, epsilon), errors(reference, epsilon))
        for method in _FORMS
        for reference in REFERENCES
        for epsilon in _budgets(summaries)
    ]


def table_2(summaries: dict[Key, Summary], normalisation: str, reading: str) -> Table:
    """Relative RMSE improvement of DPSR with its tests; for the repaired and the published Stage 1."""
    rows = [
        (c.epsilon, c.method, c.reference, c.improvement_percent, _paper_improvement(c), c.paired_t, c.paired_p)
        for c in comparisons(summaries, normalisation, reading)
    ]
    header = ("epsilon", "method", "against", "improvement %", "improvement %, paper", "t, paired", "p")
    title = f"Table 2, {normalisation}, factorisation {reading} (positive: DPSR has the smaller RMSE)"
    return Table(f"table2_{normalisation}_{reading}", title, header, tuple(rows), digits=2)


def _paper_improvement(comparison: Comparison) -> float | None:
    columns = ("Laplace", "Gaussian")
    row = printed.TABLE_2.get(comparison.epsilon or 0.0)
    if row is None or comparison.method != "DPSR" or comparison.reference not in columns:
        return None
    return row[columns.index(comparison.reference)]


def claims(summaries: dict[Key, Summary], panels: Sequence[tuple[str, str]]) -> Table:
    """At how many budgets each claim of the paper comes true, panel by panel, for the three forms of DPSR."""
    n = len(_budgets(summaries))
    rows: list[tuple[Cell, ...]] = []
    for normalisation, reading in panels:
        found = comparisons(summaries, normalisation, reading)
        cells = [" / ".join(str(_count(found, form, *claim)) for form in _FORMS) for claim in _CLAIMS]
        rows.append((normalisation, reading, *cells))
    header = ("normalisation", "factorisation", *(f"{r}{', p < 0.05' if sure else ''}" for r, sure in _CLAIMS))
    title = (
        f"At how many of {n} budgets DPSR has a smaller RMSE than ... (repaired, as published, repaired matrix itself)"
    )
    return Table("claims", title, header, tuple(rows))


_CLAIMS = (("Laplace", False), ("Laplace", True), *((reference, False) for reference in REFERENCES[1:]))


def _count(found: list[Comparison], method: str, reference: str, sure: bool) -> int:
    return sum(
        c.improvement_percent > 0 and (not sure or c.paired_p < 0.05)
        for c in found
        if c.method == method and c.reference == reference
    )


def printed_tests(tests: Sequence[PrintedTest]) -> Table:
    """The arithmetic of the paper's t-tests."""
    rows = tuple(
        (t.epsilon, t.t_printed, t.p_printed, t.p_paired, t.p_unpaired, t.t_from_table, t.p_from_table) for t in tests
    )
    header = (
        "epsilon",
        "t, paper",
        "p, paper",
        "p of that t, 4 df",
        "p of that t, 8 df",
        "t from Table 1",
        "p from Table 1, 8 df",
    )
    return Table("printed_tests", "The paper's t-tests of DPSR against Laplace, recomputed", header, rows)


def all_results(results: Sequence[Result]) -> Table:
    """Every score of every run, unrounded: what the other tables are made of."""
    names = tuple(results[0].scores.as_dict())
    rows = tuple(
        (r.normalisation, r.reading, r.method, r.epsilon, r.seed, *(r.scores.as_dict()[name] for name in names))
        for r in results
    )
    header = ("normalisation", "reading", "method", "epsilon", "seed", *names)
    return Table("results", "All results", header, rows)


def _budgets(summaries: dict[Key, Summary]) -> list[float]:
    return sorted({key[2] for key in summaries if key[2] is not None})


def _budget(epsilon: float | None) -> str:
    return "none" if epsilon is None else f"{epsilon:g}"


def _pipe(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"
