"""Popularity of cells from several noisy rounds of weighted counts, each over fewer cells than the one before.

Everybody's vector of strengths is scaled to length one *over the cells asked about*, so a round over fewer cells weighs
each of them more: y = rho x (popularity in units of the first round) + noise. rho is how much larger the sum of the
round is than what the earlier ones say of the same cells, and a round of noise s tells a cell to precision (rho / s)^2.

What a cell's popularity is believed to be is its posterior mean, with all cells' popularities drawn from one unknown
law: the law under which the estimates are most likely, found on a grid (Kiefer and Wolfowitz 1956; Jiang and Zhang
2009). The most popular cells of many are partly those with the luckiest noise; posterior means are not fooled by that.
What lies below the noise cannot be told cell by cell, but how much of it there is can: all cells add up to a total that
is known, and without that a law over many drowned cells believes in several times as much.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import log, sqrt

import numpy as np

from dpsr.arrays import Bools, Floats, Ints

_MOST_GAIN = 4.0
"""Of rho: nobody has sixteen times as many cells in all as among those that were kept, on average."""

_MANY = 2_000
"""So many cells may be asked before the tallest of their noise matters."""

_GRID, _TURNS, _BINS = 60, 60, 4
"""Points of the law, turns in which it is found, and bins of estimates in a deviation of their noise."""

_LIKELY, _DRAWS = 30, 8
"""Cells that may be among the first, for each of those, and how often what was popular is drawn."""

_PATHS = 4
"""How often rounds to come are drawn."""

_ROOTS = 0.15
"""Relative deviation of a sum of roots that was read off octaves."""

_LEAST_SHOWN = 0.3
"""Deviations: a popularity is never believed to be below so much of its own noise."""


@dataclass(frozen=True, eq=False)
class Popularity:
    """Noisy popularity of every cell: precision-weighted sums of rounds, and the cells of the last one."""

    weighted: Floats
    precision: Floats
    asked: Ints
    total: float
    """What all cells together have, in units of the first round."""

    @classmethod
    def none(cls, n_cells: int) -> Popularity:
        """Before anything was asked."""
        return cls(np.zeros(n_cells), np.zeros(n_cells), np.arange(n_cells), 0.0)

    @property
    def deviation(self) -> Floats:
        """Of the noise in each estimate."""
        return np.asarray(1 / np.sqrt(np.maximum(self.precision, 1e-300)))

    @property
    def estimate(self) -> Floats:
        """The mean of the rounds; a cell that was left out of a later round is not above one that was kept."""
        value = self.weighted / np.maximum(self.precision, 1e-300)
        outside = np.ones(len(value), dtype=np.bool_)
        outside[self.asked] = False
        if outside.any() and len(self.asked):
            value[outside] = np.minimum(value[outside], value[self.asked].min())
        return value

    @property
    def shown(self) -> Floats:
        """Positive popularity, for scores: what is drowned keeps a trace."""
        return np.maximum(self.estimate, _LEAST_SHOWN * self.deviation)

    @cached_property
    def believed(self) -> Floats:
        """Posterior means, in the order of no argument but the estimates: for how much, not for which."""
        if not self.precision.all():
            return self.shown
        points, chances = self._posterior
        return np.asarray(chances @ points)

    def loss(self, rank: int) -> float:
        """Of the popularity of the `rank` most popular cells, the part that the best guess at them is to miss."""
        return self.losses(rank, [np.zeros(0, dtype=np.int64)])[0]

    def losses(self, rank: int, settled: Sequence[Ints]) -> list[float]:
        """For each of `settled`, what would still be missed if the popularity of these cells were known.

        What was popular is drawn from the posterior a few times, with a fixed seed: it reads nothing.
        """
        if not self.precision.all():
            return [0.0] * len(settled)
        points, chances = self._posterior
        likely = self._order_believed[: max(_LIKELY * rank, _MANY)]
        sums, rng, best = np.cumsum(chances[likely], axis=1), np.random.default_rng(0), 0.0
        known, guessed = [np.isin(likely, cells) for cells in settled], [0.0] * len(settled)
        for _ in range(_DRAWS):
            drawn = points[_drawn(sums, rng)]
            best += float(np.sort(drawn)[::-1][:rank].sum())
            for which, cells in enumerate(known):
                guess = np.argsort(-np.where(cells, drawn, self.believed[likely]), kind="stable")[:rank]
                guessed[which] += float(drawn[guess].sum())
        return [min(max(1 - one / best, 0.0), 1.0) if best > 0 else 0.0 for one in guessed]

    def mass_after(self, rank: int, sizes: Sequence[int], told: Callable[[float], float]) -> float:
        """Popularity that the best guess at the `rank` most popular cells is to have after more rounds.

        Each asks the most popular cells so far, so many as `sizes` say, and reads them to a precision that follows from
        their share of the popularity of all. What is popular is drawn from the posterior and read with noise a few
        times, with a fixed seed, and the posterior of every round is that of the next one's choice.
        """
        points, chances = self._posterior
        likely = self._order_believed[: max(_LIKELY * rank, _MANY)]
        outside = np.append(0.0, np.cumsum(self.believed[self._order_believed[len(likely) :]]))
        rng, found, before = np.random.default_rng(0), 0.0, chances[likely]
        sums, believed = np.cumsum(before, axis=1), before @ points
        for _ in range(_PATHS):
            now, means = before.copy(), believed.copy()
            drawn = points[_drawn(sums, rng)]
            for size in sizes:
                asked = np.argsort(-means, kind="stable")[:size]
                beyond = outside[min(max(size - len(likely), 0), len(outside) - 1)]
                precision = told(float((means[asked].sum() + beyond) / (means.sum() + outside[-1])))
                z = rng.normal(size=len(likely))
                read = drawn[asked] + z[asked] / sqrt(precision)
                then = now[asked]
                then *= _likelihood(read, np.full(len(asked), precision**-0.5), points)
                then /= then.sum(axis=1, keepdims=True)
                now[asked], means[asked] = then, then @ points
            found += float(np.sort(means)[::-1][:rank].sum())
        return found / _PATHS

    @cached_property
    def _order_believed(self) -> Ints:
        return np.argsort(-self.believed, kind="stable")

    @cached_property
    def possible(self) -> Floats:
        """What the popularity of cells may really be, in falling order: drawn from the posterior, with a fixed seed."""
        if not self.precision.all():
            return np.sort(self.shown)[::-1]
        points, chances = self._posterior
        return np.sort(points[_drawn(np.cumsum(chances, axis=1), np.random.default_rng(0))])[::-1]

    @cached_property
    def _posterior(self) -> tuple[Floats, Floats]:
        """Points of the law, and the chance of each for every cell."""
        y, s = self.weighted / self.precision, self.deviation
        points = np.concatenate([[0.0], np.geomspace(0.05 * s.min(), max(y.max(), 4 * s.min()), _GRID)])
        likely = _likelihood(y, s, points) * most_likely_law(y, s, points, self.total)
        return points, np.asarray(likely / likely.sum(axis=1, keepdims=True))

    def with_total(self, roots: float) -> Popularity:
        """With a second reading of the total, the sum over people of the roots of their numbers of interactions.

        The first is the sum of the first round, in which the noise of many cells adds up.
        """
        first, second = float(self.precision.max() / len(self.precision)), (_ROOTS * roots) ** -2
        return replace(self, total=max((first * self.total + second * roots) / (first + second), 1.0))

    @cached_property
    def order(self) -> Ints:
        """Cells by popularity, the first first."""
        return np.argsort(-self.estimate, kind="stable")

    @property
    def known(self) -> Bools:
        """Cells whose popularity stands out of its noise: the more cells were asked, the further some noise reaches."""
        far = max(1.5, sqrt(2 * log(max(len(self.asked) / _MANY, 1.0))))
        return np.asarray(self.estimate > far * self.deviation)

    def add(self, cells: Ints, values: Floats, noise: float) -> Popularity:
        """One more round, over `cells`."""
        rho, total = 1.0, self.total
        if not self.precision.any():
            total = float(values.sum())
        else:
            before = float(self.estimate[cells].sum())
            rho = min(max(float(values.sum()) / before, 1.0), _MOST_GAIN) if before > 0 else 1.0
        weighted, precision = self.weighted.copy(), self.precision.copy()
        weighted[cells] += values * rho / noise**2
        precision[cells] += (rho / noise) ** 2
        return Popularity(weighted, precision, np.sort(cells), total)


def most_likely_law(y: Floats, s: Floats, points: Floats, total: float) -> Floats:
    """Of what y are noisy readings of, with deviations s: probabilities of `points`, by expectation maximisation.

    Readings of one deviation are counted in bins: there are few deviations, one for every set of rounds. Points that
    hardly stand out of the noise give so much of their chance to the first, which is zero, or take so much from it,
    that all readings add up to `total`; those that do give some only where they have more than that by themselves.
    """
    centres, widths, many = [], [], []
    for one in np.unique(s):
        place, counts = np.unique(np.floor(y[s == one] * (_BINS / one)), return_counts=True)
        centres.append((place + 0.5) * (one / _BINS))
        widths.append(np.full(len(place), one))
        many.append(counts)
    likely, share = _likelihood(np.concatenate(centres), np.concatenate(widths), points), np.concatenate(many) / len(y)
    law, hidden = np.full(len(points), 1 / len(points)), points < 2 * s.max()
    for _ in range(_TURNS):
        law = law * (likely.T @ (share / (likely @ law)))
        below, above = float(law[hidden] @ points[hidden]), float(law[~hidden] @ points[~hidden])
        law[hidden] *= min(max((total / len(y) - above) / max(below, 1e-300), 0.5), 2.0)
        law[~hidden] *= min(max(total / len(y) / max(above, 1e-300), 0.5), 1.0)
        law[0] = max(law[0] + 1 - law.sum(), 1e-3)
    return np.asarray(law / law.sum())


def _likelihood(y: Floats, s: Floats, points: Floats) -> Floats:
    """Of every point for every reading, up to a factor for each reading; never nothing."""
    found = y[:, None] - points
    found /= s[:, None]
    np.square(found, out=found)
    found *= -0.5
    np.exp(found, out=found)
    found += 1e-300
    return np.asarray(found)


def _drawn(sums: Floats, rng: np.random.Generator) -> Ints:
    """A place in every row of cumulated chances, by one uniform number each."""
    below = sums < rng.random((len(sums), 1))
    place = np.add.reduce(below.view(np.uint8), axis=1, dtype=np.uint8)  # a row has 61 points
    return np.asarray(np.minimum(place, sums.shape[1] - 1), dtype=np.int64)
