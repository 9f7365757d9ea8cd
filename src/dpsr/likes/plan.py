"""What to ask next: a rule that reads noisy answers and the noise to come, and nothing else.

Everything is weighed by what lists are worth: the popularity mass of the cells on them. Noise in counts puts the wrong
cells there, at a loss that posterior means tell (`popularity`); second moments will bring a gain over popularity, for
so many frequent cells (`foresight`). With a loss l after a share q of mu^2 went into counts, and a gain G of what is
left, lists have (1 - l) G; a round with the share r would leave them with

    (1 - l0 - (l - l0) q / (q + r)) G',      G' the gain of what is left then,

l0 the loss if the cells of that round were known: what is missed among others lasts, the rest falls like the variance
of counts. Rounds of counts go on as long as that is more: a large table has one or two; a small one spends most of its
budget there. Each asks the most popular third of the cells of the one before.
"""

from __future__ import annotations

import numpy as np

from dpsr.arrays import Ints
from dpsr.likes.popularity import Popularity

NUMBERS = 0.015
"""Share of mu^2 for how many people did how much; asked twice."""

ROUND = 0.12
"""Share of mu^2 of a round of counts."""

RANK = 100
"""Cells whose order must be known: five different lists of twenty."""

NAMES = 0.1
"""Share of mu^2 for names, where the list of items was not declared."""

FIRST_MOMENTS = 0.75
"""Of what is left, the part for second moments that is spent before it is known whether taste shows at all."""

KNOWN_WELL = 0.01
"""Loss of lists from which on more counts gain nothing: second moments get all at once."""

MOST_NAMED_CELLS = 1 << 14
"""Cells whose items may be named, at most."""

_STEP = 1.25


def rank_of(n_cells: int) -> int:
    """How many cells must be told apart; half of a small catalogue."""
    return min(RANK, max(1, n_cells // 2))


def next_cells(popularity: Popularity, n_cells: int) -> Ints:
    """Cells of the next round: the most popular third of the last one, never fewer than three ranks."""
    many = max(3 * rank_of(n_cells), len(popularity.asked) // 3)
    return np.sort(popularity.order[: min(many, n_cells)])


def first_moments(popularity: Popularity, n_cells: int) -> float:
    """Of what is left, the part for second moments that is spent before it is known whether taste shows."""
    return 1.0 if popularity.loss(rank_of(n_cells)) <= KNOWN_WELL else FIRST_MOMENTS


def pays(share: float, spent: float, losses: tuple[float, float], gain: float, gain_after: float) -> bool:
    """Whether `share` more for counts, on which `spent` was, makes better lists than second moments make of it.

    `losses` are the one so far and the one that no further round could repair.
    """
    loss, lasting = losses
    later = lasting + max(loss - lasting, 0.0) * spent / (spent + share)
    return (1 - later) * gain_after > (1 - loss) * gain


def cells_to_name(popularity: Popularity, threshold: float, *, by_person: bool) -> Ints:
    """The cells whose items are to be named: as many as make the most of them pass, by what is known so far.

    Where weights are by person, over fewer cells each of them weighs more: 1 / sqrt(share of all interactions) times.
    """
    order, shown = popularity.order, popularity.shown
    if not by_person:
        return order[: min(max(3 * RANK, int(popularity.known.sum())), MOST_NAMED_CELLS)]
    total, best, size = max(popularity.total, 1e-9), (0, 0), 10.0
    while size <= min(len(order), MOST_NAMED_CELLS):
        inside = shown[order[: int(size)]]
        weight = inside / np.sqrt(min(float(inside.sum()) / total, 1.0))
        best = max(best, (int((weight > threshold).sum()), int(size)))
        size *= _STEP
    return order[: best[1] or min(len(order), rank_of(len(order)))]
