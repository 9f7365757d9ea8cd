"""What one number hides, as charts: error against epsilon, by popularity and activity, calibration, overlap of lists.

Every chart is a table first: method, place on the axis, height and a band of one standard deviation over seeds. The
picture is drawn from that table and from nothing else. Ours is drawn wide and on top; methods with another unit of
protection are dashed, for their epsilon means something else; methods without privacy are dotted, or black levels where
epsilon is the axis.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import isnan
from pathlib import Path

import numpy as np
import pyarrow as pa

from dpsr.arrays import Ints
from dpsr.evaluate.metrics.ranking import list_overlap
from dpsr.evaluate.registry import METHODS, OURS, REFERENCE
from dpsr.evaluate.report.charts import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PINK,
    SKY,
    VERMILION,
    Chart,
    Level,
    Line,
    Panel,
    cropped,
    write_chart,
)
from dpsr.evaluate.report.comparisons import Fits, split_of
from dpsr.evaluate.report.files import write_text
from dpsr.evaluate.report.tables import Table
from dpsr.evaluate.report.tidy import Mean, by_unit, is_ours, means, units_of
from dpsr.evaluate.runner.jobs import Job
from dpsr.evaluate.sets import RatingSet

COUNTS = (0, 1, 3, 6, 11, 21, 51, 101)
"""Least number of training ratings in each class of items or users."""

POPULARITY = "popularity"
"""The breakdown by training ratings of the item."""

_LABELS = (
    *(f"{low}" if high == low + 1 else f"{low}-{high - 1}" for low, high in pairwise(COUNTS)),
    f"{COUNTS[-1]}+",
)

_BINS = 10

_ERRORS = ("RMSE", "RMSE on held-out ratings")
"""Heights of which the lower part is shown."""


@dataclass(frozen=True)
class Point:
    """One mark of a chart: the mean over seeds and one standard deviation either way; `x` is NaN for a level."""

    method: str
    x: float
    label: str
    mean: Mean


@dataclass(frozen=True)
class Breakdown:
    """The points of a chart, and the words on its axes."""

    name: str
    set: str
    title: str
    across: str
    up: str
    points: tuple[Point, ...]
    log: bool = False
    diagonal: bool = False

    def table(self, units: Mapping[str, str]) -> Table:
        """The points as they are drawn."""
        rows = tuple(
            (self.set, p.method, units.get(p.method, ""), None if isnan(p.x) else p.x, p.label, *p.mean)
            for p in self.points
        )
        header = ("set", "method", "unit", "x", "label", "y", "deviation", "seeds")
        return Table(f"{self.name}_{self.set}", self.title, header, rows)

    def write(self, units: Mapping[str, str], folder: Path) -> list[Path]:
        """CSV, PNG and SVG."""
        table = self.table(units)
        return [
            write_text(folder / f"{table.name}.csv", table.csv()),
            *write_chart(chart_of(self, units), folder),
        ]


def breakdowns(fits: Fits, table: pa.Table, shown_at: float | None) -> list[Breakdown]:
    """Everything, of all sets; what is shown at one epsilon only is taken at `shown_at`."""
    found = []
    for ratings in fits.sets:
        found += [*_frontiers(table, ratings), _improvement(fits, table, ratings), _overlap(fits, ratings)]
        if shown_at is not None:
            found += _by_class(fits, ratings, shown_at)
            found.append(_calibration(fits, ratings, shown_at))
    return [one for one in found if one.points]


def _frontiers(table: pa.Table, ratings: RatingSet) -> list[Breakdown]:
    """One for each unit of protection: two units have no axis in common."""
    found = means(table, ("set", "method", "epsilon"), "rmse")
    charts = []
    for unit, methods in by_unit(units_of(table)).items():
        points = tuple(
            Point(method, float("nan") if epsilon is None else epsilon, _epsilon(epsilon), mean)
            for (name, method, epsilon), mean in found.items()
            if name == ratings.name and method in methods
        )
        name = "frontier" if is_ours(unit) else f"frontier_{unit.split()[0]}"
        across, up = f"ε for one {unit} (smaller is more private)", _ERRORS[1]
        charts.append(Breakdown(name, ratings.name, "privacy and accuracy", across, up, points, log=True))
    return charts


def _improvement(fits: Fits, table: pa.Table, ratings: RatingSet) -> Breakdown:
    """100 (1 - ours / theirs), seed by seed."""
    errors = {
        (row["method"], row["epsilon"], row["seed"]): row["rmse"]
        for row in table.to_pylist()
        if row["set"] == ratings.name and row["rmse"] is not None
    }
    points = []
    for method in fits.methods:
        for epsilon in fits.epsilons:
            gains = [
                100 * (1 - ours / theirs)
                for (name, at, seed), ours in errors.items()
                if (name, at) == (OURS, epsilon)
                and (theirs := errors.get((method, epsilon, seed), errors.get((method, None, seed)))) is not None
            ]
            if gains and method != OURS:
                points.append(Point(method, epsilon, _epsilon(epsilon), Mean.of(gains)))
    title, up = f"how far {OURS} is below each method", f"RMSE of {OURS} below the method's, %"
    return Breakdown("improvement", ratings.name, title, "ε", up, tuple(points), log=True)


def _overlap(fits: Fits, ratings: RatingSet) -> Breakdown:
    references = fits.at(ratings, REFERENCE, None)
    points = []
    for method in fits.methods:
        for epsilon in fits.epsilons:
            runs = fits.at(ratings, method, epsilon)
            shares = [
                list_overlap(fits.predictions(runs[seed]).lists, fits.predictions(references[seed]).lists)
                for seed in sorted(runs.keys() & references.keys())
            ]
            if shares and method != REFERENCE:
                points.append(Point(method, epsilon, _epsilon(epsilon), Mean.of(shares)))
    title = f"top-10 lists shared with {REFERENCE}, not private"
    return Breakdown("overlap", ratings.name, title, "ε", "share of items in common", tuple(points), log=True)


def _by_class(fits: Fits, ratings: RatingSet, epsilon: float) -> list[Breakdown]:
    def of_items(job: Job) -> Ints:
        train, test = split_of(job)
        return train.mask.item_counts[test.mask.items]

    def of_users(job: Job) -> Ints:
        train, test = split_of(job)
        return train.mask.user_counts[test.mask.users]

    at = f"at ε = {epsilon:g}"
    return [
        Breakdown(
            POPULARITY, ratings.name, f"error by item popularity {at}", "training ratings of the item", "RMSE",
            _classes(fits, ratings, epsilon, of_items),
        ),
        Breakdown(
            "activity", ratings.name, f"error by user activity {at}", "training ratings of the user", "RMSE",
            _classes(fits, ratings, epsilon, of_users),
        ),
    ]  # fmt: skip


def _classes(fits: Fits, ratings: RatingSet, epsilon: float, count: Callable[[Job], Ints]) -> tuple[Point, ...]:
    points = []
    for method in fits.methods:
        heights: list[list[float]] = [[] for _ in COUNTS]
        for job in fits.at(ratings, method, epsilon).values():
            errors, place = fits.squared_errors(job), np.searchsorted(COUNTS, count(job), side="right") - 1
            for index, values in enumerate(heights):
                if np.isfinite(errors[place == index]).any():
                    values.append(float(np.sqrt(np.mean(errors[place == index]))))
        points += [Point(method, float(i), _LABELS[i], Mean.of(v)) for i, v in enumerate(heights) if v]
    return tuple(points)


def _calibration(fits: Fits, ratings: RatingSet, epsilon: float) -> Breakdown:
    """Mean test rating against mean prediction, in ten classes of equal size by prediction."""
    points = []
    for method in fits.methods:
        pairs: list[list[tuple[float, float]]] = [[] for _ in range(_BINS)]
        for job in fits.at(ratings, method, epsilon).values():
            truth, predicted = split_of(job).test.values, fits.predictions(job).predicted.astype(np.float64)
            if not np.isfinite(predicted).all() or np.ptp(predicted) == 0:
                continue
            for index, part in enumerate(np.array_split(np.argsort(predicted, kind="stable"), _BINS)):
                pairs[index].append((float(predicted[part].mean()), float(truth[part].mean())))
        for index, found in enumerate(pairs):
            if found:
                at = float(np.mean([x for x, _ in found]))
                points.append(Point(method, at, str(index + 1), Mean.of([y for _, y in found])))
    title = f"calibration at ε = {epsilon:g}"
    across, up = "mean prediction of a tenth of the test ratings", "mean rating"
    return Breakdown("calibration", ratings.name, title, across, up, tuple(points), diagonal=True)


def _epsilon(epsilon: float | None) -> str:
    return "none" if epsilon is None else f"{epsilon:g}"


_COLOURS = (BLUE, GREEN, PINK, ORANGE, SKY, "#7f3c8d", "#8c564b", GREY)
_MARKERS = "os^Dv<>PX*"
"""Markers tell repeated colours apart."""
_LEVELS = ((), (6, 2), (2, 2), (6, 2, 2, 2), (1, 3), (8, 2, 1, 2, 1, 2))


def chart_of(breakdown: Breakdown, units: Mapping[str, str]) -> Chart:
    """The chart of one breakdown. A method looks the same in every chart."""
    points = breakdown.points
    methods = sorted({p.method for p in points}, key=lambda name: (name == OURS, name))
    places = {name: place for place, name in enumerate(dict.fromkeys((*sorted(METHODS), *methods)))}
    levels, lines = [], []
    for method in methods:
        mine = sorted((p for p in points if p.method == method), key=lambda p: p.x)
        if all(isnan(p.x) for p in mine):
            style = (0, _LEVELS[places[method] % len(_LEVELS)])
            levels.append(Level(f"{method} (no privacy)", mine[0].mean.value, style=style, width=1))
        else:
            lines.append(_line(method, mine, places[method], units.get(method, "")))
    ticks: tuple[tuple[float, str], ...] = tuple(sorted({(p.x, p.label) for p in points if not isnan(p.x)}))
    if breakdown.diagonal:
        ends = min(p.x for p in points), max(p.x for p in points)
        lines.append(Line("calibrated", ends, ends, marker="", width=0.8))
        ticks = ()
    limits = cropped([p.mean.value for p in points]) if breakdown.up in _ERRORS else None
    title = f"{breakdown.set}: {breakdown.title} (not private)"
    panel = Panel(
        title, breakdown.across, breakdown.up, tuple(lines), tuple(levels), ticks=ticks,
        log=breakdown.log and bool(ticks), limits=limits,
    )  # fmt: skip
    return Chart(f"{breakdown.name}_{breakdown.set}", ((panel,),), (11, 6))


def _line(method: str, points: Sequence[Point], place: int, unit: str) -> Line:
    ours = method == OURS
    return Line(
        method if is_ours(unit) or not unit else f"{method} [{unit}]",
        tuple(p.x for p in points),
        tuple(p.mean.value for p in points),
        tuple(p.mean.deviation for p in points),
        colour=VERMILION if ours else _COLOURS[place % len(_COLOURS)],
        marker=_MARKERS[place % len(_MARKERS)],
        width=2.6 if ours else 1.3,
        style="-" if is_ours(unit) else ":" if unit == "none" else "--",
        on_top=ours,
    )
