"""Questions to people: integer sums with normal noise, described so that what they cost follows for every unit.

    person    every person adds one integer vector whose squared length is at most `squared_bound`, checked where the
              sum is made. One person more or less moves the sum by that; one rating more, less or changed replaces a
              vector by another, which moves it by at most twice the length (squares: 4), or by sqrt 2 times it
              (squares: 2) where two vectors of different people never point apart:

                  names, counts    weights are not negative;  a rating's value does not enter names (squares: 0)
                  interactions     one-hot: which octave of the number of interactions somebody is in
                  second moments   |x x' - y y'|^2 = |x|^4 + |y|^4 - 2 (x y)^2 over all entries, half of it above the
                                   diagonal
    rating    every rating adds an integer vector, and its person's other ratings move a little (`one_rating`). One
              rating changed is one removed and one added; a person is not protected

Noise of variance s^2 makes a question of squared sensitivity D^2 cost mu^2 = D^2 / s^2, and squares add up
(`certify.normal`).

**Names.** Of the items to which somebody gave a weight, those are named whose noisy weight exceeds `threshold`.
Everything else about them is the Gaussian mechanism's; but an item that one person alone rated must not pass, and the
chance that one of k such items does is at most k P[N > threshold - 1/sqrt k], in the person's largest weight, for every
k up to `most_named`: of somebody with more items so many count. It is added to delta. The fewer, the lower a threshold
will do. At the unit `rating` a rating adds its weight to its own item, whatever else its person did: it can name one
item more, and there is nothing to limit.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache, cached_property, lru_cache
from math import ceil, inf, isqrt, nextafter, sqrt
from statistics import NormalDist
from typing import Any, ClassVar, Self

from dpsr.certify.amounts import float_up
from dpsr.certify.normal_price import tail_up
from dpsr.certify.one_rating import SQUARED_BOUNDS
from dpsr.certify.parts import Part
from dpsr.errors import PrivacyError

MOMENTS, NAMES = "second moments", "names"

INTERACTIONS, COUNTS, PRESENCE = "numbers of interactions", "weighted counts", "second moments of presence"

PAIRS = "pairs of presence"
"""Asked of single interactions alone (`one_rating`)."""

QUESTIONS = ("levels", "activity", "scores", "coefficients", MOMENTS, NAMES)
"""What may be asked of people who rate."""

LIKES_QUESTIONS = (INTERACTIONS, COUNTS, PRESENCE, PAIRS, NAMES)
"""What may be asked of people who only do things: clicks, plays, purchases, visits."""

GRID = 1 << 20
"""Steps of the grid that make the bound of a contribution."""

MOMENT = 1 << 15
"""The same for the vectors whose products are second moments."""

SQUARED_BOUND, SQUARED_MOMENT_BOUND = GRID**2, MOMENT**4 // 2
"""Of every contribution, and of second moments: what is above the diagonal of x x', |x| <= MOMENT."""

PRESENCE_GRID = 1 << 12
"""The same for second moments of presence, which are asked at small budgets, too: coarser, for smaller variances."""

SQUARED_PRESENCE_BOUND = PRESENCE_GRID**4 // 2

MOST_NAMED = 4096
"""Items by which one person may help to name, at most; what a certificate means that does not say how many."""

NAMED_TRIED = tuple(1 << power for power in range(MOST_NAMED.bit_length()))
"""Of which a plan may take one: a factor of two either way moves the threshold by a fiftieth."""

_REMEMBERED = 1 << 10
"""Thresholds and their tails: plans, audits and checks of a certificate ask for the same ones over and over."""

NAMES_DELTA = 0.1
"""Share of delta for the chance that an item of one person alone is named, where the list of items is not declared."""

MOST_REPLACED = 4
"""Square of the distance of two contributions, in squared bounds, whatever the question."""

_REPLACED = {MOMENTS: 2, NAMES: 2, COUNTS: 2, INTERACTIONS: 2}
"""The same where it is less."""


