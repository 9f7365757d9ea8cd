"""How the budget is shared among questions: functions of epsilon, delta and noisy answers alone.

Shares are of mu^2, which is what adds up. What is left after the small questions goes to scores, in two rounds, or in
three when there are factors; how a round weighs counts, sums and products is chosen by the error it would leave.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dpsr.arrays import Floats, Ints
from dpsr.certify.one_rating import RAMP, scores
from dpsr.certify.people import GRID, MOST_NAMED, NAMED_TRIED
from dpsr.people.cells import TASTE, Cells
from dpsr.people.levels import PeopleLevels, Weights
from dpsr.types.item_side import SIZES, left_for_names

LEVELS, ACTIVITY, COEFFICIENTS, FIRST, MOMENTS, NAMES = 0.02, 0.03, 0.02, 0.2, 0.2, 0.04
"""Shares of mu^2: a few hundredths for what is one number over all people; a fifth to find out which cells are popular,
without which nothing can be weighed; a fifth for second moments where they are worth asking."""

ENOUGH_LEVEL = 0.05
"""Error of the overall level, in half-widths, at which levels are not asked for again."""

ENOUGH_COEFFICIENTS = 0.004
"""Error of an entry, per person, at which coefficients are known well enough."""

EXPECTED_FACTORS = 3
"""How many directions of taste second moments are expected to reveal, when it is decided whether to ask for them."""

ALPHA = 0.7
"""Weight of counts beside sums in the first round: there the product of both errors is least."""

FLOOR = 0.1
"""Added per rating to the squared length for second moments, so that residuals near zero are not blown up."""

_ALPHAS = (0.35, 0.5, 0.7, 1.0)
_GAMMAS = (0.35, 0.5, 0.7, 1.0, 1.4, 2.0, 2.8)
_FLOORS = (0, 2, 4, 8, 16, 32, 64)


@dataclass(frozen=True)
class Round:
    """How a round of scores weighs: see `PeopleVault.scores`; and the error it is expected to leave, per rating.

    `taste` is the part of the error that is due to factors.
    """

    alpha: float
    gamma: float
    floor: float
    error: float
    taste: float


@dataclass(frozen=True, eq=False)
class Taste:
    """Factors, as far as a round of scores is concerned: variances of people's coefficients, how much of them ratings
    tell, and variances of item factors (cells, d)."""

    variances: Floats
    known: Floats
    uncertainty: Floats

    @classmethod
    def none(cls, n_cells: int) -> Taste:
        return cls(np.zeros(0), np.zeros(0), np.zeros((n_cells, 0)))


def left_over(lam: Floats, reach: Floats, variance: Floats, noise: float) -> float:
    """The variance left at a rating after scores with this noise: the mean of v / (1 + v reach^2 / noise^2)."""
    return float((lam * variance / (1 + variance * (reach / noise) ** 2)).sum() / lam.sum())


def best_round(
    noise: float, levels: PeopleLevels, cells: Cells, unit: Weights, popularity_slope: float, taste: Taste
) -> Round:
    """The round of scores, with noise of this deviation, that leaves the least error in effects, popularity and taste.

    `unit` are the weights in which weighted counts are measured, `popularity_slope` the mean square of people's slopes
    on popularity.
    """
    d, best = len(taste.variances), None
    known = [levels.known_per_rating(float(one)) for one in taste.known]
    for alpha in _ALPHAS:
        for gamma in _GAMMAS if d else (0.0,):
            for floor in (0,) if d else _FLOORS:
                size = 1 + alpha**2 + gamma**2 * float(taste.known.sum())
                w = Weights.of(levels, size, floor * size)
                reach = cells.reach * w.mean / unit.mean
                information = (reach / noise) ** 2
                # asking again does not average away which people happened to rate
                information = information / (1 + information * w.kappa / np.maximum(reach, 1e-6))
                error = left_over(cells.lam, np.sqrt(information), cells.uncertainty, 1.0)
                error += popularity_slope * left_over(cells.lam, reach, cells.popularity_uncertainty, noise / alpha)
                of_taste = 0.0
                for p in range(d):
                    told = noise / (gamma * np.sqrt(taste.variances[p]) * taste.known[p])
                    left = left_over(cells.lam, reach, taste.uncertainty[:, p], told)
                    of_taste += taste.variances[p] * known[p] * left
                if best is None or error + of_taste < best.error:
                    best = Round(alpha, gamma, floor * size, error + of_taste, of_taste)
    assert best is not None
    return best


def rating_weights(levels: PeopleLevels, shrink: float, width: float) -> Weights:
    """How ratings weigh that are scaled by themselves: x = z / sqrt(z^2 + width^2), with z normal."""
    z = np.sqrt(1 + levels_left(levels, shrink)) * np.linspace(-6, 6, 1201)
    p = np.exp(-0.5 * np.linspace(-6, 6, 1201) ** 2)
    p /= p.sum()
    mean = float((p * width**2 / (z * z + width**2) ** 1.5).sum())
    square = float((p * z * z / (z * z + width**2)).sum())
    return Weights(mean, square / mean, levels.people * mean, np.full(len(SIZES), mean))


def levels_left(levels: PeopleLevels, shrink: float) -> float:
    """What is left of the variance of people's levels, per rating, beside own levels shrunk so (0: none are used)."""
    ratings = levels.ratings
    pull = 1.0 if shrink == 0 else float((ratings * (shrink / (SIZES + shrink)) ** 2).sum() / ratings.sum())
    return pull * levels.variance


