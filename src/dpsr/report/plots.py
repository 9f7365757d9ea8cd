"""Geometry of the card's plots: x in per cent of the width, y in pixels; and the forecasts one of them shows.

The SVGs have no viewBox, so text keeps its size on a phone and marks move with the width. Curves are the exception:
they are drawn in a nested, stretched coordinate system of 100 by `HEIGHT` units with strokes that do not stretch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, log, sqrt
from typing import NamedTuple

from dpsr.certify import Certificate
from dpsr.certify.odds import epsilon_text
from dpsr.report.facts import Bin


class Expectation(NamedTuple):
    """Expected squared error at `epsilon`, as a share of one constant's: what cannot be known, what too few ratings
    cost, and what privacy costs. They add up; `share` is the root of their sum."""

    epsilon: float
    unknowable: float
    learning: float
    noise: float

    @property
    def share(self) -> float:
        """Expected RMSE over the constant's RMSE."""
        return sqrt(self.unknowable + self.learning + self.noise)

    @property
    def without_noise(self) -> float:
        """The same if nothing were spent on privacy."""
        return sqrt(self.unknowable + self.learning)


def this_release(forecasts: Sequence[Expectation], certificate: Certificate) -> Expectation | None:
    """The forecast made for the epsilon this release asked for."""
    return next((f for f in forecasts if f.epsilon == certificate.nominal), None)


TOP, BASE, HEIGHT, MARGIN = 14, 190, 214, 10
"""Pixels: the highest mark, the axis, the whole plot with its labels; and per cent: room for labels on the left."""

_EDGE, _GAP, _MOST_LABELS = 3.0, 0.16, 9


@dataclass(frozen=True)
class Tick:
    """A label on an axis, at per cent of the width or pixels from the top."""

    at: float
    text: str


@dataclass(frozen=True)
class Bar:
    """One bar, and what it says when it is pointed at."""

    x: float
    width: float
    y: float
    height: float
    read: str


@dataclass(frozen=True)
class BarPlot:
    """Bars, labels below them and guides across."""

    bars: list[Bar]
    x_ticks: list[Tick]
    y_ticks: list[Tick]


@dataclass(frozen=True)
class Dot:
    """One forecast on the curve."""

    x: float
    y: float
    read: str
    here: bool


@dataclass(frozen=True)
class Curve:
    """The frontier: dots, the line through them, and the level without any noise."""

    dots: list[Dot]
    line: str
    area: str
    level: float
    x_ticks: list[Tick]
    y_ticks: list[Tick]


def bar_plot(bins: Sequence[Bin], reads: Sequence[str], labels: Sequence[Tick]) -> BarPlot:
    """Bars of equal width from left to right; `labels` are placed by the number of a bar (2.5: amid the third)."""
    slot, most = (100 - MARGIN) / len(bins), max(1, *(b.count for b in bins))
    grid = _round_steps(most)
    height = BASE - TOP
    bars = []
    for k, (b, read) in enumerate(zip(bins, reads, strict=True)):
        tall = max(height * b.count / grid[-1], 1.5 if b.count else 0.0)  # one of many still shows
        bars.append(Bar(MARGIN + slot * (k + _GAP / 2), slot * (1 - _GAP), BASE - tall, tall, read))
    y_ticks = [Tick(BASE - height * g / grid[-1], _short(g)) for g in grid]
    return BarPlot(bars, [Tick(MARGIN + slot * label.at, label.text) for label in labels], y_ticks)


def doubling_labels(bins: Sequence[Bin]) -> list[Tick]:
    """The first count of every bin, or of every second one if there are many."""
    every = ceil(len(bins) / _MOST_LABELS)
    return [Tick(k + 0.5, _short(b.low)) for k, b in enumerate(bins) if k % every == 0]


def scale_labels(bins: Sequence[Bin], n_levels: int) -> list[Tick]:
    """The levels of a short scale, or the ends and quarters of a long one, at the edges of bins."""
    pieces = n_levels - 1 if n_levels <= 11 else 4
    low, high = bins[0].low, bins[-1].high
    return [Tick(len(bins) * k / pieces, f"{low + (high - low) * k / pieces:g}") for k in range(pieces + 1)]


def frontier_plot(forecasts: Sequence[Expectation], here: Expectation | None) -> Curve:
    """Expected RMSE as a share of the constant's against epsilon, which runs logarithmically."""
    shares = [f.share for f in forecasts]
    level = forecasts[0].without_noise
    floor_, top = floor(min(*shares, level) * 20 - 0.6) / 20, ceil(max(*shares, 1.0) * 20) / 20
    first, last = log(forecasts[0].epsilon), log(forecasts[-1].epsilon)
    span = (last - first) or 1.0

    def x(epsilon: float) -> float:
        return MARGIN + _EDGE + (100 - MARGIN - 2 * _EDGE) * (log(epsilon) - first) / span

    def y(share: float) -> float:
        return TOP + (BASE - TOP) * (top - share) / (top - floor_)

    dots = [Dot(x(f.epsilon), y(f.share), _read(f), f is here) for f in forecasts]
    line = " L ".join(f"{dot.x:.2f} {dot.y:.2f}" for dot in dots)
    area = f"M {line} L {dots[-1].x:.2f} {y(level):.2f} L {dots[0].x:.2f} {y(level):.2f} Z"
    steps = round((top - floor_) * 20)
    every = 1 if steps <= 5 else 2
    y_ticks = [Tick(y(top - k / 20), f"{100 * top - 5 * k:.0f}%") for k in range(0, steps + 1, every)]
    return Curve(
        dots, f"M {line}", area, y(level), [Tick(x(f.epsilon), epsilon_text(f.epsilon, 3)) for f in forecasts], y_ticks
    )


def _read(f: Expectation) -> str:
    of_error = f.noise / (f.unknowable + f.learning + f.noise)
    return (
        f"ε = {epsilon_text(f.epsilon)}: expected RMSE is {100 * f.share:.1f} % of a constant's; "
        f"privacy makes {100 * of_error:.1f} % of the squared error"
    )


def _round_steps(most: int) -> list[int]:
    """0, 1, 2, ... times a round number, up to at least `most`, four steps at most."""
    step = 1
    while 4 * step < most:
        step = step * 5 // 2 if str(step)[0] == "2" else step * 2
    return list(range(0, step * ceil(most / step) + 1, step))


def _short(count: float) -> str:
    """1, 150, 1.5k, 16k, 2M: short enough for the margin."""
    for size, letter in ((1_000_000, "M"), (1_000, "k")):
        if count >= size:
            return f"{count / size:.2g}{letter}" if count < 10 * size else f"{count / size:.0f}{letter}"
    return f"{count:g}"