@dataclass(frozen=True)
class NormalPart(Part):
    """Integer sums with exactly rounded normal noise of the whole `variance`.

    `numbers` is how many sums there are; 0 for names, because how many items there are is nobody's business.
    """

    variance: int
    numbers: int

    @property
    @abstractmethod
    def cut(self) -> int | None:
        """The weight above which an item is named; None where nothing is named."""

    @abstractmethod
    def squared_sensitivity(self, unit: str) -> int | None:
        """The largest squared distance between the sums of two neighbours; None where there is no bound."""

    def squared_mu(self, unit: str) -> Fraction | None:
        """What it costs at `unit`: mu^2, a fraction."""
        if self.variance <= 0 or (self.numbers == 0) != (self.name == NAMES):
            raise PrivacyError("normal noise has a positive variance, and sums, but for names, are counted")
        square = self.squared_sensitivity(unit)
        return None if square is None else Fraction(square, self.variance)

    def tail(self, unit: str) -> float:
        """The chance that something is shown which normal noise does not cover."""
        return 0.0

    @property
    @abstractmethod
    def unit(self) -> str:
        """The unit whose contributions are bounded."""

    @cached_property
    def stated(self) -> dict[str, float]:
        """mu at its own unit, rounded up, and what it adds to delta."""
        square = self.squared_mu(self.unit)
        return {"mu": inf if square is None else root_up(square), "delta": self.tail(self.unit)}

    @property
    def noise(self) -> str:
        numbers = f"{self.numbers:,} numbers, " if self.numbers else ""
        return f"normal, {numbers}deviation {sqrt(self.variance):,.0f}, mu = {self.stated['mu']:.4g}"


@dataclass(frozen=True)
class PersonPart(NormalPart):
    """Vectors of people: see the module. `threshold` is for names alone, and so is `most_named`, the number of items
    by which one person may help to name; None in certificates from before it could be chosen: `MOST_NAMED`.

    >>> part = PersonPart("scores", 4 * SQUARED_BOUND, 100, SQUARED_BOUND)
    >>> part.squared_mu("user"), part.squared_mu("rating")
    (Fraction(1, 4), Fraction(1, 1))
    """

    kind: ClassVar[str] = "person"

    squared_bound: int
    threshold: int | None = None
    most_named: int | None = None

    @property
    def unit(self) -> str:
        return "user"

    @property
    def cut(self) -> int | None:
        return self.threshold

    @property
    def noise(self) -> str:
        said = "" if self.most_named is None else f", by {self.most_named:,} items of a person at most"
        return super().noise + said

    def to_record(self) -> dict[str, Any]:
        """Without `most_named` where it is not said: as it was written before."""
        record = super().to_record()
        if self.most_named is None:
            del record["most_named"]
        return record

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> Self:
        return super().from_record({"most_named": None, **record})

    def squared_sensitivity(self, unit: str) -> int | None:
        _check_names(self.name, self.threshold)
        if self.most_named is not None:
            check_most_named(self.name, self.most_named)
        if self.name == PAIRS:
            raise PrivacyError(f"{PAIRS} have a bound for one interaction and none for a person")
        wanted = squared_bound_of(self.name)
        if self.squared_bound != wanted:
            raise PrivacyError(
                f"{self.name} are measured against a squared bound of {wanted}, not {self.squared_bound}"
            )
        if unit == "user":
            return self.squared_bound
        return (
            0
            if self.name == NAMES and unit == "value"
            else _REPLACED.get(self.name, MOST_REPLACED) * self.squared_bound
        )

    def tail(self, unit: str) -> float:
        """At the unit `value` the same items have ratings, so nothing new can be named."""
        if self.threshold is None or unit == "value":
            return 0.0
        return naming_tail(self.threshold, self.squared_bound, self.variance, self.most_named or MOST_NAMED)


@dataclass(frozen=True)
class RatingPart(NormalPart):
    """Vectors of ratings; the bound follows from `settings` (`one_rating`)."""

    kind: ClassVar[str] = "rating"

    settings: dict[str, float] = field(default_factory=dict)
    threshold: int | None = None

    @property
    def unit(self) -> str:
        return "rating"

    @property
    def cut(self) -> int | None:
        return self.threshold

    def squared_sensitivity(self, unit: str) -> int | None:
        _check_names(self.name, self.threshold)
        if unit == "user":
            return None
        if self.name == NAMES and unit == "value":
            return 0
        if self.settings.get("bound") != steps_of_bound(self.name):
            raise PrivacyError(f"{self.name} are measured on a grid of {GRID} steps, second moments of {MOMENT**2}")
        bound = SQUARED_BOUNDS[self.name](self.settings)
        return MOST_REPLACED * bound if unit == "value" else bound

    def tail(self, unit: str) -> float:
        """One rating more can name one item more; at the unit `user` there is no promise."""
        if self.threshold is None or unit != "rating":
            return 0.0
        weight = isqrt(SQUARED_BOUNDS[self.name](self.settings))
        return _passing_tail(self.threshold, weight, self.variance)


