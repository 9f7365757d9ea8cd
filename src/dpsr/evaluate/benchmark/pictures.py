"""Charts as PNG and SVG beside the CSV of their points.

Ours is drawn wide and on top; methods with another unit of protection are dashed, for their epsilon means something
else; methods without privacy are dotted, or black levels where epsilon is the axis. Errors far above the others run out
of the picture, never out of the CSV. Matplotlib's Agg canvas is used directly: no display, no global state.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isnan
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from dpsr.evaluate.benchmark.methods import OURS
from dpsr.evaluate.benchmark.slices import Chart, Point
from dpsr.evaluate.peers.registry import peer_names
from dpsr.evaluate.tables import Table

_COLOURS = ("#0072b2", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f3c8d", "#8c564b", "#999999")
"""Okabe and Ito's, distinguishable with any kind of colour vision, with two more; markers tell repeats apart."""
_OURS, _MARKERS, _LEVELS = "#d55e00", "os^Dv<>PX*", ((), (6, 2), (2, 2), (6, 2, 2, 2), (1, 3), (8, 2, 1, 2, 1, 2))
SAME_UNIT = "rating value"


def points_table(chart: Chart, units: Mapping[str, str]) -> Table:
    """The points as they are drawn."""
    rows = tuple(
        (chart.set, p.method, units.get(p.method, ""), None if isnan(p.x) else p.x, p.label, p.y, p.deviation, p.seeds)
        for p in chart.points
    )
    header = ("set", "method", "unit", "x", "label", "y", "deviation", "seeds")
    return Table(f"{chart.name}_{chart.set}", chart.title, header, rows)


def write_chart(chart: Chart, units: Mapping[str, str], folder: Path) -> list[Path]:
    """PNG, SVG and CSV."""
    name = f"{chart.name}_{chart.set}"
    paths = [folder / f"{name}.{ending}" for ending in ("csv", "png", "svg")]
    paths[0].write_text(points_table(chart, units).csv(), encoding="utf-8")
    figure = draw(chart, units)
    with rc_context({"svg.hashsalt": name}):
        figure.savefig(paths[1], dpi=120)
        figure.savefig(paths[2], metadata={"Date": None})
    return paths


def draw(chart: Chart, units: Mapping[str, str]) -> Figure:
    """The picture of one chart."""
    figure = Figure(figsize=(11, 6))
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    methods = sorted({p.method for p in chart.points}, key=lambda name: (name == OURS, name))
    places = _places(methods)
    for method in methods:
        place = places[method]
        mine = [p for p in chart.points if p.method == method]
        if all(isnan(p.x) for p in mine):
            style = (0, _LEVELS[place % len(_LEVELS)])
            axes.axhline(mine[0].y, color="black", linestyle=style, linewidth=1, label=f"{method} (no privacy)")
        else:
            _line(axes, mine, method, place, _style(units.get(method, "")))
    _dress(axes, chart)
    figure.legend(*axes.get_legend_handles_labels(), loc="center right", frameon=False, fontsize=8)
    figure.subplots_adjust(left=0.07, right=0.76, bottom=0.1, top=0.93)
    return figure


def _places(methods: Sequence[str]) -> dict[str, int]:
    """Which colour and marker a method has: the same in every chart; somebody's own methods come after ours."""
    return {name: place for place, name in enumerate(dict.fromkeys((*sorted(peer_names()), *methods)))}


def _style(unit: str) -> str:
    return {SAME_UNIT: "-", "none": ":"}.get(unit, "--")


def _line(axes: Any, points: Sequence[Point], method: str, place: int, style: str) -> None:
    points = sorted(points, key=lambda p: p.x)
    x, y = [p.x for p in points], [p.y for p in points]
    ours = method == OURS
    colour = _OURS if ours else _COLOURS[place % len(_COLOURS)]
    axes.plot(
        x, y, color=colour, marker=_MARKERS[place % len(_MARKERS)], markersize=4, linewidth=2.6 if ours else 1.3,
        linestyle=style, label=method, zorder=3 if ours else 2,
    )  # fmt: skip
    spread = np.array([0.0 if isnan(p.deviation) else p.deviation for p in points])
    axes.fill_between(x, y - spread, y + spread, color=colour, alpha=0.15, linewidth=0)


def _dress(axes: Any, chart: Chart) -> None:
    placed = sorted({(p.x, p.label) for p in chart.points if not isnan(p.x)})
    if chart.log and placed:
        axes.set_xscale("log")
    if chart.diagonal:
        ends = [min(p.x for p in chart.points), max(p.x for p in chart.points)]
        axes.plot(ends, ends, color="black", linewidth=0.8, label="calibrated")
    else:
        axes.set_xticks([x for x, _ in placed], [label for _, label in placed])
    if chart.up.startswith("RMSE on") or chart.up == "RMSE":
        _crop(axes, [p.y for p in chart.points])
    axes.minorticks_off()
    axes.set_xlabel(chart.across)
    axes.set_ylabel(chart.up)
    axes.set_title(f"{chart.set}: {chart.title} (not private)", fontsize=11, loc="left")
    axes.grid(axis="y", color="#dddddd", linewidth=0.6)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def _crop(axes: Any, heights: Sequence[float]) -> None:
    """Show the lower part, where methods compete: up to a little above four fifths of all points."""
    low, high = min(heights), max(float(np.quantile(heights, 0.8)), 1.2 * min(heights))
    room = 0.05 * (high - low) or 0.1
    axes.set_ylim(low - room, min(high + 4 * room, max(heights) + room))