def moments_larger(levels: PeopleLevels, unit: Weights) -> float:
    """By how much moments a_n x x' of rows scaled rating by rating exceed those of weights 1 / n of people.

    `choose_cells` and `read_moments` think in the latter: the mean over ratings of n a_n, times the mean of x^2.
    """
    larger = float((levels.ratings * SIZES / np.sqrt(SIZES + RAMP)).sum() / levels.ratings.sum())
    return larger * unit.kappa * unit.mean


def best_shrink(
    noise: float, levels: PeopleLevels, cells: Cells, unit: Weights, clip: float, width: float, own: float
) -> tuple[float, float]:
    """Own levels shrunk by `own`, or none (0): which leaves less error in the effects, and how much.

    `noise` is that of a question of sensitivity one.
    """
    best, least = 0.0, np.inf
    for shrink in (0.0, own):
        w = rating_weights(levels, shrink, width)
        bound = scores({"bound": GRID, "clip": clip, "shrink": shrink, "width": width})
        reach = cells.reach * w.mean / unit.mean
        information = (reach / noise) ** 2 * GRID**2 / bound
        information = information / (1 + information * w.kappa / np.maximum(reach, 1e-6))
        error = left_over(cells.lam, np.sqrt(information), cells.uncertainty, 1.0)
        if error < least:
            best, least = shrink, error
    return best, float(least)


def cells_to_name(
    lam: Floats, unit: Weights, levels: PeopleLevels, threshold: Callable[[int], float]
) -> tuple[Ints, int]:
    """The most popular cells whose items people should spend their weight on, and by how many of their items at most,
    so that most items get a name.

    Somebody with k items in them gives each 1 / sqrt k; if people have k on average, an item of N ratings gets about
    N / sqrt k, less what is cut from those with more items than count, which must pass the threshold. That is the lower
    the fewer count.
    """
    order = np.argsort(-lam, kind="stable")
    ratings = lam[order] / unit.mean
    sums, lines = np.cumsum(ratings), {most: threshold(most) for most in reversed(NAMED_TRIED)}
    best, found, T = -1, (1, MOST_NAMED), 1
    while len(lam) >= T:
        k = max(float(sums[T - 1]) / levels.people, 1.0)
        for most, line in lines.items():
            if most >= 2 * T:
                continue  # nobody has more cells
            left = left_for_names(levels.counts, float(sums[T - 1] / max(sums[-1], 1e-9)), T, most)
            named = int((ratings[:T] * left / np.sqrt(k) > line).sum())
            if named > best:
                best, found = named, (T, most)
        T = int(np.ceil(T * 1.25))
    return np.sort(order[: found[0]]), found[1]


def expected_taste(levels: PeopleLevels, revealed: float, taste: float) -> tuple[float, float]:
    """How much of a coefficient a rating's person, and people on average, would know if so much of it was revealed."""
    n = SIZES * taste * revealed
    per_rating = float((levels.ratings * n / (1 + n)).sum() / levels.ratings.sum())
    per_person = float((levels.counts * n / (1 + n)).sum() / levels.counts.sum())
    return per_rating, max(per_person, 0.02)


def factors_pay(
    mu: float,
    left: float,
    levels: PeopleLevels,
    cells: Cells,
    unit: Weights,
    popularity_slope: float,
    order: Ints,
    revealed: Floats,
) -> bool:
    """Whether second moments that would reveal the first cells of `order` to these degrees are worth a share of `left`.

    They are if a round of scores with factors would leave less error than one with all of the budget and none.
    """
    d, T = EXPECTED_FACTORS, len(revealed)
    uncertainty = np.ones((len(cells.lam), d))
    uncertainty[order[:T]] = 1 - revealed[:, None]
    seen = float((np.maximum(cells.lam, 1e-12)[order[:T]] * revealed).sum() / cells.lam.sum())
    per_rating, per_person = expected_taste(levels, seen, TASTE)
    taste = Taste(np.full(d, TASTE), np.full(d, per_person), uncertainty)
    facts = (levels, cells, unit, popularity_slope)
    without = best_round(1 / (mu * np.sqrt(left)), *facts, Taste.none(len(cells.lam)))
    noise = 1 / (mu * np.sqrt(left - MOMENTS))
    return best_round(noise, *facts, taste).error <= without.error + d * TASTE * per_rating
