"""Tables to read: a header and rows, rendered as Markdown or CSV, and the cells they share."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from dpsr.evaluate.report.tidy import Averages, Mean, distinct, is_ours

Cell = str | float | int | None
Cells = tuple[Cell, ...]


@dataclass(frozen=True)
class Table:
    """A named table. Numbers keep their full precision in CSV and get `digits` in Markdown.

    Columns whose title starts with "p" hold p-values, which Markdown shows with four digits.
    """

    name: str
    title: str
    header: tuple[str, ...]
    rows: tuple[Cells, ...]
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

    def _shown(self, row: Cells) -> list[str]:
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


def _pipe(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def markdown(tables: Iterable[Table]) -> str:
    """Tables one after the other; empty ones are left out."""
    return "\n".join(table.markdown() for table in tables if table.rows)


def mean_cell(mean: Mean | None, digits: int, *, bold: bool = False) -> str:
    """Mean ± standard deviation; the mean alone for a single seed; nothing where there is none."""
    if mean is None:
        return ""
    spread = "" if mean.deviation != mean.deviation else f" ± {mean.deviation:.{digits}f}"
    text = f"{mean.value:.{digits}f}{spread}"
    return f"**{text}**" if bold else text


def epsilon_columns(epsilons: Sequence[float]) -> tuple[str, ...]:
    """Titles of columns."""
    return tuple(f"ε = {epsilon:g}" for epsilon in epsilons)


def metric_title(number: str) -> str:
    """A metric as a reader knows it."""
    return {"rmse": "RMSE", "peak_mb": "peak memory, MB"}.get(number, number.replace("_", " "))


_BEST = {"rmse": min, "mae": min, "precision_at_10": max, "ndcg_at_10": max}
"""Which of several figures is the best; other figures are no contest."""


def methods_by_epsilon(table: pa.Table, name: str, number: str, units: Mapping[str, str], *, digits: int) -> Table:
    """One row per method with its unit, one column per epsilon.

    Bold: best among releases of values if there are any, else among methods with a promise, which then have one unit.
    Methods without a budget stand in every column.
    """
    averages = Averages(table)
    mine = table.filter(pa.compute.equal(table["set"], name))
    epsilons = sorted(distinct(mine.filter(mine[number].is_valid()), "epsilon"))
    rivals = [method for method, unit in units.items() if is_ours(unit)]
    rivals = rivals or [method for method, unit in units.items() if unit != "none"]
    best = {epsilon: _best(averages, name, number, rivals, epsilon) for epsilon in epsilons}
    rows: list[Cells] = []
    for method, unit in units.items():
        found = [averages.at(name, method, epsilon, number) for epsilon in epsilons]
        if any(found):
            cells = [
                mean_cell(mean, digits, bold=method in rivals and mean is not None and mean.value == best[epsilon])
                for epsilon, mean in zip(epsilons, found, strict=True)
            ]
            rows.append((method, unit, *cells))
    header = ("method", "protects", *epsilon_columns(epsilons))
    return Table(f"{number}_{name}", f"{name}: {metric_title(number)}", header, tuple(rows))


def _best(averages: Averages, name: str, number: str, rivals: Sequence[str], epsilon: float) -> float | None:
    """The best figure among methods whose promises can be compared."""
    found = [averages.at(name, method, epsilon, number) for method in rivals]
    values = [mean.value for mean in found if mean is not None]
    return _BEST[number](values) if values and number in _BEST else None


def failures_table(tables: Iterable[pa.Table]) -> Table:
    """Runs without a result, and why."""
    rows: list[Cells] = []
    for table in tables:
        what = "method" if "method" in table.column_names else "input"
        rows += [
            (row["set"], row[what], row["epsilon"], row["seed"], row["error"])
            for row in table.to_pylist()
            if row["error"]
        ]
    return Table("failures", "Runs without a result", ("set", "what", "epsilon", "seed", "why"), tuple(rows))
