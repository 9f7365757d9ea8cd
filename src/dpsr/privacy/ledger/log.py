"""The history of one data set inside one transaction: read and checked, or added to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

from dpsr.errors import LedgerError
from dpsr.privacy.ledger.event import COLUMNS, OLD_COLUMNS, TABLE, Event, UnlawfulError
from dpsr.privacy.ledger.messages import broken, not_written
from dpsr.privacy.ledger.names import find, label
from dpsr.privacy.ledger.rules import History
from dpsr.privacy.ledger.session import Session


@dataclass(frozen=True)
class Log:
    """The entries of `dataset`, as this transaction sees them."""

    session: Session
    dataset: str
    format: int

    def read(self) -> History:
        """All entries in order; an error at the first that dpsr would not have written."""
        names = ", ".join(COLUMNS if self.format > 1 else OLD_COLUMNS)
        query = f"SELECT {names} FROM {TABLE} WHERE dataset = :dataset ORDER BY number"
        return history_of(self.dataset, self.session.rows(query, dataset=self.dataset))

    def append(
        self, history: History, kind: str, *, who: str, epsilon: Fraction, delta: Fraction, **facts: Any
    ) -> Event:
        """The next entry, by the reader's rules, and kept; the primary key refuses a second one of the same number."""
        event = Event(
            dataset=self.dataset,
            number=len(history.events) + 1,
            kind=kind,
            at=datetime.now(UTC).isoformat(timespec="seconds"),
            who=who,
            epsilon=epsilon,
            delta=delta,
            **facts,
        )
        event = replace(event, digest=event.digest_after(history.head))
        try:
            history.add(event)
        except UnlawfulError as error:
            raise LedgerError(not_written(str(error))) from None
        values = ", ".join(f":{name}" for name in COLUMNS)
        self.session.run(f"INSERT INTO {TABLE} ({', '.join(COLUMNS)}) VALUES ({values})", **event.row())
        if not self._kept(event):
            raise LedgerError(
                f"{self.session.database} did not keep an entry that was written, as a rule or trigger of other hands "
                "may do. Nothing was spent. See what is wrong: dpsr ledger check."
            )
        return event

    def _kept(self, event: Event) -> bool:
        """Whether the row is there: a rule or trigger can swallow it without a word."""
        query = f"SELECT digest FROM {TABLE} WHERE dataset = :dataset AND number = :number"
        rows = self.session.rows(query, dataset=self.dataset, number=event.number)
        return rows == [{"digest": event.digest}]


def history_of(dataset: str, rows: Iterable[dict[str, Any]]) -> History:
    """A data set's rows, believed."""
    history = History(dataset)
    for row in rows:
        try:
            history.add(Event.of_row(row))
        except UnlawfulError as error:
            raise LedgerError(broken(dataset, len(history.events) + 1, str(error))) from None
    return history


def names_in(session: Session) -> list[str]:
    """The data sets there are."""
    names = [row["dataset"] for row in session.rows(f"SELECT DISTINCT dataset FROM {TABLE}")]
    if not all(isinstance(name, str) for name in names):
        raise LedgerError(f"{session.database} has a data set whose name is no text: other hands than dpsr's wrote it.")
    return sorted(names)


def log_of(session: Session, dataset: str, format: int) -> Log:
    """The log of a data set by its name, in whichever spelling; of a new one if there is none."""
    return Log(session, find(dataset, names_in(session)) or label(dataset), format)
