"""From raw ratings to a release folder, charged to a ledger: the order of steps, and nothing else.

    1. refuse what can be refused           target, room, method, budget, another file: nothing is spent
    2. charge                               in one transaction of the ledger; a run that goes on has been charged
    3. draw noise, fit                      the estimator's own three stages; the certificate names the charge
    4. write the folder beside its place    signed, if a key was given; forced to disk
    5. record certificate and manifest      the ledger refuses one that is not private, too dear or another charge's
    6. rename                               the release is there, whole

So what is visible was recorded, what was recorded was charged, and nothing was drawn before it was charged. Whatever
goes wrong after step 2 leaks nothing and wastes the charge, unless a working folder was chosen. A charge without a
release has paid for nothing that was published, so the run that goes on from there takes it. A certificate is bound to
its charge and a charge to one manifest, so that no other folder passes for the one that was paid for (`recorded_in`).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from dpsr.certify import Certificate
from dpsr.certify.amounts import check_epsilon
from dpsr.certify.certificate import ChargeReference
from dpsr.certify.folder import MANIFEST, sha256_of
from dpsr.engine.raw import InteractionTable, RawInteractions, RawRatings, RawTable, raw_table
from dpsr.engine.work_folder import clear_dead_runs
from dpsr.errors import DpsrError, LedgerError, ParameterError, PrivacyError, ReleaseError
from dpsr.pipeline.account import Account, check_payable, fingerprint_of
from dpsr.pipeline.dpsr import DPSR
from dpsr.pipeline.estimator import announce, check_enough
from dpsr.pipeline.likes import check_likes
from dpsr.pipeline.made_up import check_made_up, with_made_up
from dpsr.pipeline.paper import PaperDPSR
from dpsr.pipeline.verification import recorded_in
from dpsr.privacy.ledger.ledger import Budget, Charge
from dpsr.privacy.vault.journal import Journal
from dpsr.release import Contents, atomic_folder, check_disk_space, check_target, expected_bytes, write_release
from dpsr.release.atomic import clear_leftovers, finish_killed
from dpsr.release.folder.examination import examine
from dpsr.release.folder.write import AnyContents
from dpsr.release.keys import SigningKey
from dpsr.release.likes import LikesRelease
from dpsr.release.people import ItemRelease
from dpsr.release.verify import verification
from dpsr.report import Budget as CardBudget
from dpsr.report import folder_pages
from dpsr.types import Catalogue, Census

RawRows = RawRatings | RawInteractions | RawTable | InteractionTable


@dataclass(frozen=True)
class Published:
    """A release that is in its place, and what it cost."""

    folder: Path
    certificate: Certificate
    budget: Budget | None
    manifest_sha256: str


def check_order(
    estimator: DPSR | PaperDPSR,
    target: Path,
    *,
    account: Account | None,
    overwrite: bool,
    signer: SigningKey | None = None,
) -> None:
    """Refuse what needs no ratings to be refused; what killed runs left beside the target goes in any case.

    But one of them may have been killed between record and rename. That release was paid for: it gets its place, and
    this run, which would have been charged for another, ends here.
    """
    check_epsilon(estimator.epsilon)
    estimator.check()
    clear_dead_runs(target.parent)
    if account is not None and finish_killed(
        target, lambda draft: _is_owed(draft, target, account, overwrite), overwrite=overwrite
    ):
        raise ReleaseError(
            f"the release {target.name} had been charged and recorded when its run was killed, and only its rename was "
            "missing. It is in its place now, and nothing more was charged. Look at it with dpsr verify; for another "
            "release, choose another name."
        )
    clear_leftovers(target)
    check_target(target, overwrite=overwrite)
    if account is None and signer is None:
        return
    nobody = "no ledger takes" if account is not None else "nobody signs"
    check_payable(seeded=estimator.random_state is not None, as_published=estimator.as_published, nobody=nobody)
    if account is not None:
        account.check_budget()


def _is_owed(draft: Path, target: Path, account: Account, overwrite: bool) -> bool:
    """Whether the ledger recorded a folder, and later than the release in its place, if one is; that must be allowed to
    be replaced."""
    recorded = _recorded_as(draft, account)
    if recorded is None or not target.exists() or (target.is_dir() and not any(target.iterdir())):
        return recorded is not None
    before = _recorded_as(target, account)
    if before is None or before > recorded:
        return False
    if not overwrite:
        raise ReleaseError(
            f"the folder {target.name} exists already, and the release that was to replace it had been charged and "
            "recorded when its run was killed. Put that in its place with overwrite=True (or --force), which charges "
            f"nothing more; move {target.name} elsewhere before, if you need it."
        )
    return True


def _recorded_as(folder: Path, account: Account) -> int | None:
    """The number of the release in the ledger's history that this folder is; None if it is none of them."""
    history = account.ledger.history(account.dataset)
    try:
        found = verification(examine(folder))
    except ReleaseError:
        return None
    if recorded_in(found, history).fails:
        return None
    return next(event.number for event in history if event.manifest == found.manifest_sha256)


def check_table(ratings: RawRows, target: Path) -> None:
    """Refuse too few rows, a disk that is too small, and an engine that would not keep a key to itself."""
    if isinstance(ratings, RawTable | InteractionTable):
        ratings.table.check_keeps_secrets()
    census = census_of(ratings)
    check_enough(census)
    check_disk_space(target, expected_bytes(census))


def census_of(ratings: RawRows) -> Census:
    """Who is in the ratings, wherever they are kept."""
    return ratings.table.census if isinstance(ratings, RawTable | InteractionTable) else ratings.mask.census


