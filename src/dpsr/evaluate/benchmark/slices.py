"""What one number hides, as points of charts: error by popularity and activity, calibration, overlap of lists.

Every chart is a table first: method, place on the axis, height and a band of one standard deviation over seeds. The
picture is drawn from that table and from nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dpsr.evaluate.benchmark.claims import Done, split_of, squared_errors
from dpsr.evaluate.benchmark.details import overlap
from dpsr.evaluate.benchmark.jobs import Job
from dpsr.evaluate.benchmark.methods import OURS, REFERENCE
from dpsr.evaluate.benchmark.sets import Source
from dpsr.evaluate.benchmark.table import means

COUNTS = (0, 1, 3, 6, 11, 21, 51, 101)
"""Least number of training ratings in each class of items or users."""

_LABELS = (
    *(f"{low}" if high == low + 1 else f"{low}-{high - 1}" for low, high in pairwise(COUNTS)),
    f"{COUNTS[-1]}+",
)

_BINS = 10


@dataclass(frozen=True)
class Point:
    """One mark of a chart: the mean over seeds and one standard deviation either way."""

    method: str
    x: float
    label: str
    y: float
    deviation: float
    seeds: int


@dataclass(frozen=True)
class Chart:
    """A picture that has not been drawn: its points, and the words on its axes."""

    name: str
    set: str
    title: str
    across: str
    up: str
    points: tuple[Point, ...]
    log: bool = False
    diagonal: bool = False


def charts(done: Done, table: pa.Table, shown_at: float | None) -> list[Chart]:
    """All charts of all sets; those for one epsilon only are made at `shown_at`."""
    found = []
    for source in done.sources:
        found += [_frontier(table, source), _improvement(done, table, source), _overlap(done, source)]
        if shown_at is not None:
            found += _by_class(done, source, shown_at)
            found.append(_calibration(done, source, shown_at))
    return [chart for chart in found if chart.points]


def _frontier(table: pa.Table, source: Source) -> Chart:
    points = tuple(
        Point(method, _place(epsilon), _epsilon(epsilon), *numbers)
        for (name, method, epsilon), numbers in means(table, ("set", "method", "epsilon"), "rmse").items()
        if name == source.name
    )
    return Chart(
        "frontier", source.name, "privacy and accuracy", "ε (smaller is more private)", "RMSE on held-out ratings",
        points, log=True,
    )  # fmt: skip


def _improvement(done: Done, table: pa.Table, source: Source) -> Chart:
    """100 (1 - ours / theirs), seed by seed."""
    errors = {
        (row["method"], row["epsilon"], row["seed"]): row["rmse"]
        for row in table.to_pylist()
        if row["set"] == source.name and row["rmse"] is not None
    }
    points = []
    for method in done.methods:
        for epsilon in done.epsilons:
            gains = [
                100 * (1 - ours / theirs)
                for (name, at, seed), ours in errors.items()
                if (name, at) == (OURS, epsilon)
                and (theirs := errors.get((method, epsilon, seed), errors.get((method, None, seed)))) is not None
            ]
            if gains and method != OURS:
                points.append(_point(method, epsilon, _epsilon(epsilon), gains))
    title, up = f"how far {OURS} is below each method", f"RMSE of {OURS} below the method's, %"
    return Chart("improvement", source.name, title, "ε", up, tuple(points), log=True)


def _overlap(done: Done, source: Source) -> Chart:
    references = done.of(source, REFERENCE, None)
    points = []
    for method in done.methods:
        for epsilon in done.epsilons:
            runs = done.of(source, method, epsilon)
            shares = [
                overlap(done.details(runs[seed]).lists, done.details(references[seed]).lists)
                for seed in sorted(runs.keys() & references.keys())
            ]
            if shares and method != REFERENCE:
                points.append(_point(method, epsilon, _epsilon(epsilon), shares))
    title = f"top-10 lists shared with {REFERENCE}, not private"
    return Chart("overlap", source.name, title, "ε", "share of items in common", tuple(points), log=True)


def _by_class(done: Done, source: Source, epsilon: float) -> list[Chart]:
    def of_items(job: Job) -> npt.NDArray[np.int64]:
        train, test = split_of(job.source, job.seed)
        return train.mask.item_counts[test.mask.items]

    def of_users(job: Job) -> npt.NDArray[np.int64]:
        train, test = split_of(job.source, job.seed)
        return train.mask.user_counts[test.mask.users]

    at = f"at ε = {epsilon:g}"
    return [
        Chart(
            "popularity", source.name, f"error by item popularity {at}", "training ratings of the item", "RMSE",
            _classes(done, source, epsilon, of_items),
        ),
        Chart(
            "activity", source.name, f"error by user activity {at}", "training ratings of the user", "RMSE",
            _classes(done, source, epsilon, of_users),
        ),
    ]  # fmt: skip


def _classes(
    done: Done, source: Source, epsilon: float, count: Callable[[Job], npt.NDArray[np.int64]]
) -> tuple[Point, ...]:
    points = []
    for method in done.methods:
        heights: list[list[float]] = [[] for _ in COUNTS]
        for job in done.of(source, method, epsilon).values():
            errors, place = squared_errors(done, job), np.searchsorted(COUNTS, count(job), side="right") - 1
            for index, values in enumerate(heights):
                if np.isfinite(errors[place == index]).any():
                    values.append(float(np.sqrt(np.mean(errors[place == index]))))
        points += [_point(method, float(i), _LABELS[i], values) for i, values in enumerate(heights) if values]
    return tuple(points)


def _calibration(done: Done, source: Source, epsilon: float) -> Chart:
    """Mean test rating against mean prediction, in ten classes of equal size by prediction."""
    points = []
    for method in done.methods:
        pairs: list[list[tuple[float, float]]] = [[] for _ in range(_BINS)]
        for job in done.of(source, method, epsilon).values():
            truth, predicted = split_of(source, job.seed)[1].values, done.details(job).predicted.astype(np.float64)
            if not np.isfinite(predicted).all() or np.ptp(predicted) == 0:
                continue
            for index, part in enumerate(np.array_split(np.argsort(predicted, kind="stable"), _BINS)):
                pairs[index].append((float(predicted[part].mean()), float(truth[part].mean())))
        for index, found in enumerate(pairs):
            if found:
                at = float(np.mean([x for x, _ in found]))
                points.append(_point(method, at, str(index + 1), [y for _, y in found]))
    title = f"calibration at ε = {epsilon:g}"
    across, up = "mean prediction of a tenth of the test ratings", "mean rating"
    return Chart("calibration", source.name, title, across, up, tuple(points), diagonal=True)


def _point(method: str, x: float, label: str, values: Sequence[float]) -> Point:
    deviation = float(np.std(values, ddof=1)) if len(values) > 1 else float("nan")
    return Point(method, x, label, float(np.mean(values)), deviation, len(values))


def _place(epsilon: float | None) -> float:
    """Methods without a budget have no place on the axis: they are levels."""
    return float("nan") if epsilon is None else epsilon


def _epsilon(epsilon: float | None) -> str:
    return "none" if epsilon is None else f"{epsilon:g}"
