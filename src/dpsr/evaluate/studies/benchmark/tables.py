"""The benchmark in Markdown, section by section."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from dpsr.evaluate.report.breakdowns import POPULARITY, Breakdown
from dpsr.evaluate.report.comparisons import headlines, verdict_table
from dpsr.evaluate.report.files import NOTICE
from dpsr.evaluate.report.tables import (
    Cells,
    Table,
    epsilon_columns,
    failures_table,
    markdown,
    mean_cell,
    methods_by_epsilon,
    metric_title,
)
from dpsr.evaluate.report.tidy import by_unit, distinct, means, units_of


def sections(
    facts: Mapping[str, str],
    table: pa.Table,
    significance: Table,
    downstream: pa.Table,
    attacks: pa.Table,
    shown: Sequence[Breakdown] = (),
) -> dict[str, str]:
    """Every section by name, in the order of the report; empty ones are left out."""
    units, sets = units_of(table), distinct(table, "set")

    def grids(*numbers: tuple[str, int]) -> str:
        return markdown(
            protecting(unit, methods_by_epsilon(table, name, number, mine, digits=digits))
            for name in sets
            for number, digits in numbers
            for unit, mine in by_unit(units).items()
        )

    lost = failures_table([table, downstream, attacks])
    found = {
        "run": "\n".join(f"* {name}: {value}" for name, value in facts.items()) + "\n",
        "rmse": grids(("rmse", 4)),
        "significance": headlines(significance) + markdown(verdict_table(significance, table, name) for name in sets),
        "popularity": markdown(one for breakdown in shown for one in popularity_tables(breakdown, units)),
        "ranking": grids(("precision_at_10", 4), ("ndcg_at_10", 4)),
        "cost": grids(("cpu_seconds", 1), ("peak_mb", 0))
        + markdown(
            protecting(unit, methods_by_epsilon(table, name, "exact_epsilon", mine, digits=3))
            for name in sets[:1]
            for unit, mine in by_unit(units).items()
        ),
        "downstream": _splits(downstream)
        + markdown(learners_table(downstream, name) for name in distinct(downstream, "set")),
        "attacks": _splits(attacks) + markdown(attacks_table(attacks, name) for name in distinct(attacks, "set")),
        "failures": lost.markdown() if lost.rows else "Every run ended with a result.\n",
    }
    return {name: text for name, text in found.items() if text}


def popularity_tables(breakdown: Breakdown, units: Mapping[str, str]) -> list[Table]:
    """Error by item popularity, a table for each unit: methods down, training ratings of the item across."""
    if breakdown.name != POPULARITY:
        return []
    labels = [label for _, label in sorted({(point.x, point.label) for point in breakdown.points})]
    cells = {(point.method, point.label): point.mean for point in breakdown.points}
    title = f"{breakdown.set}: RMSE, {breakdown.title}, by training ratings of the item"
    found = []
    for unit, methods in by_unit(units).items():
        rows = tuple(
            (method, said, *(mean_cell(cells.get((method, label)), 4) for label in labels))
            for method, said in methods.items()
            if any((method, label) in cells for label in labels)
        )
        one = Table(f"popularity_{breakdown.set}", title, ("method", "protects", *labels), rows)
        found.append(protecting(unit, one))
    return found


def protecting(unit: str, table: Table) -> Table:
    """A table of methods of one unit, which its title names: an epsilon of another is another promise."""
    return replace(table, title=f"{table.title}; ε for one {unit}" if unit != "none" else table.title)


def document_of(parts: Mapping[str, str]) -> str:
    """The whole report."""
    titles = {"rmse": "RMSE", "run": "The run"}
    body = "\n".join(f"## {titles.get(name, name.capitalize())}\n\n{text}" for name, text in parts.items())
    return f"# Benchmark\n\n{NOTICE}\n\n{body}"


def learners_table(table: pa.Table, name: str) -> Table:
    """One row per learner and input, in the measure the learner is made for."""
    mine = table.filter(pc.equal(table["set"], name))
    epsilons = sorted(distinct(mine, "epsilon"))
    rows: list[Cells] = []
    for learner in distinct(mine, "learner"):
        part = mine.filter(pc.equal(mine["learner"], learner))
        number = "rmse" if part["rmse"].null_count < part.num_rows else "ndcg_at_10"
        found = means(part, ("input", "epsilon"), number)
        for source in dict.fromkeys(key[0] for key in found):
            cells = [found.get((source, epsilon), found.get((source, None))) for epsilon in epsilons]
            rows.append((learner, source, metric_title(number), *(mean_cell(cell, 4) for cell in cells)))
    title = f"{name}: learners trained on released ratings, tested on raw ones"
    header = ("learner", "trained on", "measure", *epsilon_columns(epsilons))
    return Table(f"downstream_{name}", title, header, tuple(rows))


def attacks_table(table: pa.Table, name: str) -> Table:
    """One row per attack, method and epsilon: what was reached, and the most that epsilon allows."""
    mine = table.filter(pc.equal(table["set"], name))
    numbers = ("advantage", "bound", "tpr_at_5", "bound_at_5", "tpr_at_1", "bound_at_1", "epsilon_low")
    found = {number: means(mine, ("attack", "method", "epsilon"), number) for number in numbers}
    rows = tuple(
        (*key[:2], "" if key[2] is None else f"{key[2]:g}", *(mean_cell(found[n].get(key), 3) for n in numbers))
        for key in sorted(found["advantage"], key=lambda key: (key[0], key[1], key[2] or 0.0))
    )
    header = (
        "attack", "on", "ε", "advantage", "ε allows", "TPR at FPR 5 %", "ε allows", "TPR at FPR 1 %", "ε allows",
        "ε shown",
    )  # fmt: skip
    return Table(f"attacks_{name}", f"{name}: what attackers reach, and what ε allows", header, rows)


def _splits(table: pa.Table) -> str:
    """How many splits stand behind a table of learners or attacks; it may be fewer than behind the methods."""
    n = len(set(table["seed"].to_pylist()))
    return f"Splits: {n}.\n\n" if n else ""
