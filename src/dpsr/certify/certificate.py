"""The receipt for privacy spent: what is protected, what was public, and what it cost.

A certificate is data. It is written only in `privacy/vault`, by the call that drew the noise; every other room reads
it. It belongs to one set of draws (`id`) and, where a ledger paid for it, to one charge. The parts of one certificate
concern the same ratings, so their prices add up (basic composition):

    epsilon = sum of the parts' epsilon,   delta = sum of the parts' delta.

Nothing that follows from the parts is a field: whoever reads a certificate computes its price.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from math import inf, nextafter
from typing import Any, NamedTuple, TypeAlias

from dpsr.certify.exact import sum_up
from dpsr.certify.parts import PARTS, Part, Price

Protection: TypeAlias = dict[str, Price | None]

FORMAT = "dpsr-certificate-2"

UNITS = ("value", "rating", "user")

PROMISES = {
    "value": "The value of one rating is protected. Two data sets are neighbours when they differ in the value of "
    "exactly one rating; who rated what is public.",
}
"""What each unit of protection says, for people."""

PUBLIC_FACTS = {"value": "user ids, item ids, who rated what, how many ratings each has, timestamps, the scale"}
"""What each unit of protection does not cover, for people."""

COMPOSITION = "basic: the parts concern the same ratings, so their prices add up"

NOT_PROTECTED = "not protected"


class ChargeReference(NamedTuple):
    """The entry of a ledger that paid: its id, and the digest that the ledger's chain had there."""

    id: str
    digest: str


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
        return sum_up(part.epsilon for part in self.parts)

    @property
    def delta(self) -> float:
        return sum_up(part.delta for part in self.parts)

    @property
    def promise(self) -> str:
        """What the unit of protection says, for people."""
        return PROMISES[self.unit]

    @property
    def composition(self) -> str:
        return COMPOSITION

    @property
    def protection(self) -> Protection:
        """The price for each unit; None where it is not protected."""
        return {unit: Price(self.epsilon, self.delta) if unit == self.unit else None for unit in UNITS}

    def epsilon_for_user(self, n_ratings: int) -> float:
        """The price for the values of all `n_ratings` of one person together: group privacy adds up."""
        return sum_up([self.epsilon] * n_ratings) if n_ratings < 64 else nextafter(self.epsilon * n_ratings, inf)

    def __str__(self) -> str:
        word = "private" if self.private else "NOT PRIVATE"
        delta = f", delta = {self.delta:.3g}" if self.delta else ""
        why = "" if self.private else f" ({'; '.join(self.reasons)})"
        return f"{word}: epsilon = {self.epsilon:.6g}{delta} per {self.unit if self.unit != 'value' else 'rating'}{why}"

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


def _price_record(price: Price | None) -> dict[str, Any] | str:
    return NOT_PROTECTED if price is None else {"epsilon": number(price.epsilon), "delta": price.delta}
