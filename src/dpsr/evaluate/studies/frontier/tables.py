"""The frontier as tables: errors with their targets, promises kept or not, ranking, plan, and time."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from operator import ge, gt, le, lt

import numpy as np
import pyarrow as pa

from dpsr.evaluate.registry import BIAS, CONSTANT, METHODS, OURS, PERSONALISED
from dpsr.evaluate.report.tables import Cells, Table, mean_cell
from dpsr.evaluate.report.tidy import Averages, distinct, grouped
from dpsr.evaluate.studies.frontier.targets import PERSONAL_TARGETS, TARGETS, Targets

WORSE_THAN_CONSTANT = 1.005
"""Ours may exceed the constant's RMSE by half a per cent, never more."""

PLAN_WITHIN = 5.0
"""Per cent by which the planned share may miss the measured one."""

TITLES: dict[str, str] = {
    "dpsr": "dpsr",
    "dpsr-personalised": "dpsr, personalised (joint DP: own raw ratings for own predictions)",
    "dpsr-paper": "paper, repaired",
    "dpsr-as-published": "paper, as published (ε not kept)",
    "laplace-als": "Laplace ratings, tuned ALS",
    "laplace-mf": "Laplace ratings, plain MF",
    "gaussian-als": "Gaussian ratings (δ = 1e-05), tuned ALS",
    "constant": "constant, not private",
    "bias": "user + item bias, not private",
    "als": "ALS, not private",
    "dpsr-20": "dpsr at ε = 20 (nearly no noise)",
    "popularity": "most rated first (mask only, no values)",
}
"""In the order in which methods are shown: private rows, then yardsticks."""

ONLY_RANKS = {"popularity"}
"""Shown for its lists: the rating it predicts is the constant's."""


def met_or_missed(met: bool) -> str:
    """The one pair of words for a promise."""
    return "met" if met else "missed"


def frontier_tables(rows: pa.Table, plans: pa.Table, names: Sequence[str], epsilons: Sequence[float]) -> list[Table]:
    """Errors of every set, then promises, ranking, plan, time and exact budgets."""
    averages = Averages(rows)
    tables = [error_table(averages, name, epsilons, TARGETS.get(name, Targets())) for name in names]
    if PERSONALISED in distinct(rows, "method"):
        tables += [personal_table(averages, name, epsilons) for name in names]
    if OURS in distinct(rows, "method"):
        tables.append(promise_table(averages, names, epsilons))
    tables += [ranking_table(averages, name, epsilons) for name in names]
    if plans.num_rows:
        tables.append(plan_table(rows, plans, names, epsilons))
    tables += [time_table(averages, names, epsilons), budget_table(rows, epsilons)]
    return [table for table in tables if table.rows]


def error_table(averages: Averages, name: str, epsilons: Sequence[float], targets: Targets) -> Table:
    """RMSE in the layout of the targets: one column per epsilon, ours under what it should reach."""
    rows = goal_rows(averages, name, OURS, epsilons, targets)
    rows += method_rows(averages, name, epsilons, "rmse", digits=4, without=ONLY_RANKS)
    return Table(f"rmse_{name}", f"{name}: RMSE", header_of(epsilons), tuple(rows))


def personal_table(averages: Averages, name: str, epsilons: Sequence[float]) -> Table:
    """RMSE of the release and of what each person gets from it with their own ratings, under the same noise."""
    rows = goal_rows(averages, name, PERSONALISED, epsilons, PERSONAL_TARGETS.get(name, Targets()))
    others = set(TITLES) - {OURS, PERSONALISED}
    rows += method_rows(averages, name, epsilons, "rmse", digits=4, without=others)
    never = {"never worse than the release": below(OURS, ours=PERSONALISED)}
    rows += promise_rows(averages, name, epsilons, never)
    return Table(f"personalised_{name}", f"{name}: RMSE, personalised", header_of(epsilons), tuple(rows))


