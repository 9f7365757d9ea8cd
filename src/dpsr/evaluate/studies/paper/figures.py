"""Figures 1 and 2 of the paper, ours and the printed one together, with the constant as a line in each."""

from __future__ import annotations

from dpsr.evaluate.baselines.factorisation import TRAINING_CHOICES
from dpsr.evaluate.report.charts import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PINK,
    SKY,
    VERMILION,
    Bars,
    Chart,
    Level,
    Line,
    Panel,
    epsilon_ticks,
)
from dpsr.evaluate.studies.paper import printed
from dpsr.evaluate.studies.paper.tables import NO_FACTORISATION, Summaries, budgets_of

COLOURS = {"Laplace": BLUE, "Gaussian": GREEN, "DPSR": VERMILION, "DPSR matrix": PINK}

_BARS = (GREY, SKY, ORANGE, VERMILION)

_CHANCE = {"rmse": None, "precision_at_10": "chance_precision", "ndcg_at_10": "chance_ndcg"}
"""The metrics of Figure 1, and what a random order is expected to get."""


def figure_1(summaries: Summaries, normalisation: str) -> Chart:
    """RMSE, P@10 and NDCG@10 against epsilon, one row per reading; bands are one standard deviation."""
    ticks = epsilon_ticks(budgets_of(summaries))
    panels = tuple(
        tuple(
            Panel(
                f"factorisation {reading}", "epsilon", printed.METRIC_TITLES[metric],
                _curves(summaries, normalisation, reading, metric),
                _levels(summaries, normalisation, reading, metric), ticks=ticks, log=True,
            )
            for metric in _CHANCE
        )
        for reading in TRAINING_CHOICES
    )  # fmt: skip
    title = f"Privacy and accuracy, {normalisation} normalisation (not private: seeded, raw test ratings)"
    size = (13, 3.6 * len(panels) + 0.8)
    margins = (0.06, 0.98, 0.13, 0.92)
    return Chart(f"figure1_{normalisation}", panels, size, title, legend="below", legend_columns=5, margins=margins)


def figure_2(summaries: Summaries, normalisation: str) -> Chart:
    """RMSE improvement of DPSR over Laplace in percent: the paper's bars, and ours under each reading."""
    budgets = [epsilon for epsilon in budgets_of(summaries) if epsilon in printed.TABLE_2]
    groups = {"paper": [printed.TABLE_2[epsilon][0] for epsilon in budgets]}
    for reading in TRAINING_CHOICES:
        groups[f"ours, {reading}"] = [_improvement(summaries, normalisation, reading, e) for e in budgets]
    bars = tuple(
        Bars(label, tuple(group), colour) for (label, group), colour in zip(groups.items(), _BARS, strict=True)
    )
    panel = Panel(
        f"DPSR (repaired) against Laplace, {normalisation} normalisation (not private)", "epsilon",
        "RMSE below Laplace's, %", levels=(Level("_zero", 0.0, style="-", width=0.8),), bars=bars,
        ticks=tuple((float(place), f"{epsilon:g}") for place, epsilon in enumerate(budgets)),
    )  # fmt: skip
    margins = (0.09, 0.98, 0.2, 0.92)
    return Chart(
        f"figure2_{normalisation}", ((panel,),), (8.5, 4.6), legend="below", legend_columns=len(bars), margins=margins
    )


def _curves(summaries: Summaries, normalisation: str, reading: str, metric: str) -> tuple[Line, ...]:
    budgets, lines = tuple(budgets_of(summaries)), []
    for method, colour in COLOURS.items():
        home = NO_FACTORISATION if method.endswith("matrix") else reading
        means = [summaries[normalisation, home, epsilon, method].metrics[metric] for epsilon in budgets]
        lines.append(
            Line(method, budgets, tuple(m.value for m in means), tuple(m.deviation for m in means), colour, width=1.5)
        )
        theirs = [(e, printed.TABLE_1[e, method][metric].mean) for e in budgets if (e, method) in printed.TABLE_1]
        if theirs:
            x, y = zip(*theirs, strict=True)
            lines.append(Line(f"{method}, paper", x, y, colour=colour, marker="x", size=6, style="none"))
    return tuple(lines)


def _levels(summaries: Summaries, normalisation: str, reading: str, metric: str) -> tuple[Level, ...]:
    def level(method: str, home: str, name: str) -> float:
        return summaries[normalisation, home, None, method].metrics[name].value

    chance = _CHANCE[metric]
    floor = (
        Level("Constant", level("Constant", NO_FACTORISATION, metric))
        if chance is None
        else Level("Random order", level("Constant", NO_FACTORISATION, chance), colour="grey")
    )
    return (
        Level("No Privacy", level("No Privacy", reading, metric), colour="#cc0000", style=":"),
        floor,
        Level("ALS, not private", level("ALS", NO_FACTORISATION, metric), style="-.", width=1),
    )


def _improvement(summaries: Summaries, normalisation: str, reading: str, epsilon: float) -> float:
    ours, theirs = (summaries[normalisation, reading, epsilon, m].metrics["rmse"].value for m in ("DPSR", "Laplace"))
    return 100 * (1 - ours / theirs)
