"""From raw ratings to a release folder, charged to a ledger: the order of steps, and nothing else.

    1. refuse what can be refused           target, room, method, budget: nothing is spent
    2. charge                               in one transaction of the ledger
    3. draw noise, fit                      the estimator's own three stages
    4. write the folder beside its place    forced to disk
    5. record the certificate               the ledger refuses one that is not private or too dear
    6. rename                               the release is there, whole

So what is visible was recorded, what was recorded was charged, and nothing was drawn before it was charged. Whatever
goes wrong after step 2 wastes the charge and leaks nothing.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path

from dpsr.certify import Certificate
from dpsr.certify.amounts import as_written, check_epsilon, written_up
from dpsr.certify.manifest import MANIFEST
from dpsr.engine.raw import RawTable
from dpsr.errors import DpsrError, LedgerError, PrivacyError, ReleaseError
from dpsr.pipeline.cards import pages_of
from dpsr.pipeline.estimator import announce
from dpsr.pipeline.paper import PaperDPSR
from dpsr.pipeline.value import DPSR
from dpsr.privacy.ledger.ledger import Budget, Charge, Ledger
from dpsr.privacy.vault.journal import Journal
from dpsr.release import (
    Contents,
    Verification,
    atomic_folder,
    check_disk_space,
    check_target,
    expected_bytes,
    write_release,
)
from dpsr.report import Budget as CardBudget
from dpsr.types import Census
from dpsr.types.raw import RawRatings


@dataclass(frozen=True)
class Account:
    """A data set's budget in a ledger, and the id under which this run will be charged to it."""

    ledger: Ledger
    dataset: str
    price: Fraction
    note: str = ""
    charge_id: str = field(default_factory=lambda: uuid.uuid4().hex)

    @classmethod
    def open(cls, url: str, dataset: str | None, epsilon: float, note: str = "") -> Account:
        """The budget of `dataset`, or of the only data set in the ledger, for a release at `epsilon`.

        The price is the decimal somebody wrote, so that ten times 0.1 is 1; one that is not left is refused here.
        """
        price, ledger = as_written(check_epsilon(epsilon)), Ledger.open(url)
        budget = ledger.budget(dataset)
        budget.check(price)
        return cls(ledger, budget.dataset, price, note)

    @property
    def budget(self) -> Budget:
        return self.ledger.budget(self.dataset)

    def charge(self, method: str) -> Charge:
        """Pay; after this the ledger knows `charge_id`."""
        facts = {"method": method, "note": self.note, "charge_id": self.charge_id}
        return self.ledger.charge(self.dataset, self.price, **facts)

    def was_charged(self) -> bool | None:
        """The ledger alone knows; None if it does not answer."""
        try:
            return self.ledger.was_charged(self.dataset, self.charge_id)
        except LedgerError:
            return None

    def spent(self) -> str:
        """What this run has cost so far, in words."""
        price, charged = f"epsilon = {written_up(self.price)} of {self.dataset!r}", self.was_charged()
        if charged is None:
            return f"the ledger does not answer, and {price} may have been charged."
        return f"{price} was charged before that and stays spent." if charged else "nothing was charged to the ledger."


@dataclass(frozen=True)
class Published:
    """A release that is in its place, and what it cost."""

    folder: Path
    certificate: Certificate
    budget: Budget | None


def check_order(estimator: DPSR | PaperDPSR, target: Path, *, account: Account | None, overwrite: bool) -> None:
    """Refuse what needs no ratings to be refused."""
    check_epsilon(estimator.epsilon)
    check_target(target, overwrite=overwrite)
    if account is None:
        return
    if estimator.random_state is not None:
        raise PrivacyError("no ledger takes a seeded run: whoever has the seed can subtract the noise. Leave it out.")
    if isinstance(estimator, PaperDPSR) and estimator.as_published:
        raise PrivacyError(
            "no ledger takes the paper's Stage 1 as published: its true epsilon exceeds the one asked for. "
            "Use the repaired one (--method paper) or ours."
        )


