"""The frontier as tables: errors with their targets, promises kept or not, ranking, plan, and time."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from dpsr.evaluate.frontier_methods import BIAS, CONSTANT, METHODS, OURS, SHOWN
from dpsr.evaluate.frontier_records import Averages, Plan, Record
from dpsr.evaluate.frontier_sets import TARGETS, Targets
from dpsr.evaluate.tables import Cell, Table

WORSE_THAN_CONSTANT = 1.005
"""Ours may exceed the constant's RMSE by half a per cent, never more."""

PLAN_WITHIN = 5.0
"""Per cent by which the planned share may miss the measured one."""

Row = tuple[Cell, ...]


def verdict(met: bool) -> str:
    """The one pair of words for a promise."""
    return "met" if met else "missed"


def frontier_tables(
    averages: Averages,
    plans: Sequence[Plan],
    records: Sequence[Record],
    names: Sequence[str],
    epsilons: Sequence[float],
) -> list[Table]:
    """Errors of every set, then promises, ranking, plan, time and exact budgets."""
    tables = [error_table(averages, name, epsilons, TARGETS.get(name, Targets())) for name in names]
    if any(averages.at(name, OURS, epsilon) is not None for name in names for epsilon in epsilons):
        tables.append(promise_table(averages, names, epsilons))
    tables += [ranking_table(averages, name, epsilons) for name in names]
    if plans:
        tables.append(plan_table(records, plans, names, epsilons))
    tables.append(time_table(averages, names, epsilons))
    spent = [record for record in records if record.exact_epsilon is not None and record.epsilon is not None]
    return [*tables, budget_table(spent, epsilons)] if spent else tables


def error_table(averages: Averages, name: str, epsilons: Sequence[float], targets: Targets) -> Table:
    """RMSE in the layout of the targets: one column per epsilon, ours under what it should reach."""
    rows: list[Row] = []
    for title, goals, good in _goals(targets):
        cells = [_goal(averages.at(name, OURS, epsilon), goals.get(epsilon), good) for epsilon in epsilons]
        if any(cells):
            rows.append((f"{name}: {title}", *cells))
    rows += _method_rows(averages, name, epsilons, "rmse", digits=4)
    return Table(f"rmse_{name}", f"{name}: RMSE", _header(epsilons), tuple(rows))


def _goals(targets: Targets) -> list[tuple[str, dict[float, float], Callable[[float, float], bool]]]:
    return [
        ("reach", dict(targets.reach), lambda found, goal: found <= goal),
        ("aim below", dict(targets.aim), lambda found, goal: found < goal),
    ]


def _goal(found: float | None, goal: float | None, good: Callable[[float, float], bool]) -> str:
    if goal is None:
        return ""
    return f"{goal:.3f}" if found is None else f"{goal:.3f} {verdict(good(found, goal))}"


def _method_rows(averages: Averages, name: str, epsilons: Sequence[float], number: str, *, digits: int) -> list[Row]:
    rows: list[Row] = []
    for method in SHOWN:
        cells = [_mean(averages, name, method, epsilon, number, digits) for epsilon in epsilons]
        if any(cells):  # a method that predicts no rating has no row of errors
            rows.append((METHODS[method].title, *cells))
    return rows


def _mean(averages: Averages, name: str, method: str, epsilon: float, number: str, digits: int) -> str:
    mean, spread = averages.at(name, method, epsilon, number), averages.spread(name, method, epsilon, number)
    if mean is None or mean != mean:
        return ""
    return f"{mean:.{digits}f}" if spread != spread else f"{mean:.{digits}f} ± {spread:.{digits}f}"


def promise_table(averages: Averages, names: Sequence[str], epsilons: Sequence[float]) -> Table:
    """What must hold at every epsilon, with the margin: positive is good."""
    rows: list[Row] = []
    for name in names:
        for title, margin in _PROMISES:
            margins = [margin(averages, name, epsilon) for epsilon in epsilons]
            if any(m is not None for m in margins):
                rows.append(
                    (f"{name}: {title}", *("" if m is None else f"{verdict(m >= 0)} {m:+.2%}" for m in margins))
                )
    return Table("promises", "Promises, with the margin in per cent", _header(epsilons), tuple(rows))


def _below(reference: str, allowance: float = 1.0) -> Callable[[Averages, str, float], float | None]:
    def margin(averages: Averages, name: str, epsilon: float) -> float | None:
        ours, theirs = averages.at(name, OURS, epsilon), averages.at(name, reference, epsilon)
        return None if ours is None or theirs is None else 1 - ours / (theirs * allowance)

    return margin


