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
from typing import Any

import pyarrow as pa

from dpsr.errors import ParameterError
from dpsr.evaluate.benchmark.methods import OURS
from dpsr.evaluate.benchmark.pictures import SAME_UNIT
from dpsr.evaluate.benchmark.table import NOTICE, means
from dpsr.evaluate.peers.base import JOINT
from dpsr.evaluate.tables import Cell, Table

Row = tuple[Cell, ...]

JOINTLY = "joint DP"


def sections(
    facts: Mapping[str, str], table: pa.Table, significance: Table, downstream: pa.Table, attacks: pa.Table
) -> dict[str, str]:
    """Every section by name, in the order of the report; empty ones are left out."""
    units, sets = units_of(table), _distinct(table, "set")
    errors = [grid(table, name, "rmse", units, digits=4) for name in sets]
    lists = [
        grid(table, name, number, units, digits=4) for name in sets for number in ("precision_at_10", "ndcg_at_10")
    ]
    costs = [grid(table, name, number, units, digits=1) for name in sets for number in ("cpu_seconds", "peak_mb")]
    exact = [grid(table, name, "exact_epsilon", units, digits=3) for name in sets[:1]]
    found = {
        "run": "\n".join(f"* {name}: {value}" for name, value in facts.items()) + "\n",
        "rmse": _join(errors),
        "significance": _headlines(significance) + _join(_verdicts(significance, table, name) for name in sets),
        "ranking": _join(lists),
        "cost": _join([*costs, *exact]),
        "downstream": _join(_downstream(downstream, name) for name in _distinct(downstream, "set")),
        "attacks": _join(_attacks(attacks, name) for name in _distinct(attacks, "set")),
        "failures": _failures([table, downstream, attacks]),
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
    for name, content in parts.items():
        mark = re.compile(f"(<!-- generated: {name} -->\n).*?(<!-- end: {name} -->)", re.DOTALL)
        text = mark.sub(rf"\g<1>\n{_escaped(content)}\n\g<2>", text)
    if "<!-- generated: " not in text:
        raise ParameterError(
            f"{document} must have a section to fill, found none. Mark one with the lines <!-- generated: rmse --> and "
            "<!-- end: rmse -->."
        )
    document.write_text(text, encoding="utf-8")


def _escaped(text: str) -> str:
    """Backslashes mean something in a replacement."""
    return text.replace("\\", "\\\\")


def units_of(table: pa.Table) -> dict[str, str]:
    """The unit of protection of every method, as its own receipt says it; joint DP is another promise and says so."""
    rows = table.select(["method", "unit", "note"]).to_pylist()
    pairs = {
        row["method"]: row["unit"] + (f", {JOINTLY}" if JOINT in (row["note"] or "") else "")
        for row in rows
        if row["unit"]
    }
    return dict(sorted(pairs.items(), key=lambda pair: (pair[0] != OURS, _unit_order(pair[1]))))


def _unit_order(unit: str) -> tuple[int, str]:
    order = (SAME_UNIT, "rating (add/remove)", "user", "none")
    return next((place for place, name in enumerate(order) if unit.startswith(name)), len(order)), unit


def grid(table: pa.Table, name: str, number: str, units: Mapping[str, str], *, digits: int) -> Table:
    """One row per method, one column per epsilon: mean ± standard deviation over seeds. Best private figure in bold."""
    found = {
        key[1:]: value for key, value in means(table, ("set", "method", "epsilon"), number).items() if key[0] == name
    }
    epsilons = sorted({key[1] for key in found if key[1] is not None})
    best = min if number in ("rmse", "mae") else max if number.endswith("at_10") else None
    tops = {
        e: best(v[0] for (m, at), v in found.items() if at == e and _shares_unit(units.get(m))) if best else None
        for e in epsilons
        if any(at == e and _shares_unit(units.get(m)) for m, at in found)
    }
    rows: list[Row] = []
    for method, unit in units.items():
        at_all = found.get((method, None))
        cells = [found.get((method, e), at_all) for e in epsilons]
        if any(cells):
            shown = [
                _mean(c, digits, c is not None and c is not at_all and c[0] == tops.get(e))
                for c, e in zip(cells, epsilons, strict=True)
            ]
            rows.append((method, unit, *shown))
    header = ("method", "protects", *(f"ε = {e:g}" for e in epsilons))
    return Table(f"{number}_{name}", f"{name}: {number.replace('_', ' ')}", header, tuple(rows))


def _is_release_of_ratings(unit: str) -> bool:
    """Protects a rating, and in a release that anyone may read."""
    return unit.startswith("rating") and JOINTLY not in unit


def _shares_unit(unit: str | None) -> bool:
    return unit == SAME_UNIT


def _mean(cell: tuple[float, float, int] | None, digits: int, best: bool) -> str:
    if cell is None:
        return ""
    text = f"{cell[0]:.{digits}f}" + ("" if cell[1] != cell[1] else f" ± {cell[1]:.{digits}f}")
    return f"**{text}**" if best else text


def _headlines(significance: Table) -> str:
    """For each set: is ours ahead of everyone who protects the same, everywhere? If not, where not."""
    lines = []
    for name in dict.fromkeys(str(row[0]) for row in significance.rows):
        mine = [row for row in significance.rows if row[0] == name and _is_release_of_ratings(str(row[2]))]
        short = [f"{row[1]} at ε = {row[3]:g} ({row[-1]})" for row in mine if row[-1] != "ahead"]
        total = f"{len(mine) - len(short)} of {len(mine)} comparisons with releases that protect a rating"
        lines.append(
            f"* **{name}**: {OURS} is ahead in {total} (p < 0.05 after Holm)"
            + (f"; not of {'; '.join(short)}" if short else "")
            + "."
        )
    return "\n".join(lines) + "\n\n" if lines else ""


def _verdicts(significance: Table, table: pa.Table, name: str) -> Table:
    errors = means(table, ("set", "method", "epsilon"), "rmse")
    mine = [row for row in significance.rows if row[0] == name]
    epsilons = sorted({float(row[3]) for row in mine if isinstance(row[3], float)})
    cells = {(row[1], row[3]): _verdict(errors, name, row) for row in mine}
    peers = dict.fromkeys((str(row[1]), str(row[2])) for row in sorted(mine, key=lambda row: _unit_order(str(row[2]))))
    rows = tuple((peer, unit, *(cells.get((peer, e), "") for e in epsilons)) for peer, unit in peers)
    title = f"{name}: RMSE of {OURS} below each method's, and whether that is sure"
    return Table(f"verdicts_{name}", title, ("against", "protects", *(f"ε = {e:g}" for e in epsilons)), rows)


def _verdict(errors: Mapping[tuple[Any, ...], tuple[float, float, int]], name: str, row: Row) -> str:
    ours, theirs = errors[name, OURS, row[3]], errors.get((name, row[1], row[3])) or errors[name, row[1], None]
    p = row[7] if isinstance(row[7], float) else float("nan")
    sure = "" if p != p else ", p < 0.0001" if p < 1e-4 else f", p = {p:.4f}"
    return f"{100 * (1 - ours[0] / theirs[0]):+.1f} % {row[-1]}{sure}"


def _downstream(table: pa.Table, name: str) -> Table:
    """Rows are learner and input; a learner has one measure, so one number a cell."""
    rows: list[Row] = []
    mine = table.filter(pa.compute.equal(table["set"], name))
    epsilons = sorted({row["epsilon"] for row in mine.to_pylist() if row["epsilon"] is not None})
    for learner in _distinct(mine, "learner"):
        part = mine.filter(pa.compute.equal(mine["learner"], learner))
        for number in ("rmse", "ndcg_at_10"):
            found = means(part, ("input", "epsilon"), number)
            for source in dict.fromkeys(key[0] for key in found):
                cells = [found.get((source, e), found.get((source, None))) for e in epsilons]
                rows.append((learner, source, number.replace("_", " "), *(_mean(c, 4, False) for c in cells)))
    header = ("learner", "trained on", "measure", *(f"ε = {e:g}" for e in epsilons))
    return Table(
        f"downstream_{name}", f"{name}: learners trained on released ratings, tested on raw ones", header, tuple(rows)
    )


def _attacks(table: pa.Table, name: str) -> Table:
    mine = table.filter(pa.compute.equal(table["set"], name))
    by = ("attack", "method", "epsilon")
    numbers = ("advantage", "bound", "tpr_at_5", "bound_at_5", "tpr_at_1", "bound_at_1", "epsilon_low")
    found = {number: means(mine, by, number) for number in numbers}
    rows = tuple(
        (
            key[0],
            key[1],
            "" if key[2] is None else f"{key[2]:g}",
            *(_mean(found[n].get(key), 3, False) for n in numbers),
        )
        for key in found["advantage"]
    )
    header = (
        "attack",
        "on",
        "ε",
        "advantage",
        "most ε allows",
        "TPR at FPR 5 %",
        "most",
        "TPR at FPR 1 %",
        "most",
        "ε shown",
    )
    return Table(f"attacks_{name}", f"{name}: what attackers reach, and what ε allows", header, rows)


def _failures(tables: Iterable[pa.Table]) -> str:
    rows: list[Row] = []
    for table in tables:
        what = "method" if "method" in table.column_names else "input"
        for row in table.to_pylist():
            if row["error"]:
                rows.append((row["set"], row[what], row["epsilon"] or "", row["seed"], row["error"]))
    if not rows:
        return "Every run ended with a result.\n"
    return Table("failures", "Runs without a result", ("set", "what", "epsilon", "seed", "why"), tuple(rows)).markdown()


def _distinct(table: pa.Table, column: str) -> list[str]:
    return [name for name in dict.fromkeys(table[column].to_pylist()) if name is not None]


def _join(tables: Iterable[Table]) -> str:
    return "\n".join(table.markdown() for table in tables if table.rows)