def goal_rows(
    averages: Averages, name: str, method: str, epsilons: Sequence[float], targets: Targets, number: str = "rmse"
) -> list[Cells]:
    """What a method should reach, and what it should go beyond, and whether it does; of an error, less is more."""
    less = number == "rmse"
    rows: list[Cells] = []
    for title, goals, beyond in (
        ("reach", targets.reach, le if less else ge),
        ("aim below" if less else "aim above", targets.aim, lt if less else gt),
    ):
        cells = [_goal_cell(value_at(averages, name, method, e, number), goals.get(e), beyond) for e in epsilons]
        if any(cells):
            rows.append((f"{name}: {title}", *cells))
    return rows


def _goal_cell(found: float | None, goal: float | None, beyond: Callable[[float, float], bool]) -> str:
    if goal is None:
        return ""
    return f"{goal:.3f}" if found is None else f"{goal:.3f} {met_or_missed(beyond(found, goal))}"


def method_rows(
    averages: Averages,
    name: str,
    epsilons: Sequence[float],
    number: str,
    *,
    digits: int,
    without: Collection[str] = (),
    titles: Mapping[str, str] = TITLES,
) -> list[Cells]:
    """One row for each method of `titles` that was run."""
    rows: list[Cells] = []
    for method, title in titles.items():
        cells = [mean_cell(averages.at(name, method, epsilon, number), digits) for epsilon in epsilons]
        if any(cells) and method not in without:
            rows.append((title, *cells))
    return rows


def value_at(averages: Averages, name: str, method: str, epsilon: float, number: str = "rmse") -> float | None:
    """The mean of a number, or None where nothing was measured."""
    mean = averages.at(name, method, epsilon, number)
    return None if mean is None else mean.value


Margin = Callable[[Averages, str, float], float | None]
"""By how much a promise is kept on a set at an epsilon; negative where it is broken."""


def promise_rows(
    averages: Averages, name: str, epsilons: Sequence[float], promises: Mapping[str, Margin]
) -> list[Cells]:
    """One row for each promise about what was run."""
    rows: list[Cells] = []
    for title, margin in promises.items():
        margins = [margin(averages, name, epsilon) for epsilon in epsilons]
        if any(m is not None for m in margins):
            rows.append((title, *("" if m is None else f"{met_or_missed(m >= 0)} {m:+.2%}" for m in margins)))
    return rows


def below(reference: str, allowance: float = 1.0, ours: str = OURS) -> Margin:
    """By how much our error is below another's, as a share of it; `allowance` is what ours may be worse by."""

    def margin(averages: Averages, name: str, epsilon: float) -> float | None:
        found, theirs = (value_at(averages, name, method, epsilon) for method in (ours, reference))
        return None if found is None or theirs is None else 1 - found / (theirs * allowance)

    return margin


def _at_least(reference: str, number: str) -> Margin:
    def margin(averages: Averages, name: str, epsilon: float) -> float | None:
        ours, theirs = (value_at(averages, name, method, epsilon, number) for method in (OURS, reference))
        return None if ours is None or not theirs else ours / theirs - 1

    return margin


PROMISES: Mapping[str, Margin] = {
    "RMSE at most the constant's + 0.5 %": below(CONSTANT, WORSE_THAN_CONSTANT),
    "RMSE at most the repaired paper's": below("dpsr-paper"),
    "RMSE at most the published paper's": below("dpsr-as-published"),
    "P@10 at least the bias model's": _at_least(BIAS, "precision_at_10"),
    "NDCG@10 at least the bias model's": _at_least(BIAS, "ndcg_at_10"),
}


def promise_table(
    averages: Averages,
    names: Sequence[str],
    epsilons: Sequence[float],
    promises: Mapping[str, Margin] = PROMISES,
    called: str = "promises",
) -> Table:
    """What must hold at every epsilon, with the margin: positive is good."""
    rows = [
        (f"{name}: {row[0]}", *row[1:]) for name in names for row in promise_rows(averages, name, epsilons, promises)
    ]
    return Table(called, "Promises, with the margin in per cent", header_of(epsilons), tuple(rows))


