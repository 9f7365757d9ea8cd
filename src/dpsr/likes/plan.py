"""What to ask next: a rule that reads noisy answers and the noise to come, and nothing else.

Everything is weighed by what lists are worth: the popularity mass of the cells on them. Noise in counts puts the wrong
cells there, at a loss that posterior means tell (`popularity`); second moments will bring a gain over popularity, for
so many frequent cells (`forecast`). With a loss l after a share q of mu^2 went into counts, and a gain G of what is
left, lists have (1 - l) G; a round with the share r would leave them with

    (1 - l0 - (l - l0) q / (q + r)) G',      G' the gain of what is left then,

l0 the loss if the cells of that round were known: what is missed among others lasts, the rest falls like the variance
of counts. Rounds of counts go on as long as that is more: a large table has one or two; a small one spends most of its
budget there. Each asks the more popular half of the cells of the one before, or all of a small catalogue.

Where no list of items was declared, lists hold only what may be named: the gain is that of such lists, by the share
that names get (`naming`). Names come with weights, so that what they cost is not lost for counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from dpsr.arrays import Ints
from dpsr.likes.activity import Activity
from dpsr.likes.popularity import Popularity

NUMBERS = 0.015
"""Share of mu^2 for how many people did how much; asked twice."""

ROUND = 0.12
"""Share of mu^2 of a round of counts."""

RANK = 100
"""Cells whose order must be known: five different lists of twenty."""

NAMES = (0.1, 0.2, 0.3, 0.45, 0.6, 0.8)
"""Parts of what is left that names may get before second moments, where the list of items was not declared."""

FIRST_MOMENTS = 0.75
"""Of what is left, the part for second moments that is spent before it is known whether taste shows at all."""

KNOWN_WELL = 0.01
"""Loss of lists from which on more counts gain nothing: second moments get all at once."""


def rank_of(n_cells: int) -> int:
    """How many cells must be told apart; half of a small catalogue."""
    return min(RANK, max(1, n_cells // 2))


def next_cells(popularity: Popularity, n_cells: int, outlook: Outlook | None = None) -> Ints:
    """Cells of the next round: the more popular half of the last one, never fewer than must be told apart.

    Half of a small catalogue is just as many as that: a cell that the noise of one round put below the middle would
    never be heard again, and those that are left would weigh hardly more. So all of it is asked every time. The same
    holds for a large one where people have few interactions each (`Outlook`).
    """
    many = _halved(len(popularity.asked), n_cells)
    if many >= len(popularity.asked) or (outlook and not outlook.narrows(popularity, n_cells)):
        return popularity.asked
    return np.sort(popularity.order[:many])


def _halved(many: int, n_cells: int) -> int:
    """Cells of the round after one of so many."""
    return min(max(n_cells if n_cells <= 2 * RANK else RANK, many // 2), n_cells)


@dataclass(frozen=True, eq=False)
class Outlook:
    """What rounds of counts to come would tell: with the share `left`, of people with this `activity`, who weigh the
    same whatever is asked where the `unit` is an interaction, to the `precision` of all of mu^2 over all cells."""

    activity: Activity
    unit: str
    left: float
    precision: float

    def narrows(self, popularity: Popularity, n_cells: int) -> bool:
        """Whether lists are worth more if every round asks half of the one before than if all ask the same cells."""
        rounds = max(1, round(self.left / ROUND))
        same, halves = [len(popularity.asked)] * rounds, [_halved(len(popularity.asked), n_cells)]
        while len(halves) < rounds:
            halves.append(_halved(halves[-1], n_cells))
        rank = rank_of(n_cells)
        wide, narrow = (popularity.mass_after(rank, sizes, partial(self._told, rounds)) for sizes in (same, halves))
        return narrow >= wide

    def _told(self, rounds: int, share: float) -> float:
        weight = self.activity.weight(share) if self.unit == "user" else 1.0
        return self.precision * self.left / rounds * weight**2


def first_moments(popularity: Popularity, n_cells: int) -> float:
    """Of what is left, the part for second moments that is spent before it is known whether taste shows."""
    return 1.0 if popularity.loss(rank_of(n_cells)) <= KNOWN_WELL else FIRST_MOMENTS


@dataclass(frozen=True)
class Loss:
    """Of what lists are worth, by noise in counts: `now`; what no further round could repair; and what no names could,
    where those have weights: the loss if only the cells that will be named were known."""

    now: float
    lasting: float
    unnamed: float

    @classmethod
    def of(cls, popularity: Popularity, n_cells: int, named: Ints, following: Ints) -> Loss:
        """`named` are the cells over which names will be asked, none where a list of items was declared; `following`
        those of the next round."""
        return cls(*popularity.losses(rank_of(n_cells), [named[:0], following, named]))

    def after_round(self, spent: float, share: float) -> Loss:
        """With a round of counts more, after `spent` on others."""
        falls = spent / (spent + share)
        now, unnamed = (self.lasting + max(one - self.lasting, 0.0) * falls for one in (self.now, self.unnamed))
        return Loss(now, self.lasting, unnamed)

    def after_names(self, spent: float, share: float) -> float:
        """With names asked, whose weights are counts of the cells they are in."""
        return self.unnamed + max(self.now - self.unnamed, 0.0) * spent / (spent + share)


@dataclass(frozen=True)
class Prospect:
    """What lists will gain with second moments of `n_frequent` cells, the share `names` of mu^2 for names before, over
    `n_named` cells."""

    gain: float
    n_frequent: int
    names: float = 0.0
    n_named: int = 0

    def worth(self, loss: Loss, spent: float) -> float:
        """If this is asked next, after `spent` on counts."""
        return (1 - loss.after_names(spent, self.names)) * self.gain

    def worth_later(self, loss: Loss, spent: float) -> float:
        """If a round of counts comes first."""
        return self.worth(loss.after_round(spent, ROUND), spent + ROUND)
