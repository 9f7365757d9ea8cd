"""The tidy tables as tables for reading: one row per method with its unit, one column per epsilon."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from dpsr.evaluate.benchmark.methods import OURS
from dpsr.evaluate.benchmark.pictures import SAME_UNIT
from dpsr.evaluate.benchmark.table import means
from dpsr.evaluate.peers.base import JOINT
from dpsr.evaluate.tables import Cell, Table

Row = tuple[Cell, ...]
Figure = tuple[float, float, int]
"""Mean, standard deviation and number of seeds."""

JOINTLY = "joint DP"
_BEST = {"rmse": min, "mae": min, "precision_at_10": max, "ndcg_at_10": max}


def units_of(table: pa.Table) -> dict[str, str]:
    """The unit of protection of every method, as its own receipt says it; joint DP is another promise and says so."""
    rows = table.select(["method", "unit", "note"]).to_pylist()
    pairs = {
        row["method"]: row["unit"] + (f", {JOINTLY}" if JOINT in (row["note"] or "") else "")
        for row in rows
        if row["unit"]
    }
    return dict(sorted(pairs.items(), key=lambda pair: (pair[0] != OURS, unit_order(pair[1]))))


def unit_order(unit: str) -> tuple[int, str]:
    """Ratings first, users then, no protection last."""
    order = (SAME_UNIT, "rating (add/remove)", "user", "none")
    return next((place for place, name in enumerate(order) if unit.startswith(name)), len(order)), unit


def is_release_of_ratings(unit: str) -> bool:
    """Protects a rating, and in a release that anyone may read."""
    return unit.startswith("rating") and JOINTLY not in unit


def grid(table: pa.Table, name: str, number: str, units: Mapping[str, str], *, digits: int) -> Table:
    """Mean ± standard deviation over seeds. Bold: best among methods with our unit. Levels repeat in every column."""
    groups = means(table, ("set", "method", "epsilon"), number)
    found: dict[tuple[str, float | None], Figure] = {key[1:]: v for key, v in groups.items() if key[0] == name}
    epsilons = sorted({key[1] for key in found if key[1] is not None})
    tops = _tops(found, number, units)
    rows: list[Row] = []
    for method, unit in units.items():
        level = found.get((method, None))
        figures = [found.get((method, epsilon), level) for epsilon in epsilons]
        if any(figures):
            bold = [(method, epsilon) in tops for epsilon in epsilons]
            rows.append((method, unit, *(shown(f, digits, b) for f, b in zip(figures, bold, strict=True))))
    return Table(
        f"{number}_{name}", f"{name}: {_words(number)}", ("method", "protects", *_columns(epsilons)), tuple(rows)
    )


def _tops(found: Mapping[tuple[str, float | None], Figure], number: str, units: Mapping[str, str]) -> set[Any]:
    """The best methods of every column; none for figures that are no contest."""
    if number not in _BEST:
        return set()
    tops = set()
    for epsilon in {at for _, at in found if at is not None}:
        rivals = {key: v[0] for key, v in found.items() if key[1] == epsilon and units.get(key[0]) == SAME_UNIT}
        if rivals:
            best = _BEST[number](rivals.values())
            tops |= {key for key, value in rivals.items() if value == best}
    return tops


def shown(figure: Figure | None, digits: int, bold: bool = False) -> str:
    """A figure as text; nothing where there is none."""
    if figure is None:
        return ""
    text = f"{figure[0]:.{digits}f}" + ("" if figure[1] != figure[1] else f" ± {figure[1]:.{digits}f}")
    return f"**{text}**" if bold else text


def verdicts(significance: Table, table: pa.Table, name: str) -> Table:
    """How far ours is below each method at each epsilon, and whether that is sure."""
    errors = means(table, ("set", "method", "epsilon"), "rmse")
    mine = [row for row in significance.rows if row[0] == name]
    epsilons = sorted({float(row[3]) for row in mine if isinstance(row[3], float)})
    cells = {(row[1], row[3]): _verdict(errors, name, row) for row in mine}
    peers = dict.fromkeys((str(row[1]), str(row[2])) for row in sorted(mine, key=lambda row: unit_order(str(row[2]))))
    rows = tuple((peer, unit, *(cells.get((peer, e), "") for e in epsilons)) for peer, unit in peers)
    title = f"{name}: RMSE of {OURS} below each method's, and whether that is sure"
    return Table(f"verdicts_{name}", title, ("against", "protects", *_columns(epsilons)), rows)


def _verdict(errors: Mapping[tuple[Any, ...], Figure], name: str, row: Row) -> str:
    ours, theirs = errors[name, OURS, row[3]], errors.get((name, row[1], row[3])) or errors[name, row[1], None]
    p = row[7] if isinstance(row[7], float) else float("nan")
    sure = "" if p != p else ", p < 0.0001" if p < 1e-4 else f", p = {p:.4f}"
    return f"{100 * (1 - ours[0] / theirs[0]):+.1f} % {row[-1]}{sure}"


def learners(table: pa.Table, name: str) -> Table:
    """One row per learner and input, in the measure the learner is made for."""
    mine = table.filter(pc.equal(table["set"], name))
    epsilons = sorted({epsilon for epsilon in mine["epsilon"].to_pylist() if epsilon is not None})
    rows: list[Row] = []
    for learner in distinct(mine, "learner"):
        part = mine.filter(pc.equal(mine["learner"], learner))
        number = "rmse" if part["rmse"].null_count < part.num_rows else "ndcg_at_10"
        found = means(part, ("input", "epsilon"), number)
        for source in dict.fromkeys(key[0] for key in found):
            cells = [found.get((source, epsilon), found.get((source, None))) for epsilon in epsilons]
            rows.append((learner, source, _words(number), *(shown(cell, 4) for cell in cells)))
    title = f"{name}: learners trained on released ratings, tested on raw ones"
    return Table(f"downstream_{name}", title, ("learner", "trained on", "measure", *_columns(epsilons)), tuple(rows))


def attacked(table: pa.Table, name: str) -> Table:
    """One row per attack, method and epsilon: what was reached, and the most that epsilon allows."""
    mine = table.filter(pc.equal(table["set"], name))
    numbers = ("advantage", "bound", "tpr_at_5", "bound_at_5", "tpr_at_1", "bound_at_1", "epsilon_low")
    found = {number: means(mine, ("attack", "method", "epsilon"), number) for number in numbers}
    rows = tuple(
        (*key[:2], "" if key[2] is None else f"{key[2]:g}", *(shown(found[n].get(key), 3) for n in numbers))
        for key in sorted(found["advantage"], key=lambda key: (key[0], key[1], key[2] or 0.0))
    )
    header = (
        "attack", "on", "ε", "advantage", "ε allows", "TPR at FPR 5 %", "ε allows", "TPR at FPR 1 %", "ε allows",
        "ε shown",
    )  # fmt: skip
    return Table(f"attacks_{name}", f"{name}: what attackers reach, and what ε allows", header, rows)


def failures(tables: Iterable[pa.Table]) -> Table:
    """Runs without a result, and why."""
    rows: list[Row] = []
    for table in tables:
        what = "method" if "method" in table.column_names else "input"
        rows += [
            (row["set"], row[what], row["epsilon"], row["seed"], row["error"])
            for row in table.to_pylist()
            if row["error"]
        ]
    return Table("failures", "Runs without a result", ("set", "what", "epsilon", "seed", "why"), tuple(rows))


def distinct(table: pa.Table, column: str) -> list[str]:
    """The values of a column in the order in which they appear."""
    return [name for name in dict.fromkeys(table[column].to_pylist()) if name is not None]


def _columns(epsilons: Sequence[float]) -> tuple[str, ...]:
    return tuple(f"ε = {epsilon:g}" for epsilon in epsilons)


def _words(number: str) -> str:
    return {"rmse": "RMSE", "peak_mb": "peak memory, MB"}.get(number, number.replace("_", " "))