def ranking_table(averages: Averages, name: str, epsilons: Sequence[float]) -> Table:
    """P@10 and NDCG@10 among all items not rated in training."""
    rows: list[Cells] = []
    for number, title in (("precision_at_10", "P@10"), ("ndcg_at_10", "NDCG@10")):
        found = method_rows(averages, name, epsilons, number, digits=4)
        rows += [(f"{title}: {row[0]}", *row[1:]) for row in found]
    title = f"{name}: ranking (dpsr weighs in who meets what, from the mask; the others order by predicted rating)"
    return Table(f"ranking_{name}", title, header_of(epsilons), tuple(rows))


def plan_table(rows: pa.Table, plans: pa.Table, names: Sequence[str], epsilons: Sequence[float]) -> Table:
    """RMSE as a share of the constant's: planned from the mask, measured, and by how much the plan is off."""
    planned = grouped(plans, ("set", "epsilon"), "share_of_constant")
    measured = grouped(rows, ("set", "method", "epsilon"), "share_of_constant")
    shown: list[Cells] = []
    for name in names:
        for epsilon in epsilons:
            plan, found = (float(np.mean(shares)) for shares in (planned[name, epsilon], measured[name, OURS, epsilon]))
            off = 100 * (plan / found - 1)
            cells = (f"{plan:.4f}", f"{found:.4f}", f"{off:+.1f}", met_or_missed(abs(off) <= PLAN_WITHIN))
            shown.append((name, f"{epsilon:g}", *cells))
    header = ("set", "ε", "planned share", "measured share", "off by %", f"within {PLAN_WITHIN:g} %")
    return Table("plan", "Plan: RMSE over the constant's RMSE", header, tuple(shown))


def time_table(
    averages: Averages, names: Sequence[str], epsilons: Sequence[float], titles: Mapping[str, str] = TITLES
) -> Table:
    """Processor seconds per fit, scoring not counted: fits run side by side, so the clock would say less."""
    rows: list[Cells] = []
    for name in names:
        found = method_rows(averages, name, epsilons, "cpu_seconds", digits=2, titles=titles)
        rows += [(f"{name}: {row[0]}", *row[1:]) for row in found]
    return Table("time", "Processor seconds per fit (compiling not counted)", header_of(epsilons), tuple(rows))


def budget_table(rows: pa.Table, epsilons: Sequence[float]) -> Table:
    """The largest exact epsilon of any fit, by method: what the certificates say. Those with a delta are left out."""
    pure = rows.filter(pa.compute.equal(rows["delta"], 0.0))
    title = "The largest exact ε of any fit (at most the ε asked: kept)"
    return Table("budget", title, header_of(epsilons), spent_rows(pure, epsilons, TITLES))


def spent_rows(rows: pa.Table, epsilons: Sequence[float], titles: Mapping[str, str]) -> tuple[Cells, ...]:
    """For each method that takes a budget, the largest exact epsilon of any fit, and whether it is what was asked."""
    spent = grouped(rows, ("method", "epsilon"), "exact_epsilon")
    return tuple(
        (title, *(_spent(spent.get((method, epsilon)), epsilon) for epsilon in epsilons))
        for method, title in titles.items()
        if METHODS[method].budgeted and any((method, epsilon) in spent for epsilon in epsilons)
    )


def _spent(exact: Sequence[float] | None, epsilon: float) -> str:
    if exact is None:
        return ""
    return f"{max(exact):.4g} {'kept' if max(exact) <= epsilon else 'exceeded'}"


def header_of(epsilons: Sequence[float]) -> tuple[str, ...]:
    """One column for each epsilon."""
    return ("ε", *(f"{epsilon:g}" for epsilon in epsilons))
