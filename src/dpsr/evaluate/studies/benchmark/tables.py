"""The benchmark in Markdown, section by section."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from dpsr.evaluate.report.breakdowns import POPULARITY, Breakdown
from dpsr.evaluate.report.comparisons import headlines, of_unit, verdict_table
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
from dpsr.evaluate.studies.study import listed_facts


def sections(
    facts: Mapping[str, str],
    table: pa.Table,
    significance: Table,
    downstream: pa.Table,
    attacks: pa.Table,
    shown: Sequence[Breakdown] = (),
) -> dict[str, str]:
    """Every section by name, in the order of the report; empty ones are left out.

    Sections about methods are there twice: whole, and unit by unit under `NAME-value`, `NAME-rating` and `NAME-user`,
    so that a document can be refilled with the methods of one unit and keep the others.
    """
    by = {unit: _unit_sections(facts, table, significance, shown, unit, of) for unit, of in _groups(table).items()}
    lost = failures_table([table, downstream, attacks])
    found = {name: "\n".join(text for parts in by.values() if (text := parts[name])) for name in _BY_UNIT}
    found |= {"run": listed_facts(facts)} | {
        "downstream": _splits(downstream)
        + markdown(learners_table(downstream, name) for name in distinct(downstream, "set")),
        "attacks": _splits(attacks) + markdown(attacks_table(attacks, name) for name in distinct(attacks, "set")),
        "failures": lost.markdown() if lost.rows else "Every run ended with a result.\n",
    }
    ordered = {name: found[name] for name in ("run", *_BY_UNIT, "downstream", "attacks", "failures")}
    parts = {f"{name}-{WORDS[unit]}": text for unit, own in by.items() for name, text in own.items()}
    return {name: text for name, text in (ordered | parts).items() if text}


WORDS = {"rating value": "value", "rating (add/remove)": "rating", "user": "user", "none": "none"}
"""Units as commands call them."""

_BY_UNIT = ("rmse", "significance", "popularity", "ranking", "cost")


def _groups(table: pa.Table) -> dict[str, dict[str, str]]:
    return by_unit(units_of(table))


def _unit_sections(
    facts: Mapping[str, str],
    table: pa.Table,
    significance: Table,
    shown: Sequence[Breakdown],
    unit: str,
    methods: Mapping[str, str],
) -> dict[str, str]:
    """The sections about methods of one unit; models without privacy stand beside each unit's."""
    sets, compared = distinct(table, "set"), of_unit(significance, unit)

    def grids(names: Sequence[str], *numbers: tuple[str, int]) -> str:
        return markdown(
            protecting(unit, methods_by_epsilon(table, name, number, methods, digits=digits))
            for name in names
            for number, digits in numbers
        )

    verdicts = markdown(verdict_table(compared, table, name) for name in sets)
    return {
        "run": listed_facts(facts),
        "rmse": grids(sets, ("rmse", 4)),
        "significance": headlines(compared) + verdicts,
        "popularity": markdown(popularity_table(one, methods, unit) for one in shown if one.name == POPULARITY),
        "ranking": grids(sets, ("precision_at_10", 4), ("ndcg_at_10", 4)),
        "cost": grids(sets, ("cpu_seconds", 1), ("peak_mb", 0)) + "\n" + grids(sets[:1], ("exact_epsilon", 3)),
    }


def popularity_table(breakdown: Breakdown, methods: Mapping[str, str], unit: str) -> Table:
    """Error by item popularity: methods of one unit down, training ratings of the item across."""
    labels = [label for _, label in sorted({(point.x, point.label) for point in breakdown.points})]
    cells = {(point.method, point.label): point.mean for point in breakdown.points}
    rows = tuple(
        (method, said, *(mean_cell(cells.get((method, label)), 4) for label in labels))
        for method, said in methods.items()
        if any((method, label) in cells for label in labels)
    )
    title = f"{breakdown.set}: RMSE by training ratings of the item, {breakdown.title.rpartition(' at ')[2]}"
    return protecting(unit, Table(f"popularity_{breakdown.set}", title, ("method", "protects", *labels), rows))


def protecting(unit: str, table: Table) -> Table:
    """A table of methods of one unit, which its title names: an epsilon of another is another promise."""
    return replace(table, title=f"{table.title}; ε for one {unit}" if unit != "none" else table.title)


def document_of(parts: Mapping[str, str]) -> str:
    """The whole report."""
    titles = {"rmse": "RMSE", "run": "The run"}
    whole = {name: text for name, text in parts.items() if name.rpartition("-")[2] not in WORDS.values()}
    body = "\n".join(f"## {titles.get(name, name.capitalize())}\n\n{text}" for name, text in whole.items())
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
