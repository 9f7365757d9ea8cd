r"""How sums see ratings: through windows around what is expected of them, in two turns, rows that are known best first.

A sum of clip(y - centre, -c, c) costs c and tells where ratings lie that are within c of the centre. Around the mean of
all ratings a window must be as wide as all of them scatter; around what is expected of each rating it may be narrower,
and narrower windows have less noise. What is expected follows from the sums of the first turn. Rows with many ratings
are hardly hidden by noise, so they come first and lose nothing; the others, which need it, come second (decision 85).

With o_e what a clipped rating is on average that lies where this one is expected, at eta_e, and g the average slope
(`levels.window_moments`), a rating whose mean is eta adds o_e + g (eta - eta_e). So a sum of weights w is read as

    T_j - sum_e w_e [ o_e - g (eta_e - mean) ]  =  g sum_e w_e (eta - mean) + noise,

which is how a sum around the mean of all is read, where eta_e is that mean. The wider ratings scatter around their mean
the further off o_e is, for scales are used unevenly: a few hate what most like. Ratings whose rows are hardly known
scatter more (`Scatter`). Once all sums say where ratings are, those of every turn are read again, around there.

Known gap: what is expected of a rating rests on sums that it is in itself, so that its own noise of one turn is, in a
small part, taken out of its window in the next; rows of the first turn have many ratings, and that part is small.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dpsr.arrays import AnyInts, Floats, Ints
from dpsr.engine import Block, BlockResult, Table
from dpsr.engine.incidence import ColumnStack, DividedIncidence, RowSums, Sizes, at_ratings
from dpsr.engine.table import zeros
from dpsr.types import Census
from dpsr.value.expected import SLOPE, WINDOW
from dpsr.value.levels import GRID, LevelFamily, Usage, choose_window, shown_through, window_moments
from dpsr.value.priors import EFFECT

_EVERY = 3
"""Every third mean of the family is a centre of windows, and of channels: a tenth of a half-width apart."""

CENTRES = np.arange(1, GRID, _EVERY)

_KNOWN = 8.0
"""A row is asked first if its effect has so many times the variance of the noise in its sum."""

_FEW = 0.05
"""Where rows that come first, or the others, have fewer of the ratings than these, all sums are asked at once."""

_LIGHT = 0.125
"""Where less of all weight than this is in the sums, they are asked at once: they are a start for single ratings."""

_USUAL, _WIDE, _NARROW = 0.75, 1.5, 0.5
"""Least half-width in deviations: of windows around the mean of all, where all sums are asked at once and in the first
of two turns, and around what is expected. Noise hardly hides the rows of a first turn, and what is far from the mean
counts in a mean; what is far from where it was expected is less than what is far from the mean."""


class SumTurn(NamedTuple):
    """Which sums a turn asks, and the least half-width of its windows, in deviations."""

    rows: RowSums
    least_width: float


def in_turns(census: Census, sizes: Sizes, epsilon: float) -> list[SumTurn]:
    """Which sums are asked in every turn: those of rows that are known best come first.

    With A the weight in a row's sum, it is known by k = t (g A)^2 / (8 (c / epsilon)^2); t, g and c are typical.
    """
    items, users = (
        EFFECT * (SLOPE * weight) ** 2 / (8 * (WINDOW / epsilon) ** 2) >= _KNOWN for weight in (sizes.item, sizes.user)
    )
    first, others, whole = RowSums(items, users), RowSums(~items, ~users), sizes.item.sum() + sizes.user.sum()
    if (
        whole < _LIGHT * census.n_ratings
        or min(_heard(census, first), _heard(census, others)) < _FEW * census.n_ratings
    ):
        return at_once(census)
    return [SumTurn(first, _WIDE), SumTurn(others, _NARROW)]


def at_once(census: Census, *_: object) -> list[SumTurn]:
    """All sums in one turn."""
    return [SumTurn(RowSums.all(census), _USUAL)]


def _heard(census: Census, rows: RowSums) -> int:
    """How many ratings sums of these rows hear of, on the side that hears of more."""
    return int(max(census.item_counts[rows.items].sum(), census.user_counts[rows.users].sum()))


@dataclass(frozen=True, eq=False)
class ExpectedRatings:
    """What is expected of ratings before they are asked: means, as user rows times item rows, and levels around."""

    around: LevelFamily
    left: ColumnStack
    right: Floats

    def at(self, block: Block) -> Floats:
        """The mean that is expected of every rating of a block."""
        return at_ratings(block, self.left[block.users], self.right)

    def nearest(self, block: Block) -> npt.NDArray[np.int64]:
        """Which of the centres is nearest to every rating of a block."""
        point = self.around.nearest(self.at(block))
        return np.clip(np.rint((point - 1) / _EVERY), 0, len(CENTRES) - 1).astype(np.int64)


@dataclass(frozen=True, eq=False)
class Scatter:
    """How ratings scatter around what is expected of them: by the residual, and by what is open about their effects.

    A rating lies so far on the way from the `known` to the `unknown` family as its user and its item say, together one
    at most.
    """

    known: LevelFamily
    unknown: LevelFamily
    users: Floats
    items: Floats

    @classmethod
    def of(
        cls, users: Floats, items: Floats, *, most: float, residual: float, around: Callable[[float], LevelFamily]
    ) -> Scatter:
        """From posterior variances of users' and items' effects, `most` of which both together had at first.

        `around` is the family of ratings that scatter by a variance.
        """
        return cls(around(residual), around(residual + most), users / most, items / most)

    def unsure(self, block: Block) -> Floats:
        """How far every rating of a block is on the way to the `unknown` family."""
        return np.asarray(np.repeat(self.users[block.users], block.counts) + self.items[block.items])


class AtMean(NamedTuple):
    """What sums of items and of users would be if the mean of every rating were that of all."""

    items: Floats
    users: Floats


@dataclass(frozen=True, eq=False)
class View:
    """Windows of one turn, in half-widths of the scale: where they are, how wide, and the average slope and spread.

    The window of a rating is the one whose number the column `choice` holds; where there is none, there is one window.
    """

    centres: Floats
    half_width: float
    gain: float
    spread: float
    choice: str | None = None
    level: float = 0.0
    """What a rating at the mean of all adds where there is one window."""


def around_mean(family: LevelFamily, mean: float, half_width: float) -> View:
    """One window, around the mean of all ratings."""
    point = int(family.nearest(np.array([mean]))[0])
    offset, gain, spread = window_moments(family, point, half_width)
    level = offset + gain * (mean - family.means[point])
    return View(family.means[[point]], half_width, gain, spread, level=level)


def around_expected(
    table: Table,
    weights: DividedIncidence,
    expected: ExpectedRatings,
    scatter: Scatter,
    mean: float,
    half_width: float,
    choice: str,
) -> tuple[View, AtMean]:
    """A window for every rating, around the centre nearest to what is expected of it, as the column `choice` says."""
    family = expected.around
    _, gains, spreads = _moments(family, half_width)
    read = _Reading(family.means[CENTRES], half_width, weights, expected, scatter, mean)

    def look(block: Block, seen: Ints, items: Floats) -> BlockResult:
        nearest = expected.nearest(block)
        seen += np.bincount(nearest, minlength=len(seen))
        return BlockResult({choice: nearest.astype(np.uint8)}, (read.add(block, nearest, items),))

    sums = [np.zeros(len(CENTRES), dtype=np.int64), zeros(table.census.n_items, 2)]
    answer = table.run(look, sums, writes=[choice])
    share = answer.sums[0] / max(answer.sums[0].sum(), 1)
    gain = float(share @ gains)
    view = View(family.means[CENTRES], half_width, gain, float(share @ spreads), choice)
    return view, _at_mean(gain, answer.sums[1], answer.rows[0])


def read_again(
    view: View, table: Table, weights: DividedIncidence, expected: ExpectedRatings, scatter: Scatter, mean: float
) -> AtMean:
    """The same for windows that are where they are, and ratings that are expected elsewhere by now."""
    read = _Reading(view.centres, view.half_width, weights, expected, scatter, mean)

    def look(block: Block, items: Floats) -> BlockResult:
        return BlockResult(rows=(read.add(block, 0 if view.choice is None else block.columns[view.choice], items),))

    reads = [] if view.choice is None else [view.choice]
    answer = table.run(look, [zeros(table.census.n_items, 2)], reads=reads)
    return _at_mean(view.gain, answer.sums[0], answer.rows[0])


def _at_mean(gain: float, items: Floats, users: Floats) -> AtMean:
    return AtMean(*(side[:, 0] - gain * side[:, 1] for side in (items, users)))


class _Reading:
    """Weighted sums of o_e and of eta_e - mean over the ratings of every row."""

    def __init__(
        self,
        centres: Floats,
        half_width: float,
        weights: DividedIncidence,
        expected: ExpectedRatings,
        scatter: Scatter,
        mean: float,
    ) -> None:
        self._weights, self._expected, self._scatter, self._mean = weights, expected, scatter, mean
        self._known, self._unknown = (
            shown_through(family, centres, half_width) for family in (scatter.known, scatter.unknown)
        )

    def add(self, block: Block, window: AnyInts | int, items: Floats) -> Floats:
        """Both of a block, each through its window: added to those of items; those of users are the answer."""
        eta, family = self._expected.at(block), self._scatter.known
        below, part = family.between(eta)
        known, unknown = (
            (1 - part) * shown[window, below] + part * shown[window, below + 1]
            for shown in (self._known, self._unknown)
        )
        both = np.column_stack([known + self._scatter.unsure(block) * (unknown - known), eta - self._mean])
        to_items, to_users = (weight[:, None] * both for weight in self._weights.at(block))
        items += np.column_stack([np.bincount(block.items, one, len(items)) for one in to_items.T])
        return np.column_stack([np.bincount(block.rows, one, block.n_users) for one in to_users.T])


def _moments(family: LevelFamily, half_width: float) -> Floats:
    """Mean, slope and variance of a clipped rating at every centre."""
    return np.array([window_moments(family, int(point), half_width) for point in CENTRES]).T


def best_width(family: LevelFamily, usage: Usage, epsilon: float, turn: SumTurn, sizes: Sizes) -> float:
    """The half-width of a turn's windows."""
    point = int(family.nearest(np.array([usage.mean]))[0])
    weights = np.concatenate([sizes.item[turn.rows.items], sizes.user[turn.rows.users]])
    return choose_window(family, point, epsilon, weights, EFFECT * usage.variance, least=turn.least_width)
