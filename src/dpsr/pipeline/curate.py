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

import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path

from sklearn.base import clone

from dpsr import report
from dpsr.errors import DpsrError, LedgerError, PrivacyError, ReleaseError
from dpsr.pipeline.default import DPSR
from dpsr.pipeline.paper import PaperDPSR
from dpsr.pipeline.progress import announce
from dpsr.privacy.amounts import as_written, written_up
from dpsr.privacy.ledger import Budget, Charge, Ledger
from dpsr.privacy.mechanisms import check_epsilon
from dpsr.release import Verification, check_room, check_target, expected_bytes, placed
from dpsr.types import Certificate
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

        The price is the decimal somebody wrote, so that ten times 0.1 is 1.
        """
        price, ledger = as_written(check_epsilon(epsilon)), Ledger.open(url)
        return cls(ledger, ledger.budget(dataset).dataset, price, note)

    @property
    def budget(self) -> Budget:
        return self.ledger.budget(self.dataset)

    def check(self) -> None:
        """Refuse now what a charge would refuse."""
        self.ledger.check(self.dataset, self.price)

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
class Curated:
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
    account.check()


def check_space(ratings: RawRatings, target: Path) -> None:
    """Refuse a disk that is too small; reads the public mask alone."""
    check_room(target, expected_bytes(ratings.mask))


def curate(
    ratings: RawRatings,
    estimator: DPSR | PaperDPSR,
    target: Path,
    *,
    account: Account | None = None,
    overwrite: bool = False,
    last_call: Callable[[], None] = lambda: None,
) -> Curated:
    """Make the release and put it in its place. `last_call` is called when only the rename is left."""
    check_order(estimator, target, account=account, overwrite=overwrite)
    check_space(ratings, target)
    try:
        with placed(target, overwrite=overwrite) as draft:
            if account is None:
                certificate = estimator.fit(ratings).certificate
                _write(estimator, draft)
            else:
                certificate = _charged(ratings, estimator, draft, account)
            last_call()
    except MemoryError:
        error = ReleaseError("there is not enough memory for these ratings. Run it on a larger machine.")
        raise _with_the_price(error, account) from None
    except DpsrError as error:
        raise _with_the_price(error, account) from error
    return Curated(target, certificate, None if account is None else _budget_if_possible(account))


def _charged(ratings: RawRatings, estimator: DPSR | PaperDPSR, draft: Path, account: Account) -> Certificate:
    """Charge, fit, write, record."""
    announce("Charging the ledger")
    charge = account.charge("paper" if isinstance(estimator, PaperDPSR) else "default")
    model = clone(estimator).set_params(epsilon=charge.spendable).fit(ratings)
    charge.check(model.certificate)
    _write(model, draft, account.budget)
    account.ledger.record(charge, model.certificate)
    return model.certificate


def _write(model: DPSR | PaperDPSR, draft: Path, budget: Budget | None = None) -> None:
    announce("Writing the folder")
    shown = None
    if budget is not None:
        total, left = (float(amount) for amount in (budget.epsilon, budget.left_epsilon))
        shown = report.Budget(budget.dataset, total, total - left, left)
    model.save(draft, budget=shown)


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
