"""Charts as values, and how they are drawn: panels of lines with bands, levels, marks and bars.

Everything a chart shows is in its panels, so a test can ask the value instead of the picture. Colours are Okabe and
Ito's, distinguishable with any kind of colour vision. Matplotlib's Agg canvas is used directly: no display, no global
state, no clock in the files. It is imported only when something is drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from math import isnan
from pathlib import Path
from typing import Any, Literal

import numpy as np

from dpsr.errors import ParameterError

BLUE, GREEN, PINK, ORANGE, SKY, VERMILION, GREY = (
    "#0072b2", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#d55e00", "#999999",
)  # fmt: skip

Dashes = str | tuple[int, tuple[int, ...]]


@dataclass(frozen=True)
class Line:
    """Points from left to right, joined unless `style` is "none", with a band of one deviation either way."""

    label: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    deviation: tuple[float, ...] = ()
    colour: str = "black"
    marker: str = "o"
    size: float = 4.0
    width: float = 1.3
    style: str = "-"
    band: float = 0.15
    on_top: bool = False


@dataclass(frozen=True)
class Level:
    """A height that does not depend on the axis."""

    label: str
    y: float
    colour: str = "black"
    style: Dashes = "--"
    width: float = 1.1


@dataclass(frozen=True)
class Bars:
    """One bar per tick."""

    label: str
    heights: tuple[float, ...]
    colour: str


@dataclass(frozen=True)
class Panel:
    """One pair of axes. `limits` are the lowest and highest y shown; `ticks` places on the x axis with their labels."""

    title: str
    across: str
    up: str
    lines: tuple[Line, ...] = ()
    levels: tuple[Level, ...] = ()
    bars: tuple[Bars, ...] = ()
    ticks: tuple[tuple[float, str], ...] = ()
    log: bool = False
    limits: tuple[float, float] | None = None


@dataclass(frozen=True)
class Chart:
    """Rows of panels with one legend beside or below them. `name` is that of its files."""

    name: str
    panels: tuple[tuple[Panel, ...], ...]
    size: tuple[float, float]
    title: str = ""
    legend: Literal["right", "below"] = "right"
    legend_columns: int = 1
    margins: tuple[float, float, float, float] = (0.07, 0.76, 0.1, 0.93)
    """Left, right, bottom, top."""


def require_matplotlib() -> None:
    """An error that says what to install where charts cannot be drawn; asked before hours are spent measuring."""
    if find_spec("matplotlib") is None:
        raise ParameterError("charts are drawn with matplotlib, which is not installed. Install dpsr[plots].")


def epsilon_ticks(epsilons: Sequence[float]) -> tuple[tuple[float, str], ...]:
    """An axis of budgets."""
    return tuple((epsilon, f"{epsilon:g}") for epsilon in epsilons)


def write_chart(chart: Chart, folder: Path, *, dpi: int = 120) -> list[Path]:
    """PNG and SVG."""
    from matplotlib import rc_context

    figure, paths = draw(chart), [folder / f"{chart.name}.{ending}" for ending in ("png", "svg")]
    with rc_context({"svg.hashsalt": chart.name}):
        figure.savefig(paths[0], dpi=dpi)
        figure.savefig(paths[1], metadata={"Date": None})
    return paths


def draw(chart: Chart) -> Any:
    """The matplotlib figure of a chart."""
    require_matplotlib()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=chart.size)
    FigureCanvasAgg(figure)
    grid = figure.subplots(len(chart.panels), len(chart.panels[0]), squeeze=False)
    for row, panels in zip(grid, chart.panels, strict=True):
        for axes, panel in zip(row, panels, strict=True):
            _draw_panel(axes, panel)
    handles = {handle.get_label(): handle for axes in grid[0] for handle in axes.get_legend_handles_labels()[0]}
    place: Any = {"loc": "center right", "fontsize": 8}
    if chart.legend == "below":
        place = {"loc": "lower center", "fontsize": 9, "ncols": chart.legend_columns}
    figure.legend(handles.values(), handles.keys(), frameon=False, **place)
    if chart.title:
        figure.suptitle(chart.title)
    left, right, bottom, top = chart.margins
    figure.subplots_adjust(left=left, right=right, bottom=bottom, top=top, wspace=0.25, hspace=0.42)
    return figure


def _draw_panel(axes: Any, panel: Panel) -> None:
    for level in panel.levels:
        axes.axhline(level.y, color=level.colour, linestyle=level.style, linewidth=level.width, label=level.label)
    for line in panel.lines:
        _draw_line(axes, line)
    for place, bars in enumerate(panel.bars):
        width = 0.8 / len(panel.bars)
        left = -0.4 + width * (place + 0.5)
        axes.bar([x + left for x, _ in panel.ticks], bars.heights, width, label=bars.label, color=bars.colour)
    if panel.log:
        axes.set_xscale("log")
    if panel.ticks:
        axes.set_xticks([x for x, _ in panel.ticks], [label for _, label in panel.ticks])
    if panel.limits is not None:
        axes.set_ylim(*panel.limits)
    axes.minorticks_off()
    axes.set_xlabel(panel.across)
    axes.set_ylabel(panel.up)
    axes.set_title(panel.title, fontsize=11, loc="left")
    axes.grid(axis="y", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def _draw_line(axes: Any, line: Line) -> None:
    axes.plot(
        line.x, line.y, color=line.colour, marker=line.marker, markersize=line.size, linewidth=line.width,
        linestyle=line.style, label=line.label, zorder=3 if line.on_top else 2,
    )  # fmt: skip
    if line.deviation:
        y, spread = np.array(line.y), np.array([0.0 if isnan(d) else d for d in line.deviation])
        axes.fill_between(line.x, y - spread, y + spread, color=line.colour, alpha=line.band, linewidth=0)


def padded(heights: Sequence[float], share: float = 0.06) -> tuple[float, float] | None:
    """Limits with a little room below and above, also where there is one height; none where there are none."""
    if not heights:
        return None
    low, high = min(heights), max(heights)
    room = share * (high - low) or 0.1
    return low - room, high + room


def cropped(heights: Sequence[float]) -> tuple[float, float]:
    """Limits of the lower part, where methods compete: up to a little above four fifths of all points.

    Errors far above the others run out of the picture, never out of the data beside it.
    """
    low, high = min(heights), max(float(np.quantile(heights, 0.8)), 1.2 * min(heights))
    room = 0.05 * (high - low) or 0.1
    return low - room, min(high + 4 * room, max(heights) + room)
