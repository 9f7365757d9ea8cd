"""Epsilon in words: odds, guesses and people. Every figure is rounded to the side that promises less.

For a statement about one rating with prior probability p, epsilon-differential privacy moves its odds p / (1 - p) by at
most a factor e^epsilon either way (Bayes' rule and the definition), so its posterior lies between

    1 / (1 + (1 - p) / p * e^epsilon)      and      1 / (1 + (1 - p) / p * e^-epsilon).

For k ratings of one person, epsilon is replaced by k epsilon (group privacy).
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from math import ceil, exp, floor, inf, isinf, log

import numpy as np

from dpsr.types import Census, Certificate

PRIORS = (0.01, 0.1, 0.5, 0.9)
_LARGEST_FACTOR = 1e6


def posterior_bounds(prior: float, epsilon: float) -> tuple[float, float]:
    """The least and the greatest a belief of `prior` can become."""
    against = (1 - prior) / prior
    return (0.0 if epsilon > 700 else 1 / (1 + against * exp(epsilon))), 1 / (1 + against * exp(-epsilon))


def at_most(probability: float) -> str:
    """Per cent, rounded up; a finite epsilon never makes certain, so nothing rounds up to certainty.

    >>> at_most(0.731058), at_most(0.999999)
    ('73.11 %', '> 99.99 %')
    """
    hundredths = ceil(probability * 10_000)
    return "> 99.99 %" if hundredths >= 10_000 else f"{hundredths / 100:.2f} %"


def at_least(probability: float) -> str:
    """Per cent, rounded down."""
    return f"{floor(probability * 10_000) / 100:.2f} %"


def price(epsilon: float, digits: int = 4) -> str:
    """Epsilon in at most `digits` digits, rounded up from the shortest decimal that names the float.

    >>> price(0.99999998), price(0.02), price(0.93911), price(210), price(float("inf")), price(123456.7)
    ('1', '0.02', '0.9392', '210', 'unbounded', '123,457')
    """
    if isinf(epsilon):
        return "unbounded"
    if epsilon >= 10 ** (digits - 1):
        return f"{ceil(epsilon):,}"
    rounded = Context(prec=digits, rounding=ROUND_CEILING).create_decimal(Decimal(repr(float(epsilon))))
    return f"{float(rounded):g}" if rounded else "0"


def remaining(epsilon: float, digits: int = 4) -> str:
    """What is left to spend, rounded down; a debt is nothing.

    >>> remaining(0.99999), remaining(2.0), remaining(-1e-9)
    ('0.9999', '2', '0')
    """
    rounded = Context(prec=digits, rounding=ROUND_FLOOR).create_decimal(Decimal(repr(float(max(epsilon, 0.0)))))
    return f"{float(rounded):g}"


def factor(epsilon: float) -> str:
    """e^epsilon, rounded up."""
    if epsilon == inf:
        return "without bound"
    grown = exp(min(epsilon, 700))
    return price(grown, 3) if grown <= _LARGEST_FACTOR else "more than a million"


@dataclass(frozen=True)
class Person:
    """Somebody with `ratings` ratings, and what holds for all of them together."""

    who: str
    ratings: int
    epsilon: str
    guess: str


def people(certificate: Certificate, census: Census) -> list[Person]:
    """One rating, the median user and the heaviest one; users without ratings have nothing to protect."""
    counts = np.sort(census.user_counts[census.user_counts > 0])
    rows = [("One rating", 1)]
    if len(counts):
        rows += [("The median user", int(counts[len(counts) // 2])), ("The heaviest user", int(counts[-1]))]
    return [_person(certificate, who, k) for who, k in rows]


def _person(certificate: Certificate, who: str, k: int) -> Person:
    together = certificate.epsilon_for_user(k)
    return Person(who, k, price(together), at_most(posterior_bounds(0.5, together)[1]))


def ratings_until(certainty: float, epsilon: float) -> int:
    """How many ratings of one person it takes until a fifty-fifty guess about all of them may exceed `certainty`."""
    return 1 if isinf(epsilon) else floor(log(certainty / (1 - certainty)) / epsilon) + 1
