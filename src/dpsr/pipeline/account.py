"""A data set's budget, and whether the ratings at hand are those that the budget is for.

A budget counts releases of one set of ratings. The same ratings under two names would be counted twice from zero, and
other ratings under the same name would share a budget by mistake. So a charge carries a fingerprint of the public part,

    SHA-256 of user ids, item ids, and how many ratings each has,

and where name and fingerprint do not fit what the ledger has seen, a person is asked. No value and no time enters it,
so that a corrected rating does not make another data set.
"""

from __future__ import annotations

import hashlib
import uuid
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from dpsr.certify import Certificate
from dpsr.certify.amounts import as_written, check_epsilon, written_up
from dpsr.certify.folder import MANIFEST, sha256_of
from dpsr.errors import LedgerError, PrivacyError, UnansweredError
from dpsr.privacy.ledger.event import Event
from dpsr.privacy.ledger.ledger import Budget, Charge, Ledger
from dpsr.types import Census

SAME_DATA = (
    "these very users, items and counts were charged to {names} before, and now to {here}: under two names nobody "
    "adds the releases up."
)
ANOTHER_FILE = (
    "{here} was charged for other ratings before: other users, items or counts. A set that has grown keeps its name "
    "and its budget; another set needs a budget of its own (dpsr ledger init)."
)


def check_payable(*, seeded: bool, as_published: bool, nobody: str = "no ledger takes") -> None:
    """Refuse what no ledger takes and nobody signs, before anything is spent."""
    if seeded:
        raise PrivacyError(f"{nobody} a seeded run: whoever has the seed can subtract the noise. Leave it out.")
    if as_published:
        raise PrivacyError(
            f"{nobody} the paper's Stage 1 as published: its true epsilon exceeds the one asked for. "
            "Use the repaired one (--method paper) or ours."
        )


class Mismatch(NamedTuple):
    """What does not fit, and what to answer if it is meant: the field of an account, and the option."""

    words: str
    answer: str
    option: str


def fingerprint_of(census: Census, unit: str = "value") -> str | None:
    """The SHA-256 of the public part: the same wherever the ratings are kept and in whichever order they came.

    None where people or ratings are protected: there nobody is public, and a hash would tell who is not there.
    """
    if unit != "value":
        return None
    digest = hashlib.sha256(b"dpsr-census-1")
    for ids, counts in ((census.user_ids, census.user_counts), (census.item_ids, census.item_counts)):
        digest.update(f"{ids.type} {len(ids)} ".encode())
        if pa.types.is_integer(ids.type):
            digest.update(ids.to_numpy(zero_copy_only=False).astype("<i8").tobytes())
        else:
            for text in ids.to_pylist():
                digest.update(f"{len(text)} {text}".encode())
        digest.update(np.asarray(counts).astype("<i8").tobytes())
    return digest.hexdigest()


