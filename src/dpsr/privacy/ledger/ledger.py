"""The ledger: one budget per data set, kept across runs and people.

    budget    epsilon and delta that may be spent in all, set once
    charge    paid before noise is drawn, in one transaction, and never refunded: a crash wastes budget, leaks nothing
    release   the certificate a charge paid for: private, and no dearer than the charge

Releases of the same ratings add up (basic composition), so what is left is the budget less the sum of all charges,
in exact fractions. Two processes cannot spend the same epsilon: writers of one data set queue (`BEGIN IMMEDIATE` in
SQLite, an advisory lock in PostgreSQL), and the primary key refuses a second event of the same number in any case.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

from sqlalchemy import Engine, inspect, select
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from dpsr.certify.amounts import Amount, exact, float_below, written_down
from dpsr.database import Database, Mode
from dpsr.errors import LedgerError, PrivacyError
from dpsr.privacy.ledger.log import Event, Log
from dpsr.privacy.ledger.messages import current_user, label, no_ledger, overspent
from dpsr.privacy.ledger.tables import events, lock, metadata, read_snapshot, settle

if TYPE_CHECKING:
    from dpsr.certify.certificate import Certificate

from dpsr.certify.certificate import ChargeReference


@dataclass(frozen=True)
class Budget:
    """What a data set may cost in all, and what it has cost so far."""

    dataset: str
    epsilon: Fraction
    delta: Fraction
    spent_epsilon: Fraction
    spent_delta: Fraction
    charges: int
    releases: int

    @property
    def left_epsilon(self) -> Fraction:
        return self.epsilon - self.spent_epsilon

    @property
    def left_delta(self) -> Fraction:
        return self.delta - self.spent_delta

    def check(self, epsilon: Fraction, delta: Fraction = Fraction(0)) -> None:
        """Refuse a charge that does not fit into what is left."""
        if epsilon > self.left_epsilon or delta > self.left_delta:
            raise PrivacyError(overspent(self, epsilon, delta))


@dataclass(frozen=True)
class Charge:
    """A price paid in advance. `id` is chosen before the transaction, so that a lost answer can be looked up."""

    dataset: str
    epsilon: Fraction
    delta: Fraction
    id: str
    digest: str = ""

    @property
    def reference(self) -> ChargeReference:
        """What a certificate names."""
        return ChargeReference(self.id, self.digest)

    @property
    def spendable(self) -> float:
        """The largest epsilon, as a float, that this charge pays for."""
        return float_below(self.epsilon)

    def check(self, certificate: Certificate) -> None:
        """Refuse a certificate that is not private or costs more than was paid."""
        if not certificate.private:
            raise PrivacyError(
                f"no ledger takes a release that is NOT PRIVATE: {'; '.join(certificate.reasons)}. Release it without "
                "a ledger, for experiments only."
            )
        if exact(certificate.epsilon, "epsilon") > self.epsilon or exact(certificate.delta, "delta") > self.delta:
            raise PrivacyError(
                f"the certificate costs epsilon = {certificate.epsilon!r}, delta = {certificate.delta!r}, and only "
                f"{written_down(self.epsilon)} and {written_down(self.delta)} were charged. Charge before releasing."
            )


class Ledger:
    """Budgets in a SQLite file or a PostgreSQL database. Build it with `create` or `open`."""

    def __init__(self, database: Database, mode: Mode) -> None:
        self._database = database
        self._engine: Engine = settle(database.engine(mode))

    @classmethod
    def create(
        cls, url: str, dataset: str, epsilon: Amount, delta: Amount = 0.0, *, who: str | None = None, note: str = ""
    ) -> Ledger:
        """Give `dataset` its budget, once and for all; the ledger itself is made if it is not there."""
        name, most, most_delta = label(dataset), exact(epsilon, "epsilon"), exact(delta, "delta")
        if not most > 0 or not most_delta < 1:
            raise PrivacyError(f"a budget is above 0 and its delta below 1, found {epsilon!r} and {delta!r}.")
        ledger = cls(Database.parse(url), "rwc")
        with ledger._writing("") as log:
            metadata.create_all(log.connection)
        with ledger._writing(name) as log:
            if log.read():
                raise LedgerError(
                    f"{name!r} has a budget in {ledger} already, and a budget is set once. See it: dpsr ledger show."
                )
            log.append("budget", who=current_user(who), epsilon=most, delta=most_delta, note=note)
        return ledger

    @classmethod
    def open(cls, url: str) -> Ledger:
        """A ledger that exists."""
        database = Database.parse(url)
        if database.is_file and not database.path.is_file():
            raise LedgerError(no_ledger(database))
        ledger = cls(database, "rw")
        with ledger._speaking(), ledger._engine.connect() as connection:
            if not inspect(connection).has_table(events.name):
                raise LedgerError(no_ledger(database))
        return ledger

    def charge(
        self,
        dataset: str,
        epsilon: Amount,
        delta: Amount = 0.0,
        *,
        method: str,
        who: str | None = None,
        note: str = "",
        charge_id: str | None = None,
    ) -> Charge:
        """Pay before any noise is drawn; refused, with what is left, if the budget does not allow it."""
        price, price_delta = exact(epsilon, "epsilon"), exact(delta, "delta")
        if not price:
            raise PrivacyError(f"a charge is above 0, found {epsilon!r}. Nothing private is free.")
        charge = Charge(label(dataset), price, price_delta, charge_id or uuid.uuid4().hex)
        with self._writing(charge.dataset) as log:
            self._budget(log).check(price, price_delta)
            facts = {"method": method, "note": note, "charge": charge.id}
            event = log.append("charge", who=current_user(who), epsilon=price, delta=price_delta, **facts)
        return replace(charge, digest=event.digest)

    def record(
        self,
        charge: Charge,
        certificate: Certificate,
        *,
        manifest: str | None = None,
        who: str | None = None,
        note: str = "",
    ) -> str:
        """Write down the certificate a charge paid for, and return its SHA-256: that of the certificate.json file."""
        digest = hashlib.sha256(certificate.to_json().encode()).hexdigest()
        with self._writing(charge.dataset) as log:
            kinds = {event.kind: event for event in log.read() if event.charge == charge.id}
            if "charge" not in kinds or "release" in kinds:
                what = "paid for a release already" if kinds else f"is not in {self}"
                raise LedgerError(f"the charge {charge.id} {what}. Charge first; each charge pays for one release.")
            paid = kinds["charge"]
            Charge(paid.dataset, paid.epsilon, paid.delta, charge.id).check(certificate)
            if manifest is not None and certificate.charge != charge.reference:
                raise LedgerError("the certificate names another charge.")
            log.append(
                "release",
                who=current_user(who),
                epsilon=exact(certificate.epsilon, "epsilon"),
                delta=exact(certificate.delta, "delta"),
                method=paid.method,
                note=note,
                charge=charge.id,
                certificate=digest,
                manifest=manifest,
            )
        return digest

    def was_charged(self, dataset: str, charge_id: str) -> bool:
        """Whether a charge went through; waits for one that is still on its way."""
        with self._writing(label(dataset)) as log:
            return any(event.charge == charge_id for event in log.read())

    def budget(self, dataset: str | None = None) -> Budget:
        """The budget of `dataset`, or of the only one there is."""
        found = self.budgets()
        named = [budget for budget in found if dataset is None or budget.dataset == dataset]
        if len(named) == 1:
            return named[0]
        names = ", ".join(repr(budget.dataset) for budget in found) or "none"
        wanted = "more than one data set" if dataset is None else f"no data set {dataset!r}"
        raise LedgerError(
            f"{self} holds {wanted}; it has {names}. Name one with --dataset, or add it: dpsr ledger init."
        )

    def budgets(self) -> list[Budget]:
        """Every data set's budget and what is spent of it."""
        with self._reading() as logs:
            return [self._budget(log) for log in logs]

    def history(self, dataset: str | None = None) -> list[Event]:
        """All events, oldest first."""
        with self._reading() as logs:
            found = [event for log in logs if dataset in (None, log.dataset) for event in log.read()]
        return sorted(found, key=lambda event: (event.at, event.dataset, event.number))

    def __str__(self) -> str:
        return str(self._database)

    def _budget(self, log: Log) -> Budget:
        history = log.read()
        if not history:
            raise LedgerError(
                f"{self} has no budget for {log.dataset!r}. Set one with: dpsr ledger init --dataset {log.dataset!r}."
            )
        charges = [event for event in history if event.kind == "charge"]
        return Budget(
            dataset=log.dataset,
            epsilon=history[0].epsilon,
            delta=history[0].delta,
            spent_epsilon=sum((event.epsilon for event in charges), Fraction(0)),
            spent_delta=sum((event.delta for event in charges), Fraction(0)),
            charges=len(charges),
            releases=sum(event.kind == "release" for event in history),
        )

    @contextmanager
    def _writing(self, dataset: str) -> Iterator[Log]:
        """One transaction, alone with the data set; committed at the end or not at all."""
        writer = self._engine.execution_options(writing=True)
        with self._speaking(), writer.connect() as connection, connection.begin():
            lock(connection, dataset)
            yield Log(connection, dataset)

    @contextmanager
    def _reading(self) -> Iterator[list[Log]]:
        """All data sets as they were at one moment."""
        with self._speaking(), self._engine.connect() as connection, connection.begin():
            read_snapshot(connection)
            names = connection.execute(select(events.c.dataset).distinct().order_by(events.c.dataset)).scalars()
            yield [Log(connection, name) for name in names]

    @contextmanager
    def _speaking(self) -> Iterator[None]:
        """A database's complaint as one sentence, without the address's secrets."""
        try:
            yield
        except SQLAlchemyError as error:
            reason = self._database.reason(error) if isinstance(error, DBAPIError) else type(error).__name__
            raise LedgerError(
                f"the ledger {self} cannot be used: {reason}. Check its address, and who may write there."
            ) from None
