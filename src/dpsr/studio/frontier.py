"""What each epsilon would buy, in the words of the page: error in rating points, odds, and whom the unit would need.

`forecast` is the one place that knows which command answers for which unit.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log
from typing import Any

from dpsr.certify.amounts import belief_at_most, factor_text, percent_up
from dpsr.studio import commands
from dpsr.studio.commands import Choices
from dpsr.studio.processes import Answers

WIDTH, HEIGHT, EDGE = 640, 220, 12
"""Of the plot, in its own units."""

CONSTANT, OWN_MEANS = "of what one number for everything would make", "of what people's own means would make"
NOBODY_MORE = "Nobody more: at this unit every rating is protected by itself, however few people there are."
A_BOUND = "This is the forecast for whole people; at the same epsilon this unit reaches more."


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
    people: str = ""
    """How many people it takes for directions of taste to show, where that depends on epsilon."""

    @property
    def error_text(self) -> str:
        return f"{self.error:.2f}"


@dataclass(frozen=True)
class Frontier:
    """All stops, or in `words` why there are none; `needs` and the steps say how many people the unit would need."""

    steps: tuple[Step, ...]
    words: str = ""
    needs: str = ""
    beside: str = CONSTANT
    note: str = ""
    people: str = ""
    spread_assumed: bool = True
    command: str = ""

    @property
    def refused(self) -> bool:
        return not self.steps

    @property
    def line(self) -> str:
        """The curve as points of an SVG."""
        return " ".join(f"{step.x:.1f},{step.y:.1f}" for step in self.steps)


def forecast(chosen: Choices, answers: Answers) -> Frontier:
    """The frontier of the chosen unit: `dpsr plan`, which reads no rating for it.

    At the unit `value` from who rated what. Where people are protected, from how many people, items and ratings there
    are; the unit `rating` has no forecast of its own and is shown what the stronger promise would reach.
    """
    arguments, shape = commands.plan(chosen), None
    if chosen.unit != "value":
        shape = answers.of(commands.describe(chosen), chosen.source)
        if shape.refused:
            return Frontier((), words=shape.words)
        arguments = commands.plan_people(chosen, shape.record)
    found = answers.of(arguments, chosen.source)
    if found.refused:
        return Frontier((), words=found.words)
    record, command = found.record, commands.shown(arguments)
    if shape is None:
        shares = [row["share"] for row in record["forecasts"]]
        steps = _steps(record["forecasts"], shares)
        return Frontier(steps, needs=NOBODY_MORE, spread_assumed=record["spread_assumed"], command=command)
    shares = [row["rmse"] / record["own_means"] for row in record["forecasts"]]
    return Frontier(
        _steps(record["forecasts"], shares),
        beside=OWN_MEANS,
        note=A_BOUND if chosen.unit == "rating" else "",
        people=f"{shape.record['n_users']:,}",
        spread_assumed=record["spread_assumed"],
        command=command,
    )


def _steps(rows: list[dict[str, Any]], shares: list[float]) -> tuple[Step, ...]:
    errors = [row["rmse"] for row in rows]
    low, high = min(errors), max(errors)
    left, right = log(rows[0]["epsilon"]), log(rows[-1]["epsilon"])
    return tuple(
        Step(
            f"{row['epsilon']:g}",
            row["rmse"],
            share,
            EDGE + (WIDTH - 2 * EDGE) * (log(row["epsilon"]) - left) / (right - left),
            EDGE + (HEIGHT - 2 * EDGE) * (high - row["rmse"]) / max(high - low, 1e-9),
            factor_text(row["epsilon"]),
            percent_up(belief_at_most(0.5, row["epsilon"])),
            _people(row),
        )
        for row, share in zip(rows, shares, strict=True)
    )


def _people(row: dict[str, Any]) -> str:
    """Two digits of a number of people; nothing where the unit does not need any."""
    if "people_for_factors" not in row:
        return ""
    needed = row["people_for_factors"]
    return "more than there are on earth" if needed is None else f"{float(f'{needed:.2g}'):,.0f}"
