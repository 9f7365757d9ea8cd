"""The receipt for privacy spent: what is protected, what was public, and what it cost.

A certificate is data. It is written only in `privacy/vault`, by the call that drew the noise; every other room reads
it. It belongs to one set of draws (`id`) and, where a ledger paid for it, to one charge. The parts of one certificate
concern the same ratings, so their prices add up: at the unit `value` epsilons and deltas (basic composition),

    epsilon = sum of the parts' epsilon,   delta = sum of the parts' delta,

or, where a public division says which rating is asked what, what the dearest rating pays (`parts.price_together`);
and where people are asked, squares of mu (Gaussian differential privacy): epsilon is then the smallest at which

    gaussian_delta(sum of mu^2, epsilon) + what names and the sampler add  <=  delta,   the delta that was asked for.

**Whatever the answers.** There the noise of a question follows from earlier answers, so that what is spent does, too.
Promised is what holds for every course of answers: M, the largest sum of squares that the epsilon and delta asked for
allow, which the vault never exceeds (`normal_price`). So the price of the unit is what was asked for, unless more was
spent; another unit's is that of 4 M, for no question costs it more than four times as much, and what this course of
answers has saved does not count.

Nothing that follows from the parts is a field: whoever reads a certificate computes its price, for every unit.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from importlib.metadata import version
from math import inf, nextafter
from typing import Any, NamedTuple, TypeAlias

from dpsr.certify.amounts import check_delta, epsilon_text, float_below, float_up, sum_up
from dpsr.certify.display import frame_of, html_of, rows_of
from dpsr.certify.normal_price import SAMPLER_SLACK, affordable_squared_mu, gaussian_epsilon
from dpsr.certify.parts import (
    ChannelPart,
    DividedSumsPart,
    HistogramPart,
    Part,
    Price,
    PricedPart,
    SumsPart,
    price_together,
)
from dpsr.certify.people import MOST_REPLACED, NAMES_DELTA, NormalPart, PersonPart, RatingPart, root_up
from dpsr.certify.unproved import DeclaredPart, PublishedPart
from dpsr.errors import ParameterError, PrivacyError

Protection: TypeAlias = dict[str, Price | None]

FORMAT = "dpsr-certificate-2"

UNITS = ("value", "rating", "user")

PROMISES = {
    "value": "The value of one rating is protected. Two data sets are neighbours when they differ in the value of "
    "exactly one rating; who rated what is public.",
    "rating": "That a rating exists is protected, with its value and its time. Two data sets are neighbours when one "
    "has exactly one rating more than the other; what is released hardly depends on any single rating.",
    "user": "Every person is protected, with all their ratings. Two data sets are neighbours when one has exactly one "
    "person more than the other; what is released hardly depends on anybody.",
}
"""What each unit of protection says, for people."""

LIKES_PROMISES = {
    "rating": "That an interaction exists is protected, with its weight and its time. Two data sets are neighbours "
    "when one has exactly one interaction more than the other; what is released hardly depends on any single one.",
    "user": "Every person is protected, with everything they did. Two data sets are neighbours when one has exactly "
    "one person more than the other; what is released hardly depends on anybody.",
}
"""The same where there are no ratings: clicks, plays, purchases, visits."""

LIKES_FACTS = "the list of items if it was declared"

_OF_PEOPLE = "the scale, and the list of items if it was declared"

PUBLIC_FACTS = {
    "value": "user ids, item ids, who rated what, how many ratings each has, timestamps, the scale",
    "rating": _OF_PEOPLE,
    "user": _OF_PEOPLE,
}
"""What each unit of protection does not cover, for people."""

COMPOSITIONS = {
    "value": "basic: the parts concern the same ratings, so their prices add up",
    "rating": "Gaussian: the squares of mu add up, and epsilon follows at the stated delta",
    "user": "Gaussian: the squares of mu add up, and epsilon follows at the stated delta",
}

DIVIDED = "by rating: who rated what says which parts a rating is in, and what the dearest rating pays counts"
"""The composition where a division says which rating is asked what."""

PARTS: dict[str, type[Part]] = {
    part.kind: part
    for part in (
        ChannelPart,
        HistogramPart,
        SumsPart,
        DividedSumsPart,
        PublishedPart,
        DeclaredPart,
        PersonPart,
        RatingPart,
    )
}
"""Every kind of question there is. What is not here is not blessed."""

NOT_PROTECTED = "not protected"

PER = {"value": "rating's value", "rating": "rating", "user": "person"}
"""What a price is for, in a word or two."""


class ChargeReference(NamedTuple):
    """The entry of a ledger that paid: its id, and the digest that the ledger's chain had there."""

    id: str
    digest: str


@cache
def software() -> str:
    """Which library writes a certificate. Looked up once: reading a package's metadata takes longer than many draws."""
    return f"dpsr {version('dpsr')}"


