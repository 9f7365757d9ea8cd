"""One entry of a ledger: how it is written down, the digest that chains it to the entry before, and what both databases
check of it in the same words.

    format 2   digest = SHA-256 of the netstrings of (digest before, format, dataset, number, ...)
    format 1   digest = SHA-256 of the entry as JSON, with the digest before in place of its own

A netstring is `length:text,` with the length in UTF-8 bytes, and `-,` where there is nothing: no two entries are
written alike, and PostgreSQL can compute it. Format 1 is read and no longer written; its entries keep their digests.
Amounts are exact fractions in lowest terms, as text: `3`, `1/10`.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

FORMAT = 2
OLD_COLUMNS = (
    "dataset", "number", "kind", "at", "who", "epsilon", "delta", "method", "note", "charge", "certificate", "digest",
)  # fmt: skip
"""Of format 1."""

CHAINED = (
    "format", "dataset", "number", "kind", "unit", "at", "who", "epsilon", "delta", "method", "note", "charge",
    "certificate", "manifest", "fingerprint",
)  # fmt: skip
"""What the digest of format 2 covers, in this order."""

COLUMNS = (*CHAINED, "digest")

TABLE = "dpsr_events"

APPEND_ONLY = "the ledger is append-only"
OUT_OF_ORDER = "an entry of the ledger has the number after the last one, and format 2"
NO_CHARGE = "a release in the ledger has a charge of its own, made before it for the same data set and method"
WRONG_TIME = "an entry of the ledger says when it was written: check the clock"

PORTABLE = {
    "dpsr_known_kind": "kind IN ('budget', 'charge', 'release')",
    "dpsr_known_format": "format IN (1, 2)",
    "dpsr_known_unit": "unit IS NULL OR unit IN ('value', 'rating', 'user')",
    "dpsr_numbers_count": "number >= 1",
    "dpsr_budget_comes_first": "(kind = 'budget') = (number = 1)",
    "dpsr_budget_has_a_unit": "(kind = 'budget' AND format = 2) = (unit IS NOT NULL)",
    "dpsr_charge_has_an_id": "(kind = 'budget') = (charge IS NULL)",
    "dpsr_release_has_a_certificate": "(kind = 'release') = (certificate IS NOT NULL)",
    "dpsr_release_has_a_manifest": "(kind = 'release' AND format = 2) = (manifest IS NOT NULL)",
    "dpsr_only_charges_have_fingerprints": "fingerprint IS NULL OR (kind = 'charge' AND format = 2)",
    "dpsr_nothing_private_is_free": "kind = 'release' OR epsilon <> '0'",
}
"""Which columns an entry of each kind has, as both databases check it."""

_NUMBERS, _AMOUNTS = {"format", "number"}, {"epsilon", "delta"}
_OPTIONAL = {"unit", "charge", "certificate", "manifest", "fingerprint"}
_AMOUNT = re.compile(r"[0-9]+(/[0-9]+)?", re.ASCII)


class UnlawfulError(ValueError):
    """An entry that dpsr does not write. The message goes on where "entry 3" ends: `has no manifest`."""


@dataclass(frozen=True)
class Event:
    """One entry of a history.

    `kind` is budget, charge or release. `charge` is the id of a charge, at the charge itself and at the release it paid
    for. `certificate` and `manifest` are the SHA-256 of a release's certificate.json and manifest.json. `unit` is what
    a budget protects: a value, a rating or a user. `fingerprint` is that of the public part of the ratings, if taken.
    """

    dataset: str
    number: int
    kind: str
    at: str
    who: str
    epsilon: Fraction
    delta: Fraction
    method: str = ""
    note: str = ""
    charge: str | None = None
    certificate: str | None = None
    digest: str = ""
    format: int = FORMAT
    unit: str | None = None
    manifest: str | None = None
    fingerprint: str | None = None

    def row(self) -> dict[str, Any]:
        """As the table holds it."""
        facts = {**asdict(self), "epsilon": str(self.epsilon), "delta": str(self.delta)}
        return {name: facts[name] for name in COLUMNS}

    @classmethod
    def of_row(cls, row: Mapping[str, Any]) -> Event:
        """From the table; a row of format 1 lacks the columns that came later."""
        facts = {"format": 1, **row}
        for name, value in facts.items():
            facts[name] = _checked(name, value)
        return cls(**facts)

    def digest_after(self, previous: str) -> str:
        """The chain's next link."""
        row = self.row()
        if self.format == 1:
            text = json.dumps({**{name: row[name] for name in OLD_COLUMNS}, "digest": previous}, sort_keys=True)
        else:
            text = "".join(_netstring(value) for value in (previous, *(row[name] for name in CHAINED)))
        return hashlib.sha256(text.encode()).hexdigest()


def fraction_of(text: str) -> Fraction:
    """The fraction `text` writes, if there is no other way to write it."""
    if _AMOUNT.fullmatch(text) and not text.startswith("0/") and not text.endswith("/0"):
        try:
            amount = Fraction(text)
        except (ValueError, ZeroDivisionError):  # more digits than Python reads; a zero of several
            amount = Fraction(0)
        if str(amount) == text:
            return amount
    raise UnlawfulError("has an amount that is no fraction in lowest terms, or is negative")


def _checked(name: str, value: Any) -> Any:
    """A cell of the right type."""
    if name in _NUMBERS:
        if type(value) is not int:
            raise UnlawfulError(f"has a {name} that is no whole number")
        return value
    if value is None and name in _OPTIONAL:
        return None
    if not isinstance(value, str):
        raise UnlawfulError(f"has no text for its {name}")
    return fraction_of(value) if name in _AMOUNTS else value


def _netstring(value: str | int | None) -> str:
    return "-," if value is None else f"{len(str(value).encode())}:{value},"
