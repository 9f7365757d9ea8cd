"""What each epsilon would buy, in the words of the page: error in rating points, odds, and whom the unit would need.

`forecast` is the one place that knows which command answers for which unit.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log
from typing import Any

from dpsr.certify.odds import belief_at_most, factor_text, percent_up
from dpsr.studio import commands
from dpsr.studio.asking import Answers
from dpsr.studio.choices import Choices

WIDTH, HEIGHT, EDGE = 640, 220, 12
"""Of the plot, in its own units."""

NO_FORECAST = (
    "This version has no forecast for this unit. On two public sets at ε = 1 the error was 0.88 stars of five for 610 "
    "people at the unit rating and 0.93 at the unit user (which unit do I need?). Try it on a budget you can spare."
)


@dataclass(frozen=True)
class Step:
    """One stop of the slider: where it is drawn and what is said there."""

    epsilon: str
    error: float
    share: float
    x: float
    y: float
    factor: str
    guess: str

    @property
    def error_text(self) -> str:
        return f"{self.error:.2f}"

    @property
    def share_text(self) -> str:
        return f"{100 * self.share:.0f} %"


@dataclass(frozen=True)
class Frontier:
    """All stops, or why there are none; `needs` says how many people the unit would need, where that is known."""

    steps: tuple[Step, ...]
    words: str = ""
    needs: str = ""
    spread_assumed: bool = True
    refused: bool = False

    @property
    def line(self) -> str:
        """The curve as points of an SVG."""
        return " ".join(f"{step.x:.1f},{step.y:.1f}" for step in self.steps)


def forecast(chosen: Choices, answers: Answers) -> Frontier:
    """The frontier of the chosen unit. At the unit `value` it is `dpsr plan`, which reads no rating."""
    if chosen.unit != "value":
        return Frontier(tuple(_steps([])), words=NO_FORECAST)
    found = answers.of(commands.plan(chosen), chosen.source)
    if found.refused:
        return Frontier((), words=found.words, refused=True)
    return Frontier(
        tuple(_steps(found.record["forecasts"])),
        needs="Nobody more: at this unit every rating is protected by itself, however few people there are.",
        spread_assumed=bool(found.record["spread_assumed"]),
    )


def _steps(rows: list[dict[str, Any]]) -> list[Step]:
    if not rows:
        return [_step(float(epsilon), 0.0, 0.0, 0.0, 0.0) for epsilon in commands.GRID]
    shares = [row["share"] for row in rows]
    low, high = min(shares), max(shares)
    left, right = log(rows[0]["epsilon"]), log(rows[-1]["epsilon"])
    return [
        _step(
            row["epsilon"],
            row["rmse"],
            row["share"],
            EDGE + (WIDTH - 2 * EDGE) * (log(row["epsilon"]) - left) / (right - left),
            EDGE + (HEIGHT - 2 * EDGE) * (high - row["share"]) / max(high - low, 1e-9),
        )
        for row in rows
    ]


def _step(epsilon: float, error: float, share: float, x: float, y: float) -> Step:
    most = percent_up(belief_at_most(0.5, epsilon))
    return Step(f"{epsilon:g}", error, share, x, y, factor_text(epsilon), most)