def publish(
    ratings: RawRows,
    estimator: DPSR | PaperDPSR,
    target: Path,
    *,
    account: Account | None = None,
    overwrite: bool = False,
    journal: Journal | None = None,
    signer: SigningKey | None = None,
    last_call: Callable[[], None] = lambda: None,
    catalogue: Catalogue | None = None,
    people: int | None = None,
) -> Published:
    """Make the release and put it in its place. `last_call` is called when only record and rename are left.

    With an `account` it is charged to a ledger; with a `signer` it is signed; a `catalogue` gives items their titles.
    `people` are made up where real ones are protected: the usual number unless told, 0 for none.
    """
    check_made_up(estimator.unit, people)
    check_order(estimator, target, account=account, overwrite=overwrite, signer=signer)
    if isinstance(ratings, RawInteractions | InteractionTable):
        check_likes(estimator.unit, estimator.epsilon, estimator.delta)
    check_table(ratings, target)
    if account is not None:
        account.check(fingerprint_of(census_of(ratings), estimator.unit))
    try:
        with atomic_folder(target, overwrite=overwrite) as draft:
            if account is None:
                contents = _finished(_made(estimator, ratings, journal, None), catalogue, people)
                certificate, digest = contents.certificate, _write(contents, None, draft, signer)
                last_call()
            else:
                certificate, digest = _charged(
                    ratings, estimator, draft, account, journal, signer, last_call, catalogue, people
                )
    except MemoryError:
        error = ReleaseError("there is not enough memory for these ratings. Run it on a larger machine.")
        raise _with_the_price(error, account, journal) from None
    except DpsrError as error:
        raise _with_the_price(error, account, journal) from error
    return Published(target, certificate, None if account is None else _budget_if_possible(account), digest)


def _charged(
    ratings: RawRows,
    estimator: DPSR | PaperDPSR,
    draft: Path,
    account: Account,
    journal: Journal | None,
    signer: SigningKey | None,
    last_call: Callable[[], None],
    catalogue: Catalogue | None,
    people: int | None,
) -> tuple[Certificate, str]:
    """Charge, fit, write, record; the certificate and the manifest's SHA-256."""
    charge = _charge(account, estimator.charged_as, fingerprint_of(census_of(ratings), estimator.unit), journal)
    paid = estimator.unfitted().set_params(**charge.settings)
    contents = _finished(_made(paid, ratings, journal, charge.reference), catalogue, people)
    charge.check(contents.certificate)
    digest = _write(contents, account.budget, draft, signer)
    last_call()  # before the record: what is stopped after it has been paid for and is not there
    account.record_once(charge, contents.certificate, digest)
    return contents.certificate, digest


def _charge(account: Account, method: str, fingerprint: str | None, journal: Journal | None) -> Charge:
    """Pay, noting beforehand under which id; or take what a killed run has paid."""
    announce("Charging the ledger" if account.paid is None else "Going on with what was charged")
    if journal is not None:
        journal.note_charge(account.charge_id)
    try:
        return account.charge(method, fingerprint)
    except PrivacyError:
        if journal is not None and account.was_charged() is False:
            journal.forget_charge()
        raise


def _made(
    estimator: DPSR | PaperDPSR,
    ratings: RawRows,
    journal: Journal | None,
    charge: ChargeReference | None,
) -> AnyContents:
    """Noise and all that follows. What only ratings in memory can have (tuning, Stage 1 as published) is `fit`."""
    if isinstance(ratings, RawRatings) and isinstance(estimator, PaperDPSR) and estimator.fits_no_table:
        found: Contents = estimator.fit_ratings(ratings, charge=charge).release.contents
        return found
    table = raw_table(ratings) if isinstance(ratings, RawRatings | RawInteractions) else ratings
    if isinstance(estimator, PaperDPSR):
        if isinstance(table, InteractionTable):
            raise ParameterError(
                "the paper's pipelines need ratings, and these are interactions. Use --method default."
            )
        return estimator.fit_table(table, journal, charge=charge)
    return estimator.fit_table(table, journal, charge=charge)


def _finished(contents: AnyContents, catalogue: Catalogue | None, people: int | None) -> AnyContents:
    """With titles, and with made-up people."""
    titled = _titled(contents, catalogue)
    return titled if people is None else with_made_up(titled, people)


def _titled(contents: AnyContents, catalogue: Catalogue | None) -> AnyContents:
    """The same contents with what items are called, as far as the catalogue says."""
    if catalogue is None or not catalogue.titled:
        return contents
    if isinstance(contents, ItemRelease | LikesRelease):
        return contents.with_titles(catalogue)
    return replace(contents, titles=catalogue.titles_of(contents.table.census.item_ids))


def _for_the_card(budget: Budget | None) -> CardBudget | None:
    if budget is None:
        return None
    total, left = (float(amount) for amount in (budget.epsilon, budget.left_epsilon))
    return CardBudget(budget.dataset, total, total - left, left)


def _write(contents: AnyContents, budget: Budget | None, draft: Path, signer: SigningKey | None) -> str:
    """The folder, forced to disk; the SHA-256 of its manifest."""
    announce("Writing the folder")
    pages = folder_pages(contents, _for_the_card(budget), None if signer is None else signer.public.fingerprint)
    write_release(contents, draft, pages=pages, signer=signer)
    return sha256_of((draft / MANIFEST).read_bytes())


def _budget_if_possible(account: Account) -> Budget | None:
    """What is left; a ledger that cannot be asked any more does not undo a release."""
    with suppress(LedgerError):
        return account.budget
    return None


def _with_the_price(error: DpsrError, account: Account | None, journal: Journal | None) -> DpsrError:
    """The same error, and what it has cost unless that is nothing."""
    if account is None or account.was_charged() is False:
        return error
    kept = journal is not None and journal.notes_charge(account.charge_id)
    return type(error)(f"{error} Note: {account.spent(kept=kept)}")
