"""The vault where one rating more or less is the secret: a rating is scaled by itself, not by its person's length.

Activity and coefficients are asked as of people; one rating replaces a person's contribution by another, which costs
more (`certify.one_rating`). In levels and second moments somebody counts the more the more ratings they have, so that
one of them moves little. Scores and names are added up rating by rating, so that people with many ratings count fully;
one rating more also moves its person's own level, and with it the contributions of their other ratings. That term is
part of the sensitivity.
"""

from __future__ import annotations

from math import sqrt

import numpy as np

from dpsr.arrays import Floats, Ints
from dpsr.certify.one_rating import (
    CLIP,
    LEVELS_RAMP,
    MOMENT_WEIGHT,
    PER_RATING,
    RAMP,
    SECOND_ORDER,
    SHRINK,
    WIDTH,
    moment_settings,
    moment_weight,
)
from dpsr.certify.people import GRID, MOMENT, MOMENTS
from dpsr.engine import Block
from dpsr.linalg.compiled import kernel
from dpsr.privacy.vault.people.asking import AskedOfRows, NoisyAnswer
from dpsr.privacy.vault.people.contributions import SAFE, enforce_length, grid_steps
from dpsr.privacy.vault.people.vault import PeopleVault
from dpsr.types.item_side import CENTRE, ItemSide

_SECOND_ORDER, _PER_RATING = float(SECOND_ORDER), float(PER_RATING)


class RatingVault(AskedOfRows, PeopleVault):
    """Raw ratings and a budget for ratings that exist or not."""

    scores_name = "scores of people"
    replaced = 2.0

    def totals(self, share: float) -> NoisyAnswer:
        """Sums over people of n / (n + k) (1, a, a^2, ...) and of n, weighted as in `certify.one_rating`: levels."""
        reader = self._reader

        def one(block: Block, out: Ints) -> None:
            _add_rating_levels(block.indptr, *reader.ratings(block), LEVELS_RAMP, out)

        return self._ask("levels", share, one, (6,), settings={"ramp": LEVELS_RAMP})

    def rating_scores(self, share: float, side: ItemSide, *, level: float, shrink: float) -> NoisyAnswer:
        """Sums over ratings, by cell, of psi(z) (`certify.one_rating`): score and slope at the item side so far.

        `level`, in spreads, is where ratings lie; `shrink` ratings' worth of zero pull a person's own deviation from
        it, and 0 means that nobody has one.
        """
        reader = self._reader

        def one(block: Block, out: Ints) -> None:
            cells, y = reader.ratings(block)
            e = y / side.spread - level - side.effects[cells]
            _add_rating_scores(block.indptr, cells, e, CLIP, shrink, WIDTH, out)

        settings = {"clip": CLIP, "shrink": shrink, "width": WIDTH}
        return self._ask("scores", share, one, (self.n_cells, 2), settings=settings)

    def rating_moments(self, share: float, side: ItemSide, cells: Ints, *, level: float) -> NoisyAnswer:
        """Sums over people of a_n x x' over `cells` (`certify.one_rating`); zero on and below the diagonal."""
        place = self._places(cells)
        weights = np.array([moment_weight(n, RAMP) for n in range(len(cells) + 1)], dtype=np.int64)

        reader = self._reader

        def one(block: Block, out: Ints) -> None:
            found, y = reader.ratings(block)
            e = y / side.spread - level - side.effects[found]
            _add_rating_moments(block.indptr, found, e, place, CLIP, SHRINK, WIDTH, weights, out)

        return self._ask_above_diagonal(MOMENTS, share, one, len(cells), moment_settings(len(cells)))

    def moments_noise(self, share: float, n_cells: int) -> float:
        """The deviation of the noise that `rating_moments` over so many cells would have."""
        return sqrt(self._describe(MOMENTS, share, 1, moment_settings(n_cells)).variance) / MOMENT**2


