"""Who is ahead of whom: our method against every other at every epsilon, on each set, with corrected p-values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from dpsr.arrays import Floats, Ints
from dpsr.evaluate.contract import UNITS
from dpsr.evaluate.measure import METHOD
from dpsr.evaluate.metrics.significance import ErrorComparison, compare_errors, holm
from dpsr.evaluate.protocol import PROTOCOLS, Predictions, Split
from dpsr.evaluate.registry import LISTED, OURS, PEOPLE, ours_at
from dpsr.evaluate.report.tables import Cells, Table, epsilon_columns
from dpsr.evaluate.report.tidy import Averages, is_joint, unit_order
from dpsr.evaluate.runner.jobs import Job
from dpsr.evaluate.runner.results import Results
from dpsr.evaluate.runner.store import load_arrays
from dpsr.evaluate.sets import RatingSet

LEVEL = 0.05


@dataclass(frozen=True, eq=False)
class Fits:
    """The methods that were fitted, with access to their predictions and to the test ratings. NOT PRIVATE."""

    jobs: tuple[Job, ...]
    units: dict[str, str]
    folder: Path

    @classmethod
    def of(cls, results: Results, units: dict[str, str]) -> Fits:
        """All fits that ended with a result."""
        return cls(tuple(results.succeeded(METHOD)), units, results.folder)

    def at(self, ratings: RatingSet, method: str, epsilon: float | None) -> dict[int, Job]:
        """By seed, the fits at an epsilon; of a method without a budget, its only ones."""
        mine = [job for job in self.jobs if (job.set, job.what) == (ratings, method)]
        return {job.seed: job for job in mine if job.epsilon in (epsilon, None)}

    def predictions(self, job: Job) -> Predictions:
        """What the method said."""
        return Predictions(**load_arrays(self.folder / f"{job.name}.npz"))

    def squared_errors(self, job: Job) -> Floats:
        """(truth - predicted)^2 of every test rating."""
        predicted = self.predictions(job).predicted.astype(np.float64)
        return np.asarray((split_of(job).test.values - predicted) ** 2)

    @property
    def methods(self) -> list[str]:
        return list(dict.fromkeys(job.what for job in self.jobs))

    @property
    def sets(self) -> list[RatingSet]:
        return list(dict.fromkeys(job.set for job in self.jobs))

    @property
    def epsilons(self) -> list[float]:
        return sorted({job.epsilon for job in self.jobs if job.epsilon is not None})


def split_of(job: Job) -> Split:
    """The split that the job was measured on."""
    return _split(job.protocol, job.set, job.seed)


@cache
def _split(protocol: str, ratings: RatingSet, seed: int) -> Split:
    """Kept, since many comparisons look at it."""
    return PROTOCOLS[protocol].split(ratings, seed)


def significance_table(fits: Fits) -> Table:
    """One row per set, other method and epsilon. The corrections hold for all rows together.

    A method is compared with ours at its own unit, whose epsilon means the same; models without privacy with the
    release of values, or with what else of ours was run.
    """
    errors: Callable[[Job], Floats] = cache(fits.squared_errors)
    found = [
        Compared(ratings.name, method, epsilon, compared)
        for ratings in fits.sets
        for epsilon in fits.epsilons
        for method in fits.methods
        if (compared := _compared(fits, errors, ratings, method, epsilon)) is not None
    ]
    title = (
        f"{OURS} at the same unit against every other method (positive difference: ours has the smaller squared error)"
    )
    return Table("significance", title, comparison_header("MSE"), comparison_rows(found, fits.units))


class Compared(NamedTuple):
    """Ours against one method, at one epsilon on one set."""

    name: str
    method: str
    epsilon: float
    found: ErrorComparison


def comparison_header(measure: str) -> tuple[str, ...]:
    """Titles of the columns that `comparison_rows` fills."""
    return (
        "set", "against", "unit", "epsilon", f"{measure} difference", "t", "p", "p, Holm", "p, Wilcoxon, Holm",
        "p, over seeds", "users", "verdict",
    )  # fmt: skip


def comparison_rows(compared: Sequence[Compared], units: Mapping[str, str]) -> tuple[Cells, ...]:
    """One row each; the corrections hold for all rows together. A positive difference is in our favour."""
    t_p, rank_p = (holm([getattr(one.found, name) for one in compared]) for name in ("p", "wilcoxon_p"))
    return tuple(
        (
            name, method, units.get(method, ""), epsilon, found.mean, found.t, found.p, float(p), float(rank),
            found.seeds_p, found.n_users, ahead_or_behind(found.mean, float(p)),
        )
        for (name, method, epsilon, found), p, rank in zip(compared, t_p, rank_p, strict=True)
    )  # fmt: skip


def ahead_or_behind(difference: float, p: float) -> str:
    """In one word; NaN is undecided."""
    if not p < LEVEL:
        return "undecided"
    return "ahead" if difference > 0 else "behind"


def _compared(
    fits: Fits, errors: Callable[[Job], Floats], ratings: RatingSet, method: str, epsilon: float
) -> ErrorComparison | None:
    """Our errors and theirs on the seeds both have; None if there are none."""
    rival = rival_of(method, fits.units, fits.methods)
    if rival is None:
        return None
    ours, theirs = fits.at(ratings, rival, epsilon), fits.at(ratings, method, epsilon)
    seeds = sorted(ours.keys() & theirs.keys())
    if not seeds:
        return None
    parts = [errors(theirs[seed]) - errors(ours[seed]) for seed in seeds]
    known = [np.isfinite(part) for part in parts]
    if not any(part.any() for part in known):
        return None
    users, items = _cells([ours[seed] for seed in seeds])
    seed_of = np.repeat(np.asarray(seeds, dtype=np.int64), [len(part) for part in parts])
    keep = np.concatenate(known)
    return compare_errors(np.concatenate(parts)[keep], users[keep], items[keep], seed_of[keep])


def _cells(jobs: Sequence[Job]) -> tuple[Ints, Ints]:
    """Users and items of all test ratings. Made-up sets have other people under every seed, and so other codes."""
    users, items = [], []
    for place, job in enumerate(jobs):
        mask = split_of(job).test.mask
        shift = place if job.set.made_up else 0
        users.append(mask.users.astype(np.int64) + shift * mask.n_users)
        items.append(mask.items.astype(np.int64) + shift * mask.n_items)
    return np.concatenate(users), np.concatenate(items)


def of_unit(significance: Table, unit: str) -> Table:
    """The rows of methods that protect this unit, and of models without privacy where they were compared with it."""
    known = [str(row[2]) for row in significance.rows if row[2] != "none"]
    first = next((name for name in UNITS if any(said.startswith(name) for said in known)), "none")
    rows = tuple(
        row
        for row in significance.rows
        if str(row[2]).startswith(unit) or (row[2] == "none" and first in (unit, "none"))
    )
    return replace(significance, rows=rows)


def rival_of(method: str, units: Mapping[str, str], fitted: Sequence[str]) -> str | None:
    """Which of ours a method is compared with; None for ours, and where none of ours was run at its unit."""
    mine, unit = (OURS, *PEOPLE.values(), LISTED), units.get(method, "")
    if method in mine:
        return None
    wanted = [name for name in mine if name in fitted] if unit == "none" else [ours_at(unit)]
    return next((name for name in wanted if name in fitted), None)


def verdict_table(significance: Table, table: pa.Table, name: str) -> Table:
    """How far ours is below each method at each epsilon, and whether that is sure."""
    errors = Averages(table)
    mine = [row for row in significance.rows if row[0] == name]
    epsilons = sorted({float(row[3]) for row in mine if isinstance(row[3], float)})
    fitted = [str(one) for one in dict.fromkeys(table["method"].to_pylist())]
    cells = {(row[1], row[3]): _verdict_cell(errors, name, row, fitted) for row in mine}
    others = dict.fromkeys((str(row[1]), str(row[2])) for row in sorted(mine, key=lambda row: unit_order(str(row[2]))))
    rows = tuple((method, unit, *(cells.get((method, e), "") for e in epsilons)) for method, unit in others)
    title = f"{name}: RMSE of {OURS} at the same unit below each method's, and whether that is sure"
    return Table(f"verdicts_{name}", title, ("against", "protects", *epsilon_columns(epsilons)), rows)


def _verdict_cell(errors: Averages, name: str, row: Cells, fitted: Sequence[str]) -> str:
    epsilon = row[3] if isinstance(row[3], float) else None
    rival = rival_of(str(row[1]), {str(row[1]): str(row[2])}, fitted) or OURS
    ours, theirs = errors.at(name, rival, epsilon), errors.at(name, str(row[1]), epsilon)
    if ours is None or theirs is None:
        return ""
    p = row[7] if isinstance(row[7], float) else float("nan")
    sure = "" if p != p else ", p < 0.0001" if p < 1e-4 else f", p = {p:.4f}"
    return f"{100 * (1 - ours.value / theirs.value):+.1f} % {row[-1]}{sure}"


def headlines(significance: Table) -> str:
    """For each set and unit: is ours ahead of everyone with the same unit, everywhere? If not, where not."""
    lines = []
    for name in dict.fromkeys(str(row[0]) for row in significance.rows):
        for unit in UNITS:
            mine = [row for row in significance.rows if row[0] == name and str(row[2]).startswith(unit)]
            releases = [row for row in mine if not is_joint(str(row[2]))]
            joint = [row for row in mine if is_joint(str(row[2]))]
            if releases and unit != "none":
                lines.append(f"* **{name}**, one {unit}: {_count(releases, unit)} with releases.")
            if joint:
                told = "with joint DP, where predictions use the user's own raw ratings"
                lines.append(f"* **{name}**, one {unit}, {told}: {_count(joint, unit)}.")
    return "\n".join(lines) + "\n\n" if lines else ""


def _count(rows: Sequence[Cells], unit: str) -> str:
    short = [f"{row[1]} at ε = {row[3]:g} ({row[-1]})" for row in rows if row[-1] != "ahead"]
    but = f" (not of {'; '.join(short)})" if short else ""
    ahead = f"{len(rows) - len(short)} of {len(rows)} comparisons{but}"
    return f"{ours_at(unit)} is ahead, p < 0.05 after Holm, in {ahead}"
