"""What the card's plots show of released ratings: bins, forecasts, and their geometry.

The private table is seen in one pass over its blocks, since it may be larger than memory.

x is in per cent of the width, y in pixels. The SVGs have no viewBox, so text keeps its size on a phone and marks move
with the width. Curves are the exception: they are drawn in a nested, stretched coordinate system of 100 by `HEIGHT`
units with strokes that do not stretch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, log, sqrt

import numpy as np

from dpsr.arrays import Codes, Floats, Ints
from dpsr.certify import Certificate
from dpsr.certify.amounts import epsilon_text
from dpsr.release.release import Contents
from dpsr.types import Scale
from dpsr.value.allocation import Forecast, forecast
from dpsr.value.design import released_components

_FINEST = 40
"""No plot has more bars; on a phone they would be thinner than a line."""


@dataclass(frozen=True)
class Bin:
    """How many things lie between `low` and `high`."""

    low: float
    high: float
    count: int


def doubling_bins(counts: Ints) -> list[Bin]:
    """How many users (or items) have 1, 2 to 3, 4 to 7, ... ratings; 0 first, if there is anybody without.

    >>> [(b.low, b.high, b.count) for b in doubling_bins(np.array([0, 1, 3, 5]))]
    [(0, 0, 1), (1, 1, 1), (2, 3, 1), (4, 7, 1)]
    """
    positive = counts[counts > 0]
    powers = np.frexp(positive.astype(np.float64))[1] - 1  # floor(log2 n), exactly
    tally = np.bincount(powers, minlength=1)
    bins = [Bin(2**k, 2 ** (k + 1) - 1, int(n)) for k, n in enumerate(tally)]
    missing = len(counts) - len(positive)
    return [Bin(0, 0, missing), *bins] if missing else bins


def rating_bins(ratings: Floats, scale: Scale) -> list[Bin]:
    """Equal bins over the scale, a whole number of them to each step where the steps are coarse enough."""
    steps = scale.n_levels - 1
    n = steps * max(1, _FINEST // steps) if steps <= _FINEST else _FINEST
    edges = np.linspace(scale.low, scale.high, n + 1)
    tally, _ = np.histogram(ratings, edges)
    return [Bin(float(a), float(b), int(c)) for a, b, c in zip(edges, edges[1:], tally, strict=False)]


ROWS = 5


@dataclass(frozen=True)
class RatingsSummary:
    """Released ratings by value, their mean and deviation, the first rows (codes of user and item, rating), and the
    items that some users rated."""

    bins: list[Bin]
    mean: float
    deviation: float
    rows: list[tuple[int, int, float]]
    rated: dict[int, Codes]


def summarise_ratings(contents: Contents, users: Sequence[int] = ()) -> RatingsSummary:
    """One pass; `users` are those whose items are wanted."""
    scale, table = contents.model.scale, contents.table
    bins = rating_bins(np.empty(0), scale)
    total, squares = 0.0, 0.0
    rows: list[tuple[int, int, float]] = []
    rated = {}
    for block in table.scan([contents.ratings]):
        ratings = block.columns[contents.ratings]
        bins = [Bin(a.low, a.high, a.count + b.count) for a, b in zip(bins, rating_bins(ratings, scale), strict=True)]
        away = np.subtract(ratings, scale.midpoint, dtype=np.float64)
        total, squares = total + float(away.sum()), squares + float(away @ away)
        missing = ROWS - len(rows)
        firsts = zip(block.rows[:missing] + block.first, block.items[:missing], ratings[:missing], strict=True)
        rows += [(int(user), int(item), float(rating)) for user, item, rating in firsts]
        for user in users:
            if block.users.start <= user < block.users.stop:
                start, stop = block.indptr[user - block.first : user - block.first + 2]
                rated[user] = block.items[start:stop].copy()
    mean, square = (part / table.census.n_ratings for part in (total, squares))
    return RatingsSummary(bins, scale.midpoint + mean, sqrt(max(square - mean**2, 0.0)), rows, rated)


EPSILONS = (0.1, 0.2, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0)
_APART = 1.15
"""Budgets nearer than this to the one asked for would be drawn on top of it."""


def expected_accuracy(contents: Contents) -> tuple[Forecast, ...]:
    """What each epsilon would buy, this release's own among them; empty for methods the forecast does not describe."""
    asked = contents.certificate.nominal
    if contents.method != "default" or asked is None:
        return ()
    census = contents.table.census
    shown = released_components(census, contents.model.affinity)
    others = [epsilon for epsilon in EPSILONS if not 1 / _APART < epsilon / asked < _APART]
    return tuple(forecast(census, contents.model.scale, epsilon, shown) for epsilon in sorted([*others, asked]))


def this_release(forecasts: Sequence[Forecast], certificate: Certificate) -> Forecast | None:
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


def frontier_plot(forecasts: Sequence[Forecast], here: Forecast | None) -> Curve:
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


def _read(f: Forecast) -> str:
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
