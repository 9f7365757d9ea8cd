"""The frontier as a chart: error against epsilon, methods as lines, yardsticks as levels, goals as marks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from dpsr.evaluate.report.charts import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PINK,
    VERMILION,
    Chart,
    Level,
    Line,
    Panel,
    epsilon_ticks,
    padded,
)
from dpsr.evaluate.report.tidy import Averages
from dpsr.evaluate.studies.frontier.tables import TITLES
from dpsr.evaluate.studies.frontier.targets import TARGETS, Targets

LINES = {
    "dpsr": (VERMILION, "o", 2.6),
    "dpsr-personalised": (ORANGE, "P", 1.6),
    "dpsr-paper": (PINK, "s", 1.6),
    "dpsr-as-published": (GREY, "v", 1.2),
    "laplace-als": (BLUE, "^", 1.6),
    "gaussian-als": (GREEN, "D", 1.6),
}
"""Colour, marker and width of private methods."""

LEVELS = {"constant": "--", "bias": "-.", "als": ":"}


@dataclass(frozen=True)
class Look:
    """How a chart shows methods: titles, colour, marker and width of lines, styles of levels, goals, the axes."""

    titles: Mapping[str, str]
    lines: Mapping[str, tuple[str, str, float]]
    levels: Mapping[str, str]
    targets: Mapping[str, Targets]
    axis: str
    number: str = "rmse"
    up: str = "RMSE on held-out ratings"
    aim: str = "aim below"


VALUES = Look(TITLES, LINES, LEVELS, TARGETS, "ε per rating (smaller is more private)")


def frontier_chart(
    rows: pa.Table, name: str, epsilons: Sequence[float], look: Look = VALUES, called: str | None = None
) -> Chart:
    """RMSE, or what the look names, against epsilon: methods as lines, yardsticks as levels, targets as marks."""
    averages = Averages(rows)
    lines = [line for method in look.lines if (line := _line(averages, name, method, epsilons, look)) is not None]
    levels = tuple(
        Level(look.titles[method], mean.value, style=style)
        for method, style in look.levels.items()
        if (mean := averages.at(name, method, None, look.number)) is not None
    )
    heights = [y for line in lines for y in line.y] + [level.y for level in levels]
    aims = look.targets.get(name, Targets()).aim
    goals = [(epsilon, aims[epsilon]) for epsilon in epsilons if epsilon in aims]
    if goals:
        x, y = zip(*goals, strict=True)
        lines.append(Line(look.aim, x, y, marker="_", size=13, style="none"))
    panel = Panel(
        f"{name}: privacy and accuracy (not private: seeded, raw test ratings)",
        look.axis, look.up, tuple(lines), levels,
        ticks=epsilon_ticks(epsilons), log=True, limits=padded(heights),
    )  # fmt: skip
    margins = (0.08, 0.98, 0.28, 0.94)
    return Chart(called or f"frontier_{name}", ((panel,),), (9, 6.6), legend="below", legend_columns=2, margins=margins)


def _line(averages: Averages, name: str, method: str, epsilons: Sequence[float], look: Look) -> Line | None:
    means = {epsilon: averages.at(name, method, epsilon, look.number) for epsilon in epsilons}
    found = [(epsilon, mean) for epsilon, mean in means.items() if mean is not None]
    if not found:
        return None
    colour, marker, width = look.lines[method]
    return Line(
        look.titles[method], tuple(e for e, _ in found), tuple(m.value for _, m in found),
        tuple(m.deviation for _, m in found), colour, marker, size=5, width=width, band=0.2,
    )  # fmt: skip
