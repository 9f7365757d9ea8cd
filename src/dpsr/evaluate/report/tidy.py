"""Tidy tables: one row per run, every column named once here, and means over seeds.

A run that failed has its `error` filled in and its numbers empty. Nothing is rounded.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from dpsr.evaluate.contract import JOINT, OUR_UNIT, UNITS
from dpsr.evaluate.likes.protocol import METRICS as LIST_METRICS
from dpsr.evaluate.likes.registry import OUR_LISTS
from dpsr.evaluate.measure import ATTACK, FORECAST, LEARNERS, LIKES, LIKES_ATTACK, METHOD
from dpsr.evaluate.protocol import HeldOutRatings
from dpsr.evaluate.registry import LISTED, OURS, PEOPLE
from dpsr.evaluate.runner.jobs import Job, Row

_TEXT, _NUMBER, _COUNT = pa.string(), pa.float64(), pa.int64()


def _numbers(*names: str) -> list[tuple[str, pa.DataType]]:
    return [(name, _NUMBER) for name in names]


SCHEMAS: dict[str, pa.Schema] = {
    METHOD: pa.schema(
        [
            ("set", _TEXT), ("method", _TEXT), ("unit", _TEXT), *_numbers("epsilon", "exact_epsilon", "delta"),
            ("seed", _COUNT), *_numbers(*HeldOutRatings.metrics, "fit_seconds", "cpu_seconds", "peak_mb"),
            ("public", _TEXT), ("note", _TEXT), ("error", _TEXT),
        ]
    ),
    LIKES: pa.schema(
        [
            ("set", _TEXT), ("protocol", _TEXT), ("method", _TEXT), ("unit", _TEXT),
            *_numbers("epsilon", "exact_epsilon", "delta"), ("seed", _COUNT),
            *_numbers(*LIST_METRICS, "fit_seconds", "cpu_seconds", "peak_mb"),
            ("public", _TEXT), ("note", _TEXT), ("error", _TEXT),
        ]
    ),
    FORECAST: pa.schema(
        [("set", _TEXT), ("method", _TEXT), ("epsilon", _NUMBER), ("seed", _COUNT), ("share_of_constant", _NUMBER)]
    ),
    LEARNERS: pa.schema(
        [
            ("set", _TEXT), ("input", _TEXT), ("epsilon", _NUMBER), ("learner", _TEXT), ("seed", _COUNT),
            *_numbers("observed_rmse", *HeldOutRatings.metrics, "fit_seconds"), ("error", _TEXT),
        ]
    ),
    ATTACK: pa.schema(
        [
            ("set", _TEXT), ("attack", _TEXT), ("method", _TEXT), ("epsilon", _NUMBER), ("seed", _COUNT),
            ("unit", _TEXT), *_numbers("advantage", "advantage_low", "bound", "tpr_at_5", "tpr_at_1", "bound_at_5"),
            *_numbers("bound_at_1", "epsilon_low"), ("trials", _COUNT), ("note", _TEXT), ("error", _TEXT),
        ]
    ),
}  # fmt: skip
SCHEMAS[LIKES_ATTACK] = SCHEMAS[ATTACK]
"""Columns by measure. `epsilon` is what was asked for, empty for methods without a budget; `exact_epsilon` is what the
receipt says. `error` is why there are no numbers."""


def tidy(measure: str, runs: Iterable[tuple[Job, Sequence[Row]]]) -> pa.Table:
    """One row per row of every job of the measure; columns that a job did not fill are empty."""
    what = "input" if measure == LEARNERS else "method"
    rows = [
        {"set": job.set.name, what: job.what, "epsilon": job.epsilon, "seed": job.seed, **row}
        for job, found in runs
        if job.measure == measure
        for row in found
    ]
    return pa.Table.from_pylist(rows, schema=SCHEMAS[measure])


class Mean(NamedTuple):
    """Mean and sample standard deviation over seeds (NaN for one), and how many."""

    value: float
    deviation: float
    seeds: int

    @classmethod
    def of(cls, values: Sequence[float]) -> Mean:
        """Of at least one number."""
        spread = float(np.std(values, ddof=1)) if len(values) > 1 else float("nan")
        return cls(float(np.mean(values)), spread, len(values))


def means(table: pa.Table, by: Sequence[str], number: str) -> dict[tuple[Any, ...], Mean]:
    """The mean of a number over the rows that have it, by the given columns."""
    return {key: Mean.of(values) for key, values in grouped(table, by, number).items()}


def grouped(table: pa.Table, by: Sequence[str], number: str) -> dict[tuple[Any, ...], list[float]]:
    """The numbers themselves, by the given columns, in the order of the rows."""
    groups: dict[tuple[Any, ...], list[float]] = {}
    for row in table.select([*by, number]).to_pylist():
        if row[number] is not None:
            groups.setdefault(tuple(row[name] for name in by), []).append(row[number])
    return groups


class Averages:
    """Means by set, method and epsilon; a method without a budget has one mean, which stands at every epsilon."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table
        self._means: dict[str, dict[tuple[Any, ...], Mean]] = {}

    def at(self, name: str, method: str, epsilon: float | None, number: str = "rmse") -> Mean | None:
        """The mean at an epsilon, or None if there is none."""
        if number not in self._means:
            self._means[number] = means(self._table, ("set", "method", "epsilon"), number)
        found = self._means[number]
        return found.get((name, method, epsilon), found.get((name, method, None)))


def distinct(table: pa.Table, column: str) -> list[Any]:
    """The values of a column in the order in which they appear."""
    return [value for value in dict.fromkeys(table[column].to_pylist()) if value is not None]


JOINTLY = "joint DP"


def units_of(table: pa.Table) -> dict[str, str]:
    """The unit of protection of every method, as its own receipt says it; joint DP is another promise and says so.

    Ours first, then unit by unit: ratings, users, no protection.
    """
    rows = table.select(["method", "unit", "note"]).to_pylist()
    pairs = {
        row["method"]: row["unit"] + (f", {JOINTLY}" if JOINT in (row["note"] or "") else "")
        for row in rows
        if row["unit"]
    }
    return dict(
        sorted(
            pairs.items(),
            key=lambda pair: (pair[0] not in (OURS, OUR_LISTS, *PEOPLE.values(), LISTED), unit_order(pair[1])),
        )
    )


def unit_order(unit: str) -> tuple[int, str]:
    """The place of a unit in tables."""
    return next((place for place, name in enumerate(UNITS) if unit.startswith(name)), len(UNITS)), unit


def by_unit(units: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Methods by what they protect, each group with the models without privacy: an epsilon has one meaning in it."""
    plain = {method: unit for method, unit in units.items() if unit == "none"}
    found: dict[str, dict[str, str]] = {}
    for name in UNITS:
        mine = {method: unit for method, unit in units.items() if unit.startswith(name)}
        if mine and name != "none":
            found[name] = {**mine, **plain}
    return found or {"none": plain}


def is_ours(unit: str) -> bool:
    """A release that protects what ours protects: its epsilon means the same."""
    return unit == OUR_UNIT


def is_joint(unit: str) -> bool:
    """Not a release that anyone may read."""
    return JOINTLY in unit
