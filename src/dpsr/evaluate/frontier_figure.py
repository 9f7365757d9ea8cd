"""RMSE against epsilon on one set: private methods as lines with bands, yardsticks as levels.

Matplotlib's Agg canvas is used directly: no display, no global state.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from dpsr.evaluate.frontier_methods import CONSTANT, METHODS, OURS
from dpsr.evaluate.frontier_records import Averages
from dpsr.evaluate.frontier_sets import TARGETS, Targets

LINES = {
    OURS: ("#d55e00", "o", 2.6),
    "paper": ("#cc79a7", "s", 1.6),
    "published": ("#999999", "v", 1.2),
    "laplace": ("#0072b2", "^", 1.6),
    "gaussian": ("#009e73", "D", 1.6),
}
"""Colour, marker and width; distinguishable with any kind of colour vision (Okabe and Ito)."""

LEVELS = {CONSTANT: "--", "bias": "-.", "als": ":"}


def draw(averages: Averages, name: str, epsilons: Sequence[float]) -> Figure:
    """The picture of one set."""
    figure = Figure(figsize=(9, 6))
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    heights = [height for method in LINES for height in _line(axes, averages, name, method, epsilons)]
    heights += _levels(axes, averages, name, epsilons)
    _targets(axes, TARGETS.get(name, Targets()), epsilons)
    axes.set_xscale("log")
    axes.set_xticks(list(epsilons), [f"{epsilon:g}" for epsilon in epsilons])
    axes.minorticks_off()
    axes.set_xlabel("ε per rating (smaller is more private)")
    axes.set_ylabel("RMSE on held-out ratings")
    axes.set_title(f"{name}: privacy and accuracy (not private: seeded, raw test ratings)", fontsize=11, loc="left")
    axes.grid(axis="y", color="#dddddd", linewidth=0.6)
    _limit(axes, heights)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    figure.legend(*axes.get_legend_handles_labels(), loc="lower center", ncols=3, frameon=False, fontsize=9)
    figure.subplots_adjust(left=0.08, right=0.98, bottom=0.22, top=0.93)
    return figure


def _line(axes: Any, averages: Averages, name: str, method: str, epsilons: Sequence[float]) -> list[float]:
    found = [(e, m) for e in epsilons if (m := averages.at(name, method, e)) is not None]
    if not found:
        return []
    colour, marker, width = LINES[method]
    budgets, means = [e for e, _ in found], [m for _, m in found]
    spreads = [averages.spread(name, method, e) for e in budgets]
    axes.plot(budgets, means, color=colour, marker=marker, markersize=5, linewidth=width, label=METHODS[method].title)
    if all(s == s for s in spreads):
        low, high = ([m + sign * s for m, s in zip(means, spreads, strict=True)] for sign in (-1, 1))
        axes.fill_between(budgets, low, high, color=colour, alpha=0.2, linewidth=0)
    return means


def _levels(axes: Any, averages: Averages, name: str, epsilons: Sequence[float]) -> list[float]:
    heights = []
    for method, style in LEVELS.items():
        height = averages.at(name, method, epsilons[0])
        if height is not None:
            axes.axhline(height, color="black", linestyle=style, linewidth=1.1, label=METHODS[method].title)
            heights.append(height)
    return heights


def _targets(axes: Any, targets: Targets, epsilons: Sequence[float]) -> None:
    goals = [(e, targets.aim[e]) for e in epsilons if e in targets.aim]
    if goals:
        axes.plot(*zip(*goals, strict=True), "_", color="black", markersize=13, label="aim below")


def _limit(axes: Any, heights: list[float]) -> None:
    """A little room below and above, also where there is one height or none."""
    if heights:
        low, high = min(heights), max(heights)
        room = 0.06 * (high - low) or 0.1
        axes.set_ylim(low - room, high + room)
