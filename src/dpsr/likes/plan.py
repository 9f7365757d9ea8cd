"""What to ask next: a rule that reads noisy answers and the noise to come, and nothing else.

**Counts** are asked in rounds of a fixed share of mu^2, over a third of the cells each time, until the hundredth cell
stands four deviations above nothing: five different lists of twenty are then more than noise. A large table gets there
in one round; a small one spends most of its budget on the way, and nothing else would serve it better.

**How many frequent cells.** Second moments over T cells: in units of all that drowns it, the noise s that is added and
that of a sample of N people, an axis of taste along which the relative popularity of cells varies by tau^2 has strength

    S(T) = tau^2 w sqrt(sum_j (p_j g_j)^4 / (s^2 + N h_j^2)),      w = interactions q^2 / sum_j p_j g_j^2,

p the popularity and g the favour of cells, h_j ~ p_j g_j^2 the share of a cell in the length of a row (`taste`), q the
share of all interactions that these cells have, so q^2 that of all pairs. Popularity is taken at its posterior mean: S
hangs on the most popular cells, and of many noisy counts those are the luckiest. k axes of falling strength 1/k stand
out as long as k < S. Each axis has T loadings to be learned, so T may grow with S but not faster: the largest T with
T <= min(80 S, 120 S^(2/3)). The factors and the exponent were read off made-up tables of three shapes and
ml-latest-small (docs/likes.md says which); half or twice as many cells cost a few per cent.
"""

from __future__ import annotations

import numpy as np

from dpsr.arrays import Floats, Ints
from dpsr.likes.popularity import Popularity

NUMBERS = 0.015
"""Share of mu^2 for how many people did how much; asked twice."""

ROUND, MOST_ROUNDS = 0.12, 6
"""Share of mu^2 of a round of counts, and how many there are at most."""

RANK, CLEAR = 100, 4.0
"""Counts are good enough when the cell of this rank stands so many deviations above nothing."""

NAMES = 0.1
"""Share of mu^2 for names, where the list of items was not declared."""

FIRST_MOMENTS = 0.75
"""Of what is left, the part for second moments that is spent before it is known whether taste shows at all."""

KNOWN_WELL = 40.0
"""Deviations of the cell of that rank from which on more counts gain nothing: second moments get all at once."""

FAVOUR = 0.25
"""g = (p / max p) to this power: rows lean towards cells that many people know."""

TASTE = 0.35
"""tau^2: variance of the relative popularity of cells along the strongest axis of taste, believed before asking."""

MOST_NAMED_CELLS = 1 << 14
"""Cells whose items may be named, at most."""

MOST_CELLS = 2_000
"""Frequent cells at most: their products fit a few dozen megabytes."""

FEW, MANY = 80.0, 120.0
"""Frequent cells for each unit of S, where axes hardly stand out, and T at S = 1 where they do."""

_FEWEST = 40
_STEP = 1.25


def rank_of(n_cells: int) -> int:
    """The rank at which counts must be clear; half of a small catalogue."""
    return min(RANK, max(1, n_cells // 2))


def next_cells(popularity: Popularity, n_cells: int) -> Ints:
    """Cells of the next round: the most popular third of the last one, never fewer than three ranks."""
    many = max(3 * rank_of(n_cells), len(popularity.asked) // 3)
    return np.sort(popularity.order[: min(many, n_cells)])


def first_moments(popularity: Popularity, n_cells: int) -> float:
    """Of what is left, the part for second moments that is spent before it is known whether taste shows."""
    return 1.0 if popularity.clearness(rank_of(n_cells)) >= KNOWN_WELL else FIRST_MOMENTS


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


def favour_of(centre: Floats) -> Floats:
    """g of every frequent cell."""
    return np.asarray((centre / centre.max()) ** FAVOUR)


def strength(popularity: Floats, interactions: float, noise: float, people: float = 0.0) -> float:
    """S of the module, for cells of this popularity with so many interactions of so many people in all."""
    p = popularity / popularity.sum()
    g = favour_of(p)
    length = float((p * g * g).sum())
    drowning = noise**2 + people * (p * g * g / length) ** 2
    return float(TASTE * interactions * np.sqrt(((p * g) ** 4 / drowning).sum()) / length)


def frequent_cells(popularity: Popularity, interactions: float, noise: float, people: float = 0.0) -> Ints:
    """The cells whose second moments are worth asking; none where popularity itself is drowned."""
    order, believed, known = popularity.order, popularity.believed, popularity.known
    total, chosen, size = float(believed.sum()), 0, 20.0
    while size <= min(MOST_CELLS, len(order)):
        T = int(size)
        if known[order[:T]].mean() < 0.7:
            break
        inside = np.sort(believed[order[:T]])[::-1]
        S = strength(inside, interactions * min(float(inside.sum()) / max(total, 1e-9), 1.0) ** 2, noise, people)
        if max(min(FEW * S, MANY * S ** (2 / 3)), _FEWEST) >= T:
            chosen = T
        size *= _STEP
    return order[:chosen]