@dataclass(frozen=True)
class Account:
    """A data set's budget in a ledger, and the id under which this run will be charged to it.

    `same_data` and `another_file` are what somebody answered where the ratings do not fit the name (`mismatch`).
    `paid` is the charge of a run that was killed and now goes on: it has paid for no release, and pays for this one.
    """

    ledger: Ledger
    dataset: str
    price: Fraction
    price_delta: Fraction = Fraction(0)
    unit: str = "value"
    note: str = ""
    same_data: bool = False
    another_file: bool = False
    charge_id: str = field(default_factory=lambda: uuid.uuid4().hex)
    paid: Event | None = None

    @classmethod
    def open(
        cls,
        url: str,
        dataset: str | None,
        epsilon: float,
        note: str = "",
        *,
        same_data: bool = False,
        another_file: bool = False,
        unit: str = "value",
        delta: float | None = None,
        resumes: str | None = None,
    ) -> Account:
        """The budget of `dataset`, or of the only data set in the ledger, for a release at `epsilon`.

        The price is the decimal somebody wrote, so that ten times 0.1 is 1; whether it is left, `check_budget` says.
        `resumes` is the id under which a killed run, which this one goes on from, was to be charged.
        """
        price, ledger = as_written(check_epsilon(epsilon)), Ledger.open(url)
        budget, price_delta = ledger.budget(dataset), as_written(delta or 0.0)
        account = cls(ledger, budget.dataset, price, price_delta, unit, note, same_data, another_file)
        paid = None if resumes is None else ledger.unused_charge(budget.dataset, resumes)
        if resumes and paid and (paid.epsilon, paid.delta, budget.unit) == (price, price_delta, unit):
            return replace(account, charge_id=resumes, paid=paid)
        return account

    @property
    def budget(self) -> Budget:
        return self.ledger.budget(self.dataset)

    def check_budget(self) -> None:
        """Refuse a price that is not left, or for another unit, unless it was paid before."""
        if self.paid is None:
            self.budget.check(self.price, self.price_delta, self.unit)

    def mismatch(self, fingerprint: str | None) -> Mismatch | None:
        """Why these ratings may not be the ones the name stands for; None if they are, or somebody answered for it."""
        if fingerprint is None:
            return None
        known = self.ledger.fingerprints()
        others = sorted({name for name, found in known if found == fingerprint and name != self.dataset})
        own = {found for name, found in known if name == self.dataset}
        if others and not self.same_data:
            names = ", ".join(repr(name) for name in others)
            return Mismatch(SAME_DATA.format(here=repr(self.dataset), names=names), "same_data", "--same-data")
        if own and fingerprint not in own and not self.another_file:
            return Mismatch(ANOTHER_FILE.format(here=repr(self.dataset)), "another_file", "--another-file")
        return None

    def accepting(self, mismatch: Mismatch) -> Account:
        """The account of somebody who says that it is meant."""
        same, another = (answer == mismatch.answer for answer in ("same_data", "another_file"))
        return replace(self, same_data=self.same_data or same, another_file=self.another_file or another)

    def check(self, fingerprint: str | None) -> None:
        """Refuse ratings that do not fit the name, unless somebody answered for it."""
        mismatch = self.mismatch(fingerprint)
        if mismatch is not None:
            words, answer, option = mismatch
            raise PrivacyError(f"{words} If that is as it should be, say so with {answer}=True (or {option}).")

    def charge(self, method: str, fingerprint: str | None = None) -> Charge:
        """Pay, unless that was done; after this the ledger knows `charge_id`, and whose ratings it was for."""
        if self.paid is not None:
            if (self.paid.method, self.paid.fingerprint) != (method, fingerprint):
                raise PrivacyError(
                    "the working folder's charge was for other ratings or another method. Nothing was drawn. Give an "
                    "empty folder with --work."
                )
            return Charge.of(self.paid, self.unit)
        facts = {"method": method, "note": self.note, "charge_id": self.charge_id}
        return self.ledger.charge(
            self.dataset, self.price, self.price_delta, unit=self.unit, fingerprint=fingerprint, **facts
        )

    def record_once(self, charge: Charge, certificate: Certificate, manifest: str) -> None:
        """Write down the folder a charge paid for; the same folder again is no news.

        A server that ends while it commits has the entry although its answer is lost, so an error is looked up.
        """
        try:
            self.ledger.record(charge, certificate, manifest=manifest)
        except LedgerError as error:
            try:
                recorded = self.manifest_of(charge.id) == manifest
            except LedgerError:
                raise UnansweredError(f"{error} The same command finds out later whether it was recorded.") from error
            if not recorded:
                raise

    def manifest_of(self, charge_id: str) -> str | None:
        """The SHA-256 of the manifest of the release that a charge has paid for; None if there is no such release."""
        events = [event for event in self.ledger.history(self.dataset) if event.kind == "release"]
        return next((event.manifest for event in events if event.charge == charge_id), None)

    def is_released(self, charge_id: str | None, folder: Path) -> bool:
        """Whether a folder is the one that a charge has paid for, as far as the ledger answers."""
        with suppress(LedgerError, OSError):
            found = None if charge_id is None else self.manifest_of(charge_id)
            return found is not None and found == sha256_of((folder / MANIFEST).read_bytes())
        return False

    def was_charged(self) -> bool | None:
        """The ledger alone knows; None if it does not answer."""
        try:
            return self.ledger.was_charged(self.dataset, self.charge_id)
        except LedgerError:
            return None

    def spent(self, *, kept: bool = False) -> str:
        """What this run has cost so far, in words, and how to go on if its working folder was `kept`."""
        price, charged = f"epsilon = {written_up(self.price)} of {self.dataset!r}", self.was_charged()
        again = " The same command goes on from the working folder, without another charge."
        if charged is None:
            return f"the ledger does not answer, and {price} may have been charged.{again if kept else ''}"
        if not charged:
            return "nothing was charged to the ledger."
        return f"{price} was charged before that and stays spent.{again if kept and self._unused() else ''}"

    def _unused(self) -> bool:
        with suppress(LedgerError):
            return self.ledger.unused_charge(self.dataset, self.charge_id) is not None
        return False
