"""What the release leaves to be chosen, decided on released noisy readings and the public mask: no raw rating is read.

People are fitted to four fifths of their noisy readings exactly as they will be to their raw ratings, and the fifth
held out decides: how strong the mask kernel is, whether people differ in how much they follow the mask, and whether the
spread of ratings depends on their mean. A later candidate must predict held-out readings better, person by person, by
more than a standard error. Where no noisy ratings were bought, the strength of the mask's structure decides.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from dpsr.arrays import Bools, Floats
from dpsr.release.personalise.kernels import Readings
from dpsr.release.personalise.posterior import Choice, coefficients, fitted, without_own
from dpsr.release.personalise.released_side import People, ReleasedSide
from dpsr.types import Mask

KERNEL = 0.06
"""Share of the variance of ratings that the kernel is given where the mask clearly has structure."""

SLOPE_SPREAD = 1.0
"""Standard deviation of the logarithm of how much single people's slopes vary, where it is averaged over."""

CLEAR = 0.05
"""Strength below which a mask is taken to have no structure."""

ECHO = 0.005
"""Factors whose halving costs less than this share of the residual variance on held-out readings are halved: other
people's factors carry an echo of a person's own readings, which makes factors look better on these than they are."""

ENOUGH = 200_000
"""Ratings whose readings decide, at most."""

_FIFTHS, _HELD_OUT = 5, 2
"""One reading in five is held out at a time; two such fifths are looked at."""


def choose(side: ReleasedSide, mask: Mask, strength: float) -> Choice:
    """The choice for everybody in a release whose mask has structure of this strength."""
    tau = KERNEL * side.prior.variance * strength
    if side.noisy is None:
        return Choice(tau, SLOPE_SPREAD, family=False) if strength > CLEAR else Choice(0.0, 0.0, family=False)
    trial = _Trial(side, _some_people(mask))
    best = Choice(tau / 4 if strength > CLEAR else 0.0, 0.0, family=False)
    found = trial.loss(best)
    for change in _changes(tau if strength > CLEAR else None):
        other = change(best)
        lost = trial.loss(other)
        gain = found - lost
        if gain.sum() > math.sqrt(len(gain)) * gain.std():
            best, found = other, lost
    half = best._replace(factors=0.5)
    return half if side.prior.widths.factors and (trial.loss(half) - found).sum() < trial.echo else best


def _changes(tau: float | None) -> Iterator[Callable[[Choice], Choice]]:
    """Candidates in turn, each a change of the best so far."""
    if tau is not None:
        yield lambda best: best._replace(tau=0.0)
        yield lambda best: best._replace(tau=tau)
    yield lambda best: best._replace(family=True)
    yield lambda best: best._replace(slope_spread=SLOPE_SPREAD)


class _Trial:
    """People fitted to some of their noisy readings and compared with the others."""

    def __init__(self, side: ReleasedSide, people: People) -> None:
        self.side, self.people = side, people
        self.readings: Readings = side.readings(people)
        self.explained = self.readings.weight * side.residual
        self.own = without_own(side, people)
        self.fifth = random_folds(people)

    @property
    def echo(self) -> float:
        """The loss that an echo may explain."""
        return ECHO * self.side.residual * float(np.sum(self.explained[self.fifth < _HELD_OUT] ** 2))

    def loss(self, choice: Choice) -> Floats:
        """Squared errors at held-out readings, each as far as it can be trusted, person by person."""
        total = np.zeros(len(self.people.users))
        for fold in range(_HELD_OUT):
            held = self.fifth == fold
            off = (self.readings.value - self._fitted_without(held, choice))[held]
            weight = self.explained[held] ** 2
            total += np.bincount(self.people.rows[held], weight * off**2, minlength=len(total))
        return total

    def _fitted_without(self, held: Bools, choice: Choice) -> Floats:
        seen = ~held
        theta = coefficients(
            self.side,
            choice,
            self.people.only(seen),
            self.own.only(seen),
            self.readings.value[seen],
            1 / self.explained[seen],
        )
        return fitted(theta, self.own, self.side.taste(kernel=choice.tau > 0), self.people)


def random_folds(people: People) -> Floats:
    """A number from 0 to 4 for every rating, as if drawn at random, the same every time."""
    place = np.arange(len(people.items), dtype=np.uint64)
    return np.asarray((place * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(32)) % np.uint64(_FIFTHS))


def _some_people(mask: Mask) -> People:
    """Every so manieth person of a release, such that about `ENOUGH` ratings are left."""
    users = np.arange(0, mask.n_users, max(1, -(-mask.n_ratings // ENOUGH)))
    counts = mask.user_counts[users]
    indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    places = np.arange(indptr[-1]) + np.repeat(mask.indptr[users] - indptr[:-1], counts)
    return People(users, indptr, mask.items[places], places)