@dataclass(frozen=True)
class Certificate:
    """What a release promises.

    `epsilon` and `delta` are the exact price for the `unit` of protection, `nominal` and `nominal_delta` what was asked
    for. `private` is true only if the noise came from the operating system, the price is finite and no more than was
    asked; `reasons` says why it is not. `id` names the draws: no two certificates share one. `charge` is the entry of a
    ledger that paid, if one did.

    >>> from dpsr.certify.parts import HistogramPart
    >>> part = HistogramPart("level histogram", "4", (0, 1))
    >>> facts = {"nominal": 0.5, "public": {}, "randomness": "system", "private": True, "id": "0" * 32}
    >>> Certificate(parts=(part,), **facts).epsilon
    0.5
    """

    nominal: float | None
    parts: tuple[Part, ...]
    public: dict[str, Any]
    randomness: str
    private: bool
    id: str
    reasons: tuple[str, ...] = ()
    unit: str = "value"
    nominal_delta: float = 0.0
    charge: ChargeReference | None = None
    software: str = ""

    @property
    def epsilon(self) -> float:
        """The exact price of everything together, never rounded down."""
        return self._price.epsilon

    @property
    def delta(self) -> float:
        return self._price.delta

    @cached_property
    def _price(self) -> Price:
        price = self._price_at(self.unit)
        return Price(inf, self.nominal_delta) if price is None else price

    def _price_at(self, unit: str) -> Price | None:
        """The price for one unit, computed from the parts; None where it is not protected."""
        priced = [part for part in self.parts if isinstance(part, PricedPart)]
        if len(priced) == len(self.parts):
            whole = Price(_epsilon_together(priced), sum_up(part.delta for part in priced))
            return whole if unit == self.unit == "value" else None
        asked = [part for part in self.parts if isinstance(part, NormalPart) and part.unit == self.unit]
        if len(asked) != len(self.parts):
            return None  # another unit's questions: nothing is promised about them together
        if any(part.squared_mu(unit) is None for part in asked):
            return None
        spent = _spent(asked)
        if unit == self.unit:
            epsilon = gaussian_epsilon(spent, self._left_of_delta(asked, unit))
            return Price(max(epsilon, self.nominal or 0.0), self.nominal_delta)
        most = MOST_REPLACED * self.most_squared_mu
        return Price(gaussian_epsilon(most, self._left_of_delta(asked, unit)), self.nominal_delta)

    @cached_property
    def mu(self) -> float | None:
        """What this course of answers cost people together, rounded up; None at the unit `value`."""
        asked = [part for part in self.parts if isinstance(part, NormalPart) and part.unit == self.unit]
        return None if self.unit == "value" else root_up(_spent(asked))

    @property
    def most_squared_mu(self) -> Fraction:
        """The square of what all questions to people may cost together, whatever the answers; mu is what they did."""
        return max(_spent([part for part in self.parts if isinstance(part, NormalPart)]), self._allowed)

    def _left_of_delta(self, asked: Sequence[NormalPart], unit: str) -> float:
        """What names and the sampler leave of delta; names have their share of it, or more if they take more."""
        taken = sum((Fraction(part.tail(unit)) for part in asked), Fraction(0))
        share = Fraction(0) if unit == "value" else Fraction(self._delta_for_names)
        left = Fraction(self.nominal_delta) - max(taken, share) - Fraction(SAMPLER_SLACK)
        return float_below(max(left, Fraction(0)))

    @property
    def _delta_for_names(self) -> float:
        return NAMES_DELTA * self.nominal_delta if self.public.get("declared_items") is None else 0.0

    @property
    def _allowed(self) -> Fraction:
        """M: what all questions together may cost, whatever the answers; nothing where nothing was asked for."""
        try:
            return affordable_squared_mu(self.nominal or 0.0, self.nominal_delta - self._delta_for_names)
        except PrivacyError:  # so little that no question could be asked for it
            return Fraction(0)

    @property
    def promise(self) -> str:
        """What the unit of protection says, for people."""
        return LIKES_PROMISES[self.unit] if self.likes else PROMISES[self.unit]

    @property
    def per(self) -> str:
        """What its price is for, in a word or two."""
        return "interaction" if self.likes and self.unit == "rating" else PER[self.unit]

    @property
    def likes(self) -> bool:
        """Whether it is about interactions, which have no scale."""
        return self.public.get("facts") == LIKES_FACTS

    @property
    def composition(self) -> str:
        return DIVIDED if any(isinstance(part, DividedSumsPart) for part in self.parts) else COMPOSITIONS[self.unit]

    @cached_property
    def protection(self) -> Protection:
        """The price for each unit; None where it is not protected."""
        return {unit: self._price if unit == self.unit else self._price_at(unit) for unit in UNITS}

    def epsilon_for_user(self, n_ratings: int) -> float:
        """The price for the values of all `n_ratings` of one person together: group privacy adds up."""
        return sum_up([self.epsilon] * n_ratings) if n_ratings < 64 else nextafter(self.epsilon * n_ratings, inf)

    def __str__(self) -> str:
        word = "private" if self.private else "NOT PRIVATE"
        delta = f", delta = {epsilon_text(self.delta)}" if self.delta else ""
        why = "" if self.private else f" ({'; '.join(self.reasons)})"
        return f"{word}: epsilon = {epsilon_text(self.epsilon, 6)}{delta} per {self.per}{why}"

    def to_pandas(self) -> Any:
        """One row for each question: what was asked, its noise and what it cost, as a pandas DataFrame."""
        return frame_of("pandas", rows_of(self.parts))

    def to_polars(self) -> Any:
        """The same as a polars DataFrame."""
        return frame_of("polars", rows_of(self.parts))

    def _repr_html_(self) -> str:
        names = unit_names(likes=self.likes)
        return html_of(str(self), self.parts, {names[unit]: price for unit, price in self.protection.items()})

    def to_record(self) -> dict[str, Any]:
        """Plain data, as JSON holds it: infinity is a word."""
        return {
            "format": FORMAT,
            "id": self.id,
            "charge": None if self.charge is None else self.charge._asdict(),
            "private": self.private,
            "reasons": list(self.reasons),
            "unit": self.unit,
            "promise": self.promise,
            "epsilon": number(self.epsilon),
            "delta": self.delta,
            **({} if self.mu is None else {"mu": self.mu}),
            "nominal": self.nominal,
            "nominal_delta": self.nominal_delta,
            "protection": {unit: _price_record(price) for unit, price in self.protection.items()},
            "composition": self.composition,
            "randomness": self.randomness,
            "public": self.public,
            "parts": [part.to_record() for part in self.parts],
            "software": self.software,
        }

    def to_json(self) -> str:
        return json.dumps(self.to_record(), ensure_ascii=False, separators=(",", ":"), allow_nan=False)

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> Certificate:
        """From plain data of the right form (`certify.check`); what follows from the parts is computed, not read."""
        charge = record["charge"]
        return cls(
            nominal=record["nominal"],
            parts=tuple(PARTS[part["kind"]].from_record(part) for part in record["parts"]),
            public=record["public"],
            randomness=record["randomness"],
            private=record["private"],
            id=record["id"],
            reasons=tuple(record["reasons"]),
            unit=record["unit"],
            nominal_delta=record["nominal_delta"],
            charge=None if charge is None else ChargeReference(**charge),
            software=record["software"],
        )