@kernel
def _add_rating_levels(indptr: Ints, cells: Ints, y: Floats, ramp: float, out: Ints) -> None:
    """k / (n + k) (n, n a, q n a^2, q W, q (n - 1)) and n / 10, on the grid; y is cut to the scale, no number is 0."""
    real = np.zeros(6)
    for u in range(len(indptr) - 1):
        n, total, squares = 0, 0.0, 0.0
        for t in range(indptr[u], indptr[u + 1]):
            if cells[t] >= 0:
                x = (min(max(y[t], -1.0), 1.0) if y[t] == y[t] else 0.0) - CENTRE
                n += 1
                total += x
                squares += x * x
        if n == 0:
            continue
        weight, second = ramp / (n + ramp), _SECOND_ORDER * ramp / (n + ramp)
        of_mean = total * total / n
        real[0], real[1], real[5] = weight * n, weight * total, _PER_RATING * n
        real[2], real[3], real[4] = second * of_mean, second * max(squares - of_mean, 0.0), second * (n - 1)
        for i in range(6):
            out[i] += int(GRID * SAFE * real[i])


@kernel
def _add_rating_scores(
    indptr: Ints, cells: Ints, e: Floats, clip: float, shrink: float, width: float, out: Ints
) -> None:
    """psi of every rating, on the grid; the mean of a person's where several share a cell.

    Both numbers are rounded towards zero, so a person's vector in a cell has length at most GRID. Means, because one
    rating more moves all others of its person a little: in one cell those moves would add up without end.
    """
    pair = np.zeros(2, np.int64)
    for u in range(len(indptr) - 1):
        first, last = indptr[u], indptr[u + 1]
        m = 0.0
        if shrink > 0:
            n = 0
            for t in range(first, last):
                if cells[t] >= 0:
                    cut = min(max(e[t], -clip), clip)
                    m += cut if -clip <= cut <= clip else 0.0  # not-a-number must not reach the others
                    n += 1
            m /= n + shrink
        order = first + np.argsort(cells[first:last], kind="mergesort")
        i = 0
        while i < len(order):
            cell, many, score, slope = cells[order[i]], 0, 0.0, 0.0
            while i < len(order) and cells[order[i]] == cell:
                z = e[order[i]] - m
                x = z / np.sqrt(z * z + width * width)
                score += x
                slope += (1 - x * x) ** 1.5
                many += 1
                i += 1
            if cell >= 0:
                pair[0], pair[1] = (
                    grid_steps(GRID * SAFE * score / many, GRID),
                    grid_steps(GRID * SAFE * slope / many, GRID),
                )
                enforce_length(pair, 2, GRID)
                out[cell] += pair


@kernel
def _add_rating_moments(
    indptr: Ints,
    cells: Ints,
    e: Floats,
    place: Ints,
    clip: float,
    shrink: float,
    width: float,
    weights: Ints,
    out: Ints,
) -> None:
    """a_n x x' above the diagonal, over the places where a person has exactly one rating."""
    T = len(out)
    times, where, x = np.zeros(T, np.int64), np.empty(T, np.int64), np.empty(T, np.int64)
    for u in range(len(indptr) - 1):
        first, last = indptr[u], indptr[u + 1]
        m, many = 0.0, 0
        for t in range(first, last):
            if cells[t] >= 0:
                cut = min(max(e[t], -clip), clip)
                m += cut if -clip <= cut <= clip else 0.0
                many += 1
                if place[cells[t]] >= 0:
                    times[place[cells[t]]] += 1
        m /= many + shrink
        n = 0
        for t in range(first, last):
            if cells[t] >= 0 and place[cells[t]] >= 0 and times[place[cells[t]]] == 1:
                z = e[t] - m
                where[n] = place[cells[t]]
                x[n] = grid_steps(MOMENT * SAFE * z / np.sqrt(z * z + width * width), MOMENT)
                n += 1
        for t in range(first, last):
            if cells[t] >= 0 and place[cells[t]] >= 0:
                times[place[cells[t]]] = 0
        for a in range(n):
            for b in range(n):
                if where[b] > where[a]:
                    out[where[a], where[b]] += (weights[n] * x[a] * x[b]) // MOMENT_WEIGHT
