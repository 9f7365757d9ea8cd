"""The history of one data set inside one transaction: read and checked, or added to.

Digests form a chain, digest_n = SHA-256(digest_{n-1}, row_n), and numbers have no gaps. Both are checked at every
reading, because the sum of all charges is only as good as the rows it is taken over.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

from sqlalchemy import Connection, insert, select

from dpsr.errors import LedgerError
from dpsr.privacy.ledger.tables import events


@dataclass(frozen=True)
class Event:
    """One line of the history. `certificate` is the SHA-256 of the released certificate.json."""

    dataset: str
    number: int
    kind: str
    at: str
    who: str
    epsilon: Fraction
    delta: Fraction
    method: str
    note: str
    charge: str | None
    certificate: str | None
    manifest: str | None = None
    digest: str = ""

    def row(self) -> dict[str, Any]:
        """As the table holds it."""
        return {**asdict(self), "epsilon": str(self.epsilon), "delta": str(self.delta)}

    @classmethod
    def of_row(cls, row: dict[str, Any]) -> Event:
        return cls(**{**row, "epsilon": Fraction(row["epsilon"]), "delta": Fraction(row["delta"])})

    def digest_after(self, previous: str) -> str:
        """The chain's next link."""
        facts = {**self.row(), "digest": previous}
        return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True)
class Log:
    """The events of `dataset`, as this transaction sees them."""

    connection: Connection
    dataset: str

    def read(self) -> list[Event]:
        """All events in order; an error if the chain is broken."""
        query = select(events).where(events.c.dataset == self.dataset).order_by(events.c.number)
        try:
            found = [Event.of_row(dict(row)) for row in self.connection.execute(query).mappings()]
        except (ValueError, ZeroDivisionError):
            found = [_UNREADABLE]
        return _checked(found, self.dataset)

    def append(self, kind: str, *, who: str, epsilon: Fraction, delta: Fraction, **facts: Any) -> Event:
        """The next event; the primary key refuses a second one of the same number."""
        history = self.read()
        event = Event(
            dataset=self.dataset,
            number=len(history) + 1,
            kind=kind,
            at=datetime.now(UTC).isoformat(timespec="seconds"),
            who=who,
            epsilon=epsilon,
            delta=delta,
            **{"method": "", "note": "", "charge": None, "certificate": None, "manifest": None, **facts},
        )
        event = replace(event, digest=event.digest_after(history[-1].digest if history else ""))
        self.connection.execute(insert(events).values(event.row()))
        return event


_UNREADABLE = Event("", 0, "", "", "", Fraction(0), Fraction(0), "", "", None, None)


def _checked(found: Sequence[Event], dataset: str) -> list[Event]:
    previous = ""
    for number, event in enumerate(found, start=1):
        if event.number != number or event.digest != event.digest_after(previous):
            raise LedgerError(
                f"the history of {dataset!r} was changed by other hands than dpsr's: entry {number} does not follow "
                "from the one before. Nothing can be charged to it. Restore it from a copy that was not changed."
            )
        previous = event.digest
    return list(found)