def number(price: float) -> float | str:
    """JSON has no infinity."""
    return "inf" if price == inf else price


def _spent(parts: Sequence[NormalPart]) -> Fraction:
    """mu^2 of all of them together, each at its own unit."""
    return sum((part.squared_mu(part.unit) or Fraction(0) for part in parts), Fraction(0))


def _epsilon_together(parts: list[PricedPart]) -> float:
    return inf if any(part.epsilon == inf for part in parts) else float_up(price_together(parts))


def _price_record(price: Price | None) -> dict[str, Any] | str:
    return NOT_PROTECTED if price is None else {"epsilon": number(price.epsilon), "delta": price.delta}


def unit_names(*, likes: bool = False) -> dict[str, str]:
    """What each unit hides, in words.

    >>> unit_names(likes=True)["rating"]
    'that one interaction exists'
    """
    if likes:
        names = "the weight of one interaction", "that one interaction exists", "a whole person"
    else:
        names = "the value of one rating", "that one rating exists", "a whole person"
    return dict(zip(("value", "rating", "user"), names, strict=True))


def check_unit(unit: object, epsilon: float, delta: float | None, declared: bool) -> None:
    """Refuse a unit that is none, and a delta that is missing, not wanted or too small for any noise."""
    if unit not in UNITS:
        raise ParameterError(f"unit is one of {', '.join(UNITS)}, found {unit!r}.")
    if unit == "value":
        if delta is not None:
            raise PrivacyError(
                "the value of a rating is protected with delta = 0, which promises more at no cost, so no delta is "
                'taken. Leave it out, or protect people with it: unit="user" (or --unit user).'
            )
        if declared:
            raise ParameterError(
                "who rated what is public at unit = 'value', so no list of items is declared. Leave items out, or "
                "protect people with unit='user'."
            )
        return
    if delta is None:
        raise PrivacyError(
            f"unit = {unit!r} needs a delta: it is as if with this chance nothing were promised, so less than one "
            "over the number of people. For a million people write delta=1e-7 (or --delta 1e-7)."
        )
    affordable_squared_mu(float(epsilon), (1 - NAMES_DELTA) * check_delta(delta))
