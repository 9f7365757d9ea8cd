r"""How sums see ratings: through windows around what is expected of them, in two turns, rows that are known best first.

A sum of clip(y - centre, -c, c) costs c and tells where ratings lie that are within c of the centre. Around the mean of
all ratings a window must be as wide as all of them scatter; around what is expected of each rating it may be narrower,
and narrower windows have less noise. What is expected follows from the sums of the first turn. Rows with many ratings
are hardly hidden by noise, so they come first and lose nothing; the others, which need it, come second (decision 85).

With k_c the window around the c-th mean m_c, o_c and g_c the mean of a clipped rating there and its slope
(`levels.window_moments`), a rating that is expected at m_c and whose mean is eta adds o_c + g (eta - m_c) on average, g
the average slope. So a sum of weights w is read as

    T_j - sum_e w_e [ o_c(e) - g (m_c(e) - mean) ]  =  g sum_e w_e (eta_e - mean) + noise,

which is how a sum around the mean of all is read. The wider ratings scatter around their mean the further off o_c is,
for scales are used unevenly: a few hate what most like. Ratings whose rows are hardly known scatter more (`Scatter`).

Known gap: what is expected of a rating rests on sums that it is in itself, so that its own noise of one turn is, in a
small part, taken out of its window in the next; rows of the first turn have many ratings, and that part is small.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dpsr.arrays import Floats, Ints
from dpsr.engine import Block, BlockResult, Table
from dpsr.engine.incidence import ColumnStack, DividedIncidence, RowSums, Sizes, at_ratings
from dpsr.engine.table import zeros
from dpsr.types import Census
from dpsr.value.expected import SLOPE, WINDOW
from dpsr.value.levels import GRID, LevelFamily, Usage, choose_window, window_moments
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

    def nearest(self, block: Block) -> npt.NDArray[np.int64]:
        """Which of the centres is nearest to every rating of a block."""
        point = self.around.nearest(at_ratings(block, self.left[block.users], self.right))
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


@dataclass(frozen=True, eq=False)
class View:
    """Windows of one turn, in half-widths of the scale, and what they show: gain, spread, and sums at the mean of all.

    The window of a rating is the one whose number the column `choice` holds; where there is none, there is one window.
    """

    centres: Floats
    half_width: float
    gain: float
    spread: float
    items_at_mean: Floats
    users_at_mean: Floats
    choice: str | None = None
    level: float = 0.0
    """What a rating at the mean of all adds where there is one window."""


def around_mean(family: LevelFamily, mean: float, half_width: float, sizes: Sizes) -> View:
    """One window, around the mean of all ratings."""
    point = int(family.nearest(np.array([mean]))[0])
    offset, gain, spread = window_moments(family, point, half_width)
    level = offset + gain * (mean - family.means[point])  # what a rating at the mean adds to its sums
    return View(family.means[[point]], half_width, gain, spread, level * sizes.item, level * sizes.user, level=level)


def around_expected(
    table: Table,
    weights: DividedIncidence,
    expected: ExpectedRatings,
    scatter: Scatter,
    mean: float,
    half_width: float,
    choice: str,
) -> View:
    """A window for every rating, around the centre nearest to what is expected of it, as the column `choice` says."""
    family, n_items = expected.around, table.census.n_items
    _, gains, spreads = _moments(family, half_width)
    (known, _, _), (unknown, _, _) = (_moments(one, half_width) for one in (scatter.known, scatter.unknown))
    off = family.means[CENTRES] - mean

    def look(block: Block, seen: Ints, items: Floats) -> BlockResult:
        nearest, (to_items, to_users) = expected.nearest(block), weights.at(block)
        seen += np.bincount(nearest, minlength=len(seen))
        offset = known[nearest] + scatter.unsure(block) * (unknown - known)[nearest]
        both = np.column_stack([offset, off[nearest]])
        items += np.column_stack([np.bincount(block.items, to_items * one, n_items) for one in both.T])
        users = np.column_stack([np.bincount(block.rows, to_users * one, block.n_users) for one in both.T])
        return BlockResult({choice: nearest.astype(np.uint8)}, (users,))

    answer = table.run(look, [np.zeros(len(CENTRES), dtype=np.int64), zeros(n_items, 2)], writes=[choice])
    (seen, items), users = answer.sums, answer.rows[0]
    share = seen / max(seen.sum(), 1)
    gain = float(share @ gains)
    of_items, of_users = (sums[:, 0] - gain * sums[:, 1] for sums in (items, users))
    return View(family.means[CENTRES], half_width, gain, float(share @ spreads), of_items, of_users, choice)


def _moments(family: LevelFamily, half_width: float) -> Floats:
    """Mean, slope and variance of a clipped rating at every centre."""
    return np.array([window_moments(family, int(point), half_width) for point in CENTRES]).T


def best_width(family: LevelFamily, usage: Usage, epsilon: float, turn: SumTurn, sizes: Sizes) -> float:
    """The half-width of a turn's windows."""
    point = int(family.nearest(np.array([usage.mean]))[0])
    weights = np.concatenate([sizes.item[turn.rows.items], sizes.user[turn.rows.users]])
    return choose_window(family, point, epsilon, weights, EFFECT * usage.variance, least=turn.least_width)
