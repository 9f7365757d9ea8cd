"""The receipt for privacy spent: what was protected, what was public, and what it cost.

A certificate is data. It is written only in `privacy/`, by the call that drew the noise; every other room reads it.
The parts of one certificate concern the same ratings, so their prices add up (basic composition):

    epsilon = sum of the parts' epsilon,   delta = sum of the parts' delta.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from math import inf, nextafter
from typing import Any, TypeAlias

from dpsr.certify.exact import sum_up

UNIT = (
    "The value of one rating. Two data sets are neighbours when they differ in the value of exactly one rating; "
    "who rated what is public."
)

COMPOSITION = "basic: the parts concern the same ratings, so their prices add up"

FORMAT = "dpsr-certificate-1"

Table: TypeAlias = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Part:
    """One mechanism that touched the raw ratings.

    `epsilon` and `delta` are exact figures rounded up, and can be recomputed by anyone. Finite channels show their
    integer `tables` (rows are rating levels, columns output symbols, a row sums to `2**bits`); each rating passes
    through one of them, so the part costs the dearest. Noisy statistics show an integer `sensitivity` and the
    `noise_scale` of their discrete Laplace noise, a fraction: they cost the one over the other. `details` are public
    settings.
    """

    name: str
    mechanism: str
    epsilon: float
    delta: float = 0.0
    bits: int | None = None
    tables: tuple[Table, ...] = ()
    sensitivity: int | None = None
    noise_scale: str | None = None
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Certificate:
    """What a release promises.

    `epsilon` and `delta` are the exact price, `nominal` the epsilon that was asked for. `private` is true only if the
    noise came from the operating system, the price is finite and no more than was asked; `reasons` says why it is not.
    """

    nominal: float | None
    parts: tuple[Part, ...]
    public: dict[str, Any]
    randomness: str
    private: bool
    reasons: tuple[str, ...] = ()
    unit: str = UNIT
    composition: str = COMPOSITION
    software: str = ""

    @property
    def epsilon(self) -> float:
        """The exact price of everything together, never rounded down."""
        return sum_up(part.epsilon for part in self.parts)

    @property
    def delta(self) -> float:
        return sum_up(part.delta for part in self.parts)

    def epsilon_for_user(self, n_ratings: int) -> float:
        """The price for all `n_ratings` of one person together: group privacy adds up."""
        return sum_up([self.epsilon] * n_ratings) if n_ratings < 64 else nextafter(self.epsilon * n_ratings, inf)

    def __str__(self) -> str:
        word = "private" if self.private else "NOT PRIVATE"
        delta = f", delta = {self.delta:.3g}" if self.delta else ""
        why = "" if self.private else f" ({'; '.join(self.reasons)})"
        return f"{word}: epsilon = {self.epsilon:.6g}{delta} per rating{why}"

    def to_record(self) -> dict[str, Any]:
        """Plain data, as JSON holds it: infinity is a word."""
        return {
            "format": FORMAT,
            "private": self.private,
            "reasons": list(self.reasons),
            "unit": self.unit,
            "epsilon": _number(self.epsilon),
            "delta": self.delta,
            "nominal": self.nominal,
            "composition": self.composition,
            "randomness": self.randomness,
            "public": self.public,
            "parts": [{**asdict(part), "epsilon": _number(part.epsilon)} for part in self.parts],
            "software": self.software,
        }

    def to_json(self) -> str:
        return json.dumps(self.to_record(), ensure_ascii=False, separators=(",", ":"), allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Certificate:
        record = json.loads(text)
        parts = tuple(
            Part(
                **{
                    **part,
                    "epsilon": float(part["epsilon"]),
                    "tables": tuple(tuple(tuple(row) for row in table) for table in part["tables"]),
                }
            )
            for part in record["parts"]
        )
        return cls(
            nominal=record["nominal"],
            parts=parts,
            public=record["public"],
            randomness=record["randomness"],
            private=record["private"],
            reasons=tuple(record["reasons"]),
            unit=record["unit"],
            composition=record["composition"],
            software=record["software"],
        )


def _number(price: float) -> float | str:
    """JSON has no infinity."""
    return "inf" if price == inf else price


_NUMBER_OR_INF = {"anyOf": [{"type": "number", "minimum": 0}, {"const": "inf"}]}

SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "dpsr certificate",
    "type": "object",
    "required": [
        "format", "private", "reasons", "unit", "epsilon", "delta", "nominal", "composition", "randomness", "public",
        "parts", "software",
    ],
    "additionalProperties": False,
    "properties": {
        "format": {"const": FORMAT},
        "private": {"type": "boolean"},
        "reasons": {"type": "array", "items": {"type": "string"}},
        "unit": {"type": "string"},
        "epsilon": _NUMBER_OR_INF,
        "delta": {"type": "number", "minimum": 0, "maximum": 1},
        "nominal": {"type": ["number", "null"]},
        "composition": {"type": "string"},
        "randomness": {"enum": ["system", "seeded", "declared"]},
        "public": {"type": "object"},
        "software": {"type": "string"},
        "parts": {
            "type": "array",
            "items": {
                "type": "object",
                "required": [
                    "name", "mechanism", "epsilon", "delta", "bits", "tables", "sensitivity", "noise_scale", "details",
                ],
                "additionalProperties": False,
                "properties": {
                    "name": {"type": "string"},
                    "mechanism": {"type": "string"},
                    "epsilon": _NUMBER_OR_INF,
                    "delta": {"type": "number", "minimum": 0, "maximum": 1},
                    "bits": {"type": ["integer", "null"]},
                    "tables": {
                        "type": "array",
                        "items": {"type": "array", "items": {"type": "array", "items": {"type": "integer"}}},
                    },
                    "sensitivity": {"type": ["integer", "null"]},
                    "noise_scale": {"type": ["string", "null"], "pattern": "^[0-9]+(/[0-9]+)?$"},
                    "details": {"type": "object"},
                },
            },
        },
    },
}  # fmt: skip
