"""The benchmark in Markdown, section by section, and documents whose marked sections are refilled.

A document keeps its own prose and has, for each section it wants, the two lines

    <!-- generated: NAME -->
    <!-- end: NAME -->

Whatever stands between them is replaced by what the run found.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

import pyarrow as pa

from dpsr.errors import ParameterError
from dpsr.evaluate.benchmark.methods import OURS
from dpsr.evaluate.benchmark.summaries import (
    attacked,
    distinct,
    failures,
    grid,
    is_release_of_ratings,
    learners,
    units_of,
    verdicts,
)
from dpsr.evaluate.benchmark.table import NOTICE
from dpsr.evaluate.tables import Table


def sections(
    facts: Mapping[str, str], table: pa.Table, significance: Table, downstream: pa.Table, attacks: pa.Table
) -> dict[str, str]:
    """Every section by name, in the order of the report; empty ones are left out."""
    units, sets = units_of(table), distinct(table, "set")

    def grids(*numbers: tuple[str, int]) -> str:
        return _join(grid(table, name, number, units, digits=d) for name in sets for number, d in numbers)

    lost = failures([table, downstream, attacks])
    found = {
        "run": "\n".join(f"* {name}: {value}" for name, value in facts.items()) + "\n",
        "rmse": grids(("rmse", 4)),
        "significance": headlines(significance) + _join(verdicts(significance, table, name) for name in sets),
        "ranking": grids(("precision_at_10", 4), ("ndcg_at_10", 4)),
        "cost": grids(("cpu_seconds", 1), ("peak_mb", 0))
        + _join(grid(table, name, "exact_epsilon", units, digits=3) for name in sets[:1]),
        "downstream": _join(learners(downstream, name) for name in distinct(downstream, "set")),
        "attacks": _join(attacked(attacks, name) for name in distinct(attacks, "set")),
        "failures": lost.markdown() if lost.rows else "Every run ended with a result.\n",
    }
    return {name: text for name, text in found.items() if text}


def markdown(parts: Mapping[str, str]) -> str:
    """The whole report."""
    titles = {"rmse": "RMSE", "run": "The run"}
    body = "\n".join(f"## {titles.get(name, name.capitalize())}\n\n{text}" for name, text in parts.items())
    return f"# Benchmark\n\n{NOTICE}\n\n{body}"


def fill(document: Path, parts: Mapping[str, str]) -> None:
    """Put the sections between their marks; a document without any mark is refused, sections without marks are not."""
    text = document.read_text("utf-8")
    if "<!-- generated: " not in text:
        raise ParameterError(
            f"{document} must have a section to fill, found none. Mark one with the lines <!-- generated: rmse --> and "
            "<!-- end: rmse -->."
        )
    for name, content in parts.items():
        mark = re.compile(f"(<!-- generated: {name} -->\n).*?(<!-- end: {name} -->)", re.DOTALL)
        text = mark.sub(rf"\g<1>\n{_escaped(content)}\n\g<2>", text)
    document.write_text(text, encoding="utf-8")


def _escaped(text: str) -> str:
    """Backslashes mean something in a replacement."""
    return text.replace("\\", "\\\\")


def headlines(significance: Table) -> str:
    """For each set: is ours ahead of every release that protects a rating, everywhere? If not, where not."""
    lines = []
    for name in dict.fromkeys(str(row[0]) for row in significance.rows):
        mine = [row for row in significance.rows if row[0] == name and is_release_of_ratings(str(row[2]))]
        short = [f"{row[1]} at ε = {row[3]:g} ({row[-1]})" for row in mine if row[-1] != "ahead"]
        total = f"{len(mine) - len(short)} of {len(mine)} comparisons with releases that protect a rating"
        but = f"; not of {'; '.join(short)}" if short else ""
        lines.append(f"* **{name}**: {OURS} is ahead in {total} (p < 0.05 after Holm){but}.")
    return "\n".join(lines) + "\n\n" if lines else ""


def _join(tables: Iterable[Table]) -> str:
    return "\n".join(table.markdown() for table in tables if table.rows)
