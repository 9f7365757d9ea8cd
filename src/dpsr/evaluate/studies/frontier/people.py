"""The frontier where people are protected: methods of one unit, their tables and their chart.

An epsilon of one unit says nothing about another, so every unit has tables of its own. Where a method of another unit
is shown, because ours must not fall behind it, its row says which unit it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from dpsr.evaluate.registry import BIAS, OWN_MEAN, PEOPLE, REFERENCE
from dpsr.evaluate.report.charts import BLUE, GREEN, GREY, ORANGE, SKY, VERMILION
from dpsr.evaluate.report.tables import Table
from dpsr.evaluate.report.tidy import Averages
from dpsr.evaluate.studies.frontier.picture import Look
from dpsr.evaluate.studies.frontier.tables import (
    below,
    goal_rows,
    header_of,
    method_rows,
    promise_table,
    spent_rows,
    time_table,
)
from dpsr.evaluate.studies.frontier.targets import PEOPLE_TARGETS, Targets

WORSE_THAN_OWN_MEAN = 1.005
"""Ours may exceed the RMSE of people's own shrunk means by half a per cent, never more."""

_OTHER_UNIT = "dpsr at the unit user (ANOTHER UNIT)"
_YARDSTICKS = {
    OWN_MEAN: "own shrunk mean, not private",
    BIAS: "user + item bias, not private",
    REFERENCE: "ALS, not private",
}
_LEVELS = {OWN_MEAN: "--", BIAS: "-.", REFERENCE: ":"}


@dataclass(frozen=True)
class PeopleUnit:
    """What is run and promised at one unit; `titles` in the order in which methods are shown."""

    words: str
    titles: Mapping[str, str]
    lines: Mapping[str, tuple[str, str, float]]
    targets: Mapping[str, Targets]
    promises: Mapping[str, tuple[str, float]]

    @property
    def look(self) -> Look:
        """How its chart looks."""
        axis = f"ε for {self.words} at δ = 1e-5 (smaller is more private)"
        return Look(self.titles, self.lines, _LEVELS, self.targets, axis)


PEOPLE_UNITS: Mapping[str, PeopleUnit] = {
    "user": PeopleUnit(
        "one person, with all ratings",
        {
            PEOPLE["user"]: "dpsr, personalised (joint DP)",
            "noisy-bias": "noisy item biases, own level (joint DP)",
            "dp-als": "DP-ALS, adaptive weights (joint DP)",
            "dp-sgd-user": "DP-SGD on the factorisation, whole users (joint DP)",
            "noisy-level": "own mean, noisy level (joint DP)",
            **_YARDSTICKS,
        },
        {
            PEOPLE["user"]: (VERMILION, "o", 2.6),
            "noisy-bias": (BLUE, "^", 1.6),
            "dp-als": (GREEN, "D", 1.6),
            "dp-sgd-user": (SKY, "s", 1.2),
            "noisy-level": (GREY, "v", 1.2),
        },
        PEOPLE_TARGETS,
        {
            "at most the own mean's + 0.5 %": (OWN_MEAN, WORSE_THAN_OWN_MEAN),
            "at most DP-ALS's": ("dp-als", 1.0),
            "at most user-level DP-SGD's": ("dp-sgd-user", 1.0),
            "at most noisy biases'": ("noisy-bias", 1.0),
        },
    ),
    "rating": PeopleUnit(
        "one rating that exists or not",
        {
            PEOPLE["rating"]: "dpsr, personalised (joint DP)",
            "dp-sgd-mf": "DP-SGD on the factorisation",
            "denoised-dp-mf": "the same, denoised",
            PEOPLE["user"]: _OTHER_UNIT,
            **_YARDSTICKS,
        },
        {
            PEOPLE["rating"]: (VERMILION, "o", 2.6),
            "dp-sgd-mf": (BLUE, "^", 1.6),
            "denoised-dp-mf": (GREEN, "D", 1.6),
            PEOPLE["user"]: (ORANGE, "P", 1.2),
        },
        {},
        {
            "at most the own mean's + 0.5 %": (OWN_MEAN, WORSE_THAN_OWN_MEAN),
            "at most that of the unit user": (PEOPLE["user"], 1.0),
            "at most DP-SGD's": ("dp-sgd-mf", 1.0),
            "at most denoised DP-SGD's": ("denoised-dp-mf", 1.0),
        },
    ),
}
"""By the name of the unit."""


def people_tables(rows: pa.Table, names: Sequence[str], epsilons: Sequence[float], unit: str) -> list[Table]:
    """Errors of every set with goals and promises, then time and exact budgets."""
    averages, shown = Averages(rows), PEOPLE_UNITS[unit]
    tables = [_errors(averages, name, epsilons, unit) for name in names]
    promises = {
        title: below(reference, allowance, ours=PEOPLE[unit])
        for title, (reference, allowance) in shown.promises.items()
    }
    tables.append(promise_table(averages, names, epsilons, promises, f"promises_{unit}"))
    tables.append(time_table(averages, names, epsilons, shown.titles))
    tables.append(_budgets(rows, epsilons, unit))
    return [table for table in tables if table.rows]


def _errors(averages: Averages, name: str, epsilons: Sequence[float], unit: str) -> Table:
    shown = PEOPLE_UNITS[unit]
    rows = goal_rows(averages, name, PEOPLE[unit], epsilons, shown.targets.get(name, Targets()))
    rows += method_rows(averages, name, epsilons, "rmse", digits=4, titles=shown.titles)
    title = f"{name}: RMSE, ε for {shown.words} at δ = 1e-5"
    return Table(f"rmse_{unit}_{name}", title, header_of(epsilons), tuple(rows))


def _budgets(rows: pa.Table, epsilons: Sequence[float], unit: str) -> Table:
    """The largest epsilon at delta of any fit, as certificates and receipts say, each for its method's own unit."""
    shown = spent_rows(rows, epsilons, PEOPLE_UNITS[unit].titles)
    title = "The largest ε of any fit at δ = 1e-5, each at its own unit (at most the ε asked: kept)"
    return Table(f"budget_{unit}", title, header_of(epsilons), shown)
