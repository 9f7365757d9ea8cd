"""The ledger: one budget per data set, kept across runs and people.

    budget    epsilon and delta that may be spent in all, set once
    charge    paid before noise is drawn, in one transaction, and never refunded: a crash wastes budget, leaks nothing
    release   the certificate a charge paid for: private, no dearer than the charge, and naming it

Releases of the same ratings add up (basic composition), so what is left is the budget less the sum of all charges,
in exact fractions. Two processes cannot spend the same epsilon: writers of one data set queue (`session`), and the
primary key refuses a second entry of the same number in any case.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import accumulate
from typing import TYPE_CHECKING

from dpsr.certify.amounts import Amount, exact
from dpsr.certify.certificate import UNITS
from dpsr.database import Database
from dpsr.errors import LedgerError, PrivacyError
from dpsr.privacy.ledger.budget import Budget, Charge
from dpsr.privacy.ledger.event import FORMAT, Event
from dpsr.privacy.ledger.log import Log, log_of, names_in
from dpsr.privacy.ledger.messages import current_user, no_budget, no_ledger, old_format, one_line
from dpsr.privacy.ledger.names import check_new, find, label
from dpsr.privacy.ledger.rules import History
from dpsr.privacy.ledger.schema import create, format_of
from dpsr.privacy.ledger.session import Session, reading, writing

if TYPE_CHECKING:
    from dpsr.certify.certificate import Certificate

__all__ = ["Budget", "Charge", "Ledger"]


class Ledger:
    """Budgets in a SQLite file or a PostgreSQL database. Build it with `create` or `open`.

    >>> ledger = Ledger.create("ledger.db", "films", "3")                    # doctest: +SKIP
    >>> charge = ledger.charge("films", "0.5", method="default")             # doctest: +SKIP
    """

    def __init__(self, database: Database) -> None:
        self.database = database

    @classmethod
    def create(
        cls,
        url: str,
        dataset: str,
        epsilon: Amount,
        delta: Amount = 0.0,
        *,
        unit: str = "value",
        who: str | None = None,
        note: str = "",
    ) -> Ledger:
        """Give `dataset` its budget, once and for all; the ledger itself is made if it is not there."""
        name, most, most_delta = label(dataset), exact(epsilon, "epsilon"), exact(delta, "delta")
        if not most > 0 or not most_delta < 1:
            raise PrivacyError(f"a budget is above 0 and its delta below 1, found {epsilon!r} and {delta!r}.")
        if unit not in UNITS:
            raise PrivacyError(f"a budget protects a unit of {', '.join(UNITS)}, found {unit!r}. Name one of them.")
        ledger = cls(Database.parse(url))
        with ledger.speaking(), writing(ledger.database, "rwc") as session:
            session.lock("")  # one after the other: names are compared with those that are there
            if not format_of(session):
                create(session)
            found, known = _writable(session), names_in(session)
            if find(name, known) is not None:
                raise LedgerError(
                    f"{name!r} has a budget in {ledger} already, and a budget is set once. See it: dpsr ledger show."
                )
            check_new(name, known)
            session.lock(name)
            log = Log(session, name, found)
            facts = {"unit": unit, "note": one_line(note, "note")}
            log.append(log.read(), "budget", who=current_user(who), epsilon=most, delta=most_delta, **facts)
        return ledger

    @classmethod
    def open(cls, url: str) -> Ledger:
        """A ledger that exists."""
        ledger = cls(Database.parse(url))
        if ledger.database.is_file and not ledger.database.path.is_file():
            raise LedgerError(no_ledger(ledger.database))
        with ledger.snapshot():
            return ledger

    def charge(
        self,
        dataset: str,
        epsilon: Amount,
        delta: Amount = 0.0,
        *,
        method: str,
        unit: str = "value",
        fingerprint: str | None = None,
        who: str | None = None,
        note: str = "",
        charge_id: str | None = None,
    ) -> Charge:
        """Pay before any noise is drawn; refused, with what is left, if the budget does not allow it.

        `unit` is what the release will protect, `fingerprint` a SHA-256 of the public part of the ratings.
        """
        price, price_delta = exact(epsilon, "epsilon"), exact(delta, "delta")
        if not price:
            raise PrivacyError(f"a charge is above 0, found {epsilon!r}. Nothing private is free.")
        with self._writing(dataset) as (log, history):
            Budget.of(history).check(price, price_delta, unit)
            event = log.append(
                history,
                "charge",
                who=current_user(who),
                epsilon=price,
                delta=price_delta,
                method=one_line(method, "method"),
                note=one_line(note, "note"),
                charge=charge_id or uuid.uuid4().hex,
                fingerprint=fingerprint,
            )
        return Charge.of(event, history.unit)

    def record(
        self, charge: Charge, certificate: Certificate, *, manifest: str, who: str | None = None, note: str = ""
    ) -> str:
        """Write down the certificate a charge paid for and the SHA-256 of its folder's manifest.json.

        Returns the SHA-256 of the certificate: that of the certificate.json file.
        """
        if not re.fullmatch("[0-9a-f]{64}", manifest, re.ASCII):
            raise LedgerError("a release is recorded with the SHA-256 of its manifest.json, 64 hexadecimal digits.")
        digest = hashlib.sha256(certificate.to_json().encode()).hexdigest()
        with self._writing(charge.dataset) as (log, history):
            paid = history.charges.get(charge.id)
            if paid is None or charge.id in history.releases:
                what = f"is not in {self}" if paid is None else "paid for a release already"
                raise LedgerError(f"the charge {charge.id} {what}. Charge first; each charge pays for one release.")
            Charge.of(paid, history.unit).check(certificate)
            log.append(
                history,
                "release",
                who=current_user(who),
                epsilon=exact(certificate.epsilon, "epsilon"),
                delta=exact(certificate.delta, "delta"),
                method=paid.method,
                note=one_line(note, "note"),
                charge=charge.id,
                certificate=digest,
                manifest=manifest,
            )
        return digest

    def was_charged(self, dataset: str, charge_id: str) -> bool:
        """Whether a charge went through; waits for one that is still on its way."""
        with self.speaking(), writing(self.database) as session:
            session.lock(_queue(dataset))
            return charge_id in log_of(session, dataset, format_of(session)).read().charges

    def unused_charge(self, dataset: str, charge_id: str) -> Event | None:
        """A charge that has paid for no release yet: nothing that it was for was published."""
        events = [event for event in self.history(dataset) if event.charge == charge_id]
        return events[0] if [event.kind for event in events] == ["charge"] else None

    def budget(self, dataset: str | None = None) -> Budget:
        """The budget of `dataset`, or of the only one there is."""
        found = self.budgets()
        name = None if dataset is None else find(dataset, [budget.dataset for budget in found])
        named = [budget for budget in found if dataset is None or budget.dataset == name]
        if len(named) == 1:
            return named[0]
        names = ", ".join(repr(budget.dataset) for budget in found) or "none"
        wanted = "more than one data set" if dataset is None else f"no data set {dataset!r}"
        raise LedgerError(
            f"{self} holds {wanted}; it has {names}. Name one with --dataset, or add it: dpsr ledger init."
        )

    def budgets(self) -> list[Budget]:
        """Every data set's budget and what is spent of it."""
        with self.snapshot() as logs:
            return [Budget.of(log.read()) for log in logs]

    def history(self, dataset: str | None = None) -> list[Event]:
        """All entries, oldest first; those of one data set are always in their order."""
        with self.snapshot() as logs:
            name = None if dataset is None else find(dataset, [log.dataset for log in logs])
            histories = [log.read() for log in logs if dataset is None or log.dataset == name]
        return [event for _, _, _, event in sorted(entry for history in histories for entry in _placed(history))]

    def fingerprints(self) -> list[tuple[str, str]]:
        """Which ratings were released under which name: data set and fingerprint, each pair once, oldest first."""
        pairs = [(event.dataset, event.fingerprint) for event in self.history() if event.fingerprint]
        return list(dict.fromkeys(pairs))

    def __str__(self) -> str:
        return str(self.database)

    @contextmanager
    def snapshot(self) -> Iterator[list[Log]]:
        """The logs of all data sets as they were at one moment."""
        with self.speaking(), reading(self.database) as session:
            found = format_of(session)
            if not found:
                raise LedgerError(no_ledger(self.database))
            yield [Log(session, name, found) for name in names_in(session)]

    @contextmanager
    def _writing(self, dataset: str) -> Iterator[tuple[Log, History]]:
        """One transaction, alone with the data set, and what it has so far; committed at the end or not at all."""
        with self.speaking(), writing(self.database) as session:
            session.lock(_queue(dataset))
            log = log_of(session, dataset, _writable(session))
            history = log.read()
            if not history.events:
                raise LedgerError(no_budget(self, log.dataset))
            yield log, history

    @contextmanager
    def speaking(self) -> Iterator[None]:
        """A database's complaint as one sentence, without the address's secrets."""
        try:
            yield
        except self.database.errors as error:
            reason = self.database.reason(error)
            raise LedgerError(
                f"the ledger {self} cannot be used: {reason}. Check its address, and who may write there."
            ) from None


def _writable(session: Session) -> int:
    found = format_of(session)
    if found < FORMAT:
        raise LedgerError(old_format(session.database) if found else no_ledger(session.database))
    return found


def _placed(history: History) -> Iterator[tuple[str, str, int, Event]]:
    """Entries with what they are ordered by. A clock that went back does not put a release before its charge."""
    times = accumulate((event.at for event in history.events), max)
    for at, event in zip(times, history.events, strict=True):
        yield at, event.dataset, event.number, event


def _queue(dataset: str) -> str:
    """What writers of one data set wait for, in whichever spelling they name it."""
    return unicodedata.normalize("NFC", dataset)
