r"""One run of a whole pipeline, many canaries, one lower bound (after Steinke, Nasr and Jagielski 2023).

Canary ratings get a secret bit each, independent and fair: the lowest level or the highest. The pipeline is run once.
From the release, and from it alone, some bits are guessed and the others left open.

**Theorem.** If the pipeline is epsilon-private for the value of one rating, then given the release the number of
correct ones among r guesses is stochastically at most Binomial(r, e^eps / (1 + e^eps)).

*Proof.* Fix a release y and the bits s_1 .. s_{i-1}. Averaged over the bits after i, which are independent of S_i,

    P[y | s_<i, S_i = 1] <= e^eps P[y | s_<i, S_i = 0]      and the other way round,

because for every value of the later bits the two data sets are neighbours. S_i is a fair coin independent of s_<i, so
by Bayes the odds of S_i given (y, s_<i) lie within e^eps of one, and either guess is right with probability at most
p = e^eps / (1 + e^eps), *whatever* the earlier bits were. Hence, given y, the indicators of correct guesses can be
coupled, one after the other, to lie below independent Bernoulli(p) ones, and their sum below Binomial(r, p). r is a
function of y, so it is fixed here. Averaging over y keeps the statement. QED

The same proof with some bits told beforehand: they are part of the data set then. So a part of the canaries is revealed
to learn how to guess (`train`), a part to choose when to keep silent (`choose`), and only the rest are counted.
For densities read densities; delta > 0 is not covered.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpsr.arrays import Bools, Floats
from dpsr.audit.bounds import epsilon_of_guesses
from dpsr.engine.raw import RawRatings
from dpsr.errors import ParameterError
from dpsr.release import Release

Guesser = Callable[[Floats], Floats]

FEWEST = 400
"""Ratings below which a one-run audit can say nothing."""

_FRACTIONS = (1.0, 0.3, 0.1, 0.03)
_BINS = 24
_TRAIN, _CHOOSE = 0.3, 0.5


@dataclass(frozen=True, eq=False)
class Canaries:
    """Where they sit in the table, and their secret bits."""

    positions: npt.NDArray[np.int64]
    bits: Bools


@dataclass(frozen=True)
class Guesses:
    """How many secret bits were guessed and how many of the guesses were right; `lower` bounds epsilon from below."""

    lower: float
    correct: int
    guesses: int
    canaries: int


def plant(ratings: RawRatings, share: float, rng: np.random.Generator) -> tuple[RawRatings, Canaries]:
    """The same table with a `share` of its ratings replaced by canaries at the two ends of the scale."""
    if len(ratings) < FEWEST:
        raise ParameterError(
            f"a one-run audit needs at least {FEWEST} ratings to hide canaries among, found {len(ratings)}. "
            "Audit a larger table, or leave the file out: made-up ratings are used then."
        )
    n = round(share * len(ratings))
    positions = rng.permutation(len(ratings))[:n].astype(np.int64)
    bits = rng.integers(0, 2, len(positions)).astype(bool)
    levels = ratings.levels.copy()
    levels[positions] = np.where(bits, ratings.scale.n_levels - 1, 0)
    return RawRatings(ratings.mask, levels, ratings.scale), Canaries(positions, bits)


def guess(release: Release, canaries: Canaries, *, alpha: float) -> Guesses:
    """Guess from the release alone and bound epsilon from below at confidence 1 - alpha."""
    bits, n = canaries.bits, len(canaries.bits)
    train, choose = slice(0, int(_TRAIN * n)), slice(int(_TRAIN * n), int(_CHOOSE * n))
    rest = slice(int(_CHOOSE * n), n)
    best, found = -1.0, Guesses(0.0, 0, 0, n)
    for clue in clues(release, canaries.positions):
        for belief in (_threshold(clue[train], bits[train]), _bins(clue[train], bits[train])):
            for fraction in _FRACTIONS:
                promise = _bound(belief(clue[choose]), bits[choose], fraction, alpha)[0]
                if promise > best:
                    best, found = promise, Guesses(*_bound(belief(clue[rest]), bits[rest], fraction, alpha), n)
    return found


def clues(release: Release, positions: npt.NDArray[np.int64]) -> list[Floats]:
    """What a release says about single ratings: the released value, against its prediction, against typical values."""
    mask, model = release.mask, release.model
    users, items = mask.users[positions], mask.items[positions]
    released = release.ratings[positions]
    predicted = model.predict(users, items)
    typical = model.user_means[users] + model.item_means[items] - model.overall
    return [released, released - predicted, predicted - typical]


def _bound(belief: Floats, bits: Bools, fraction: float, alpha: float) -> tuple[float, int, int]:
    """Guess the `fraction` of which one is surest; the bound, the correct ones, the guesses."""
    surest = np.argsort(-np.abs(belief), kind="stable")[: max(1, round(fraction * len(belief)))]
    guessed = surest[belief[surest] != 0]
    correct = int(np.sum((belief[guessed] > 0) == bits[guessed]))
    lower = float(epsilon_of_guesses(correct, len(guessed), alpha)) if len(guessed) else 0.0
    return lower, correct, len(guessed)


def _threshold(clue: Floats, bits: Bools) -> Guesser:
    """The higher the clue above its median, the surer of a high rating; or the other way round."""
    middle = float(np.median(clue))
    sign = 1.0 if np.sum((clue > middle) == bits) * 2 >= len(bits) else -1.0
    return lambda new: sign * (new - middle)


def _bins(clue: Floats, bits: Bools) -> Guesser:
    """Log-odds of a high rating in quantile bins of the clue: finds what is not monotone."""
    edges = np.unique(np.quantile(clue, np.linspace(0, 1, _BINS + 1)[1:-1]))
    place = np.searchsorted(edges, clue)
    high = np.bincount(place, bits, minlength=len(edges) + 1) + 2.0
    low = np.bincount(place, ~bits, minlength=len(edges) + 1) + 2.0
    odds = np.log(high / low)
    return lambda new: odds[np.searchsorted(edges, new)]