def _at_least(reference: str, number: str) -> Callable[[Averages, str, float], float | None]:
    def margin(averages: Averages, name: str, epsilon: float) -> float | None:
        ours, theirs = averages.at(name, OURS, epsilon, number), averages.at(name, reference, epsilon, number)
        return None if ours is None or not theirs else ours / theirs - 1

    return margin


_PROMISES = (
    ("RMSE at most the constant's + 0.5 %", _below(CONSTANT, WORSE_THAN_CONSTANT)),
    ("RMSE at most the repaired paper's", _below("paper")),
    ("RMSE at most the published paper's", _below("published")),
    ("P@10 at least the bias model's", _at_least(BIAS, "precision")),
    ("NDCG@10 at least the bias model's", _at_least(BIAS, "ndcg")),
)


def ranking_table(averages: Averages, name: str, epsilons: Sequence[float]) -> Table:
    """P@10 and NDCG@10 among all items not rated in training."""
    rows: list[Row] = []
    for number, title in (("precision", "P@10"), ("ndcg", "NDCG@10")):
        found = _method_rows(averages, name, epsilons, number, digits=4)
        rows += [(f"{title}: {row[0]}", *row[1:]) for row in found]
    title = f"{name}: ranking (dpsr weighs in who meets what, from the mask; the others order by predicted rating)"
    return Table(f"ranking_{name}", title, _header(epsilons), tuple(rows))


def plan_table(
    records: Sequence[Record], plans: Sequence[Plan], names: Sequence[str], epsilons: Sequence[float]
) -> Table:
    """RMSE as a share of the constant's: planned from the mask, measured, and by how much the plan is off."""
    errors = {(r.set, r.method, r.epsilon, r.seed): r.rmse for r in records}
    rows: list[Row] = []
    for name in names:
        for epsilon in epsilons:
            mine = [plan for plan in plans if (plan.set, plan.epsilon) == (name, epsilon)]
            planned = float(np.mean([plan.share for plan in mine]))
            shares = [errors[name, OURS, epsilon, p.seed] / errors[name, CONSTANT, None, p.seed] for p in mine]
            measured = float(np.mean(shares))
            off = 100 * (planned / measured - 1)
            shown = (f"{planned:.4f}", f"{measured:.4f}", f"{off:+.1f}", verdict(abs(off) <= PLAN_WITHIN))
            rows.append((name, f"{epsilon:g}", *shown))
    header = ("set", "ε", "planned share", "measured share", "off by %", f"within {PLAN_WITHIN:g} %")
    return Table("plan", "Plan: RMSE over the constant's RMSE", header, tuple(rows))


def time_table(averages: Averages, names: Sequence[str], epsilons: Sequence[float]) -> Table:
    """Seconds per fit, scoring not counted."""
    rows: list[Row] = []
    for name in names:
        found = _method_rows(averages, name, epsilons, "seconds", digits=2)
        rows += [(f"{name}: {row[0]}", *row[1:]) for row in found]
    return Table("time", "Seconds per fit (compiling included where it was needed)", _header(epsilons), tuple(rows))


def budget_table(records: Sequence[Record], epsilons: Sequence[float]) -> Table:
    """The largest exact epsilon of any fit, by method: what the certificates say."""
    most: dict[tuple[str, float | None], float] = {}
    for record in records:
        place = record.method, record.epsilon
        most[place] = max(most.get(place, 0.0), record.exact_epsilon or 0.0)
    methods = [method for method in SHOWN if any(key[0] == method for key in most)]
    rows = tuple((METHODS[method].title, *(_spent(most.get((method, e)), e) for e in epsilons)) for method in methods)
    return Table("budget", "The largest exact ε of any fit (at most the ε asked: kept)", _header(epsilons), rows)


def _spent(exact: float | None, epsilon: float) -> str:
    if exact is None:
        return ""
    return f"{exact:.4g} {'kept' if exact <= epsilon else 'exceeded'}"


def all_records(records: Sequence[Record]) -> Table:
    """Every number of every fit, unrounded."""
    header = tuple(records[0].as_dict())
    return Table("frontier", "All fits", header, tuple(tuple(record.as_dict().values()) for record in records))


def _header(epsilons: Sequence[float]) -> tuple[str, ...]:
    return ("ε", *(f"{epsilon:g}" for epsilon in epsilons))