def check_space(ratings: RawRatings | RawTable, target: Path) -> None:
    """Refuse a disk that is too small; reads the public mask alone."""
    check_disk_space(target, expected_bytes(census_of(ratings)))


def census_of(ratings: RawRatings | RawTable) -> Census:
    """Who is in the ratings, wherever they are kept."""
    return ratings.table.census if isinstance(ratings, RawTable) else ratings.mask.census


def publish(
    ratings: RawRatings | RawTable,
    estimator: DPSR | PaperDPSR,
    target: Path,
    *,
    account: Account | None = None,
    overwrite: bool = False,
    journal: Journal | None = None,
    last_call: Callable[[], None] = lambda: None,
) -> Published:
    """Make the release and put it in its place. `last_call` is called when only the rename is left."""
    check_order(estimator, target, account=account, overwrite=overwrite)
    check_space(ratings, target)
    try:
        with atomic_folder(target, overwrite=overwrite) as draft:
            if account is None:
                contents = _made(estimator, ratings, journal)
                certificate = contents.certificate
                _write(contents, None, draft)
            else:
                certificate = _charged(ratings, estimator, draft, account, journal)
            last_call()
    except MemoryError:
        error = ReleaseError("there is not enough memory for these ratings. Run it on a larger machine.")
        raise _with_the_price(error, account) from None
    except DpsrError as error:
        raise _with_the_price(error, account) from error
    return Published(target, certificate, None if account is None else _budget_if_possible(account))


def _charged(
    ratings: RawRatings | RawTable,
    estimator: DPSR | PaperDPSR,
    draft: Path,
    account: Account,
    journal: Journal | None,
) -> Certificate:
    """Charge, fit, write, record."""
    announce("Charging the ledger")
    charge = account.charge("paper" if isinstance(estimator, PaperDPSR) else "default")
    paid = estimator.unfitted().set_params(epsilon=charge.spendable)
    table = ratings if isinstance(ratings, RawTable) else RawTable.of(ratings)
    contents = paid.fit_table(table, journal, charge=charge.reference)
    charge.check(contents.certificate)
    _write(contents, account.budget, draft)
    account.ledger.record(charge, contents.certificate, manifest=_sha256(draft / MANIFEST))
    return contents.certificate


def _made(estimator: DPSR | PaperDPSR, ratings: RawRatings | RawTable, journal: Journal | None) -> Contents:
    """Noise and all that follows."""
    if isinstance(ratings, RawTable):
        return estimator.fit_table(ratings, journal)
    return estimator.fit(ratings).release.contents


def _sha256(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _for_the_card(budget: Budget | None) -> CardBudget | None:
    if budget is None:
        return None
    total, left = (float(amount) for amount in (budget.epsilon, budget.left_epsilon))
    return CardBudget(budget.dataset, total, total - left, left)


def _write(contents: Contents, budget: Budget | None, draft: Path) -> None:
    announce("Writing the folder")
    write_release(contents, draft, pages=pages_of(contents, _for_the_card(budget)))


def _budget_if_possible(account: Account) -> Budget | None:
    """What is left; a ledger that cannot be asked any more does not undo a release."""
    with suppress(LedgerError):
        return account.budget
    return None


def _with_the_price(error: DpsrError, account: Account | None) -> DpsrError:
    """The same error, and what it has cost unless that is nothing."""
    if account is None or account.was_charged() is False:
        return error
    return type(error)(f"{error} Note: {account.spent()}")


def recorded_in(found: Verification, url: str, dataset: str | None) -> Verification:
    """What a verification says, and whether a ledger recorded this very certificate."""
    history = Ledger.open(url).history(dataset)
    known = any(event.certificate == found.certificate_sha256 for event in history if event.certificate)
    if known:
        return replace(found, holds=(*found.holds, "the ledger recorded this certificate when it was released"))
    return replace(found, fails=(*found.fails, "the ledger has no record of this certificate"))