def squared_bound_of(name: str) -> int:
    """The square of how long a person's contribution to a question may be, in steps."""
    return {MOMENTS: SQUARED_MOMENT_BOUND, PRESENCE: SQUARED_PRESENCE_BOUND}.get(name, SQUARED_BOUND)


def steps_of_bound(name: str) -> int:
    """Steps of the grid that make the bound of a contribution to a question."""
    return {MOMENTS: MOMENT**2, PRESENCE: PRESENCE_GRID**2}.get(name, GRID)


def check_most_named(name: str, most: int) -> None:
    """Refuse a number of items that no person may help to name by, or one for another question."""
    if name != NAMES or not 1 <= most <= MOST_NAMED:
        raise PrivacyError(
            f"names, and names alone, have a number of items of one person, from 1 to {MOST_NAMED:,}; found {most} "
            f"for {name}"
        )


@lru_cache(_REMEMBERED)
def naming_tail(threshold: int, squared_bound: int, variance: int, most: int = MOST_NAMED) -> float:
    """The chance that one of the items passes that one person alone rated, for the worst number of them up to `most`,
    rounded up."""
    found = _naming(threshold, squared_bound, variance, most)
    return min(max(float_up(many * Fraction(tail_up(_down(distance)))) for many, distance in found), 1.0)


def near_threshold(noise: float, delta: float, most: int) -> float:
    """In floating point, for plans: the weight, in bounds, that each of k <= `most` items of one person alone passes
    with chance at most delta / k, in noise of this deviation.

    >>> near_threshold(10.0, 1e-6, 1) < near_threshold(10.0, 1e-6, 100) < near_threshold(10.0, 1e-6, 4096)
    True
    """
    normal = NormalDist(0.0, noise)
    return max(1 / sqrt(few) - normal.inv_cdf(delta / many) for few, many in _numbers(most))


@lru_cache(_REMEMBERED)
def person_threshold(variance: int, delta: float, most: int = MOST_NAMED) -> int:
    """The lowest threshold, but for a trace, whose `naming_tail` is at most `delta`."""
    near = GRID * near_threshold(sqrt(variance) / GRID, delta, most)
    return _lowest(lambda t: naming_tail(t, SQUARED_BOUND, variance, most) <= delta, near, variance)


@lru_cache(_REMEMBERED)
def rating_threshold(weight: int, variance: int, delta: float) -> int:
    """The lowest threshold, but for a trace, that an item of this `weight` passes with chance at most `delta`."""
    near = weight * near_threshold(sqrt(variance) / weight, delta, 1)
    return _lowest(lambda t: _passing_tail(t, weight, variance) <= delta, near, variance)


def _passing_tail(threshold: int, weight: int, variance: int) -> float:
    return tail_up(_down((threshold - weight) / sqrt(variance)))


def _naming(threshold: int, squared_bound: int, variance: int, most: int) -> Iterator[tuple[int, float]]:
    """Numbers of items up to `most`, and how many deviations each of them is from being named."""
    for few, many in _numbers(most):
        yield many, (threshold - sqrt(squared_bound / few)) / sqrt(variance)


@cache
def _numbers(most: int) -> tuple[tuple[int, int], ...]:
    """The first and the last of a few consecutive numbers of items, up to `most`: with k items the weights are at most
    b / sqrt k, and of such a few the last number meets the weight of the first."""
    few, found = 1, []
    while few <= most:
        many = min(max(few + 1, few * 9 // 8), most + 1)
        found.append((few, many - 1))
        few = many
    return tuple(found)


def _lowest(holds: Callable[[int], bool], near: float, variance: int) -> int:
    """The lowest whole number, but for a trace, where a condition on a normal tail holds that does so about `near`."""
    found, step = ceil(near), isqrt(variance) // 10_000 + 1
    while not holds(found):
        found += step
    return found


def root_up(square: Fraction) -> float:
    """The square root, rounded up.

    >>> root_up(Fraction(1, 4))
    0.5
    """
    root = sqrt(square)
    while Fraction(root) ** 2 < square:
        root = nextafter(root, inf)
    return root


def _down(number: float) -> float:
    """Below `number`, by more than a few roundings."""
    return number - 1e-12 * abs(number) - 1e-12


def _check_names(name: str, threshold: int | None) -> None:
    if (name == NAMES) != (threshold is not None):
        raise PrivacyError("names, and names alone, have a threshold")
