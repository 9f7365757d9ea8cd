"""Figures 1 and 2 of the paper, ours and the printed one together, with the constant as a line in each.

Matplotlib's Agg canvas is used directly: no display, no global state.
"""

from __future__ import annotations

from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from dpsr.evaluate import printed
from dpsr.evaluate.experiment import NO_FACTORISATION, READINGS
from dpsr.evaluate.tables import Key, Summary

COLOURS = {"Laplace": "#0072b2", "Gaussian": "#009e73", "DPSR": "#d55e00", "DPSR matrix": "#cc79a7"}
"""Distinguishable with any kind of colour vision (Okabe and Ito)."""

_BARS = ("#999999", "#56b4e9", "#e69f00", "#d55e00")

_PANELS = (("rmse", None), ("precision", "chance_precision"), ("ndcg", "chance_ndcg"))


def figure_1(summaries: dict[Key, Summary], normalisation: str) -> Figure:
    """RMSE, P@10 and NDCG@10 against epsilon, one row per reading; bands are one standard deviation."""
    figure = _canvas(13, 3.6 * len(READINGS) + 0.8)
    grid = figure.subplots(len(READINGS), len(_PANELS), squeeze=False)
    for row, reading in zip(grid, READINGS, strict=True):
        for axes, (metric, chance) in zip(row, _PANELS, strict=True):
            _curves(axes, summaries, normalisation, reading.name, metric)
            _levels(axes, summaries, normalisation, reading.name, metric, chance)
            axes.set_title(f"factorisation {reading.name}", fontsize=10)
    handles = {h.get_label(): h for axes in grid[0] for h in axes.get_legend_handles_labels()[0]}
    figure.legend(handles.values(), handles.keys(), loc="lower center", ncols=5, frameon=False, fontsize=9)
    figure.suptitle(f"Privacy and accuracy, {normalisation} normalisation (not private: seeded, raw test ratings)")
    figure.subplots_adjust(left=0.06, right=0.98, bottom=0.13, top=0.92, wspace=0.25, hspace=0.42)
    return figure


def figure_2(summaries: dict[Key, Summary], normalisation: str) -> Figure:
    """RMSE improvement of DPSR over Laplace in percent: the paper's bars, and ours under each reading."""
    figure = _canvas(8.5, 4.6)
    axes = figure.subplots()
    budgets = [epsilon for epsilon in _budgets(summaries) if epsilon in printed.TABLE_2]
    groups = {"paper": [printed.TABLE_2[epsilon][0] for epsilon in budgets]}
    for reading in READINGS:
        groups[f"ours, {reading.name}"] = [_improvement(summaries, normalisation, reading.name, e) for e in budgets]
    width = 0.8 / len(groups)
    for place, (label, heights) in enumerate(groups.items()):
        left = -0.4 + width * (place + 0.5)
        axes.bar([x + left for x in range(len(budgets))], heights, width, label=label, color=_BARS[place])
    axes.axhline(0, color="black", linewidth=0.8)
    axes.set_xticks(range(len(budgets)), [f"{epsilon:g}" for epsilon in budgets])
    axes.set_xlabel("epsilon")
    axes.set_ylabel("RMSE below Laplace's, %")
    axes.set_title(f"DPSR (repaired) against Laplace, {normalisation} normalisation (not private)", fontsize=11)
    figure.legend(loc="lower center", ncols=len(groups), frameon=False, fontsize=9)
    figure.subplots_adjust(left=0.09, right=0.98, bottom=0.2, top=0.92)
    return figure


def _canvas(width: float, height: float) -> Figure:
    figure = Figure(figsize=(width, height))
    FigureCanvasAgg(figure)
    return figure


def _curves(axes: Any, summaries: dict[Key, Summary], normalisation: str, reading: str, metric: str) -> None:
    budgets = _budgets(summaries)
    for method, colour in COLOURS.items():
        home = NO_FACTORISATION if method.endswith("matrix") else reading
        rows = [summaries[normalisation, home, epsilon, method] for epsilon in budgets]
        mean, spread = ([getattr(row, field)[metric] for row in rows] for field in ("mean", "deviation"))
        axes.plot(budgets, mean, marker="o", markersize=4, color=colour, label=method)
        low, high = ([m + sign * s for m, s in zip(mean, spread, strict=True)] for sign in (-1, 1))
        axes.fill_between(budgets, low, high, color=colour, alpha=0.15, linewidth=0)
        theirs = [(e, printed.TABLE_1[e, method][metric].mean) for e in budgets if (e, method) in printed.TABLE_1]
        if theirs:
            axes.plot(*zip(*theirs, strict=True), "x", color=colour, alpha=0.7, label=f"{method}, paper")
    axes.set_xscale("log")
    axes.set_xticks(budgets, [f"{epsilon:g}" for epsilon in budgets])
    axes.minorticks_off()
    axes.set_xlabel("epsilon")
    axes.set_ylabel(printed.METRIC_TITLES[metric])


def _levels(
    axes: Any, summaries: dict[Key, Summary], normalisation: str, reading: str, metric: str, chance: str | None
) -> None:
    level = summaries[normalisation, reading, None, "No Privacy"].mean[metric]
    axes.axhline(level, color="#cc0000", linestyle=":", label="No Privacy")
    constant = summaries[normalisation, NO_FACTORISATION, None, "Constant"].mean
    if chance is None:
        axes.axhline(constant[metric], color="black", linestyle="--", label="Constant")
    else:
        axes.axhline(constant[chance], color="grey", linestyle="--", label="Random order")
    tuned = summaries[normalisation, NO_FACTORISATION, None, "ALS"].mean[metric]
    axes.axhline(tuned, color="black", linestyle="-.", linewidth=1, label="ALS, not private")


def _improvement(summaries: dict[Key, Summary], normalisation: str, reading: str, epsilon: float) -> float:
    ours, theirs = (summaries[normalisation, reading, epsilon, m].mean["rmse"] for m in ("DPSR", "Laplace"))
    return 100 * (1 - ours / theirs)


def _budgets(summaries: dict[Key, Summary]) -> list[float]:
    return sorted({key[2] for key in summaries if key[2] is not None})
