"""`dpsr verify`: a folder held against itself, its card, a ledger and a key.

A ledger binds a folder in three steps: the certificate names a charge, the charge is in the ledger's chain under that
digest, and what the ledger recorded for the charge is this certificate and this manifest. So neither another folder
with the same certificate nor other tables under it pass for the one that was paid for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import inf
from pathlib import Path

from dpsr.certify import Certificate
from dpsr.certify.amounts import epsilon_text, exact
from dpsr.certify.check import Check
from dpsr.certify.signature import PublicKey
from dpsr.pipeline.cards import check_card
from dpsr.privacy.ledger import Event, Ledger
from dpsr.release.folder.examination import examine
from dpsr.release.folder.layout import BUDGET, CARD
from dpsr.release.verify import OUTSIDE, Verification, verification


def verify_release(
    folder: Path,
    *,
    ledger: str | None = None,
    dataset: str | None = None,
    signer: PublicKey | None = None,
    unit: str | None = None,
) -> Verification:
    """Everything that holds of a folder and everything that does not; an error only if there is no release.

    With a `ledger` it must be recorded there, with a `signer` it must be signed by that key, with a `unit` that must be
    protected.
    """
    found = examine(folder)
    result = verification(found, signer=signer)
    if unit is not None and result.certificate is not None:
        result = result.with_check(_protects(result.certificate, unit))
    if ledger is not None:
        result = recorded_in(result, Ledger.open(ledger).history(dataset))
    if found.release is None:
        return result
    if found.budget is not None and not result.vouched:
        result = replace(result, notes=(*result.notes, _UNHEARD))
    card = check_card(found, vouched=result.vouched)
    return result.with_check(card) if isinstance(card, Check) else replace(result, notes=(*result.notes, card))


_UNHEARD = (
    f"{BUDGET}, and {CARD} after it, tell what a ledger is said to have said: whether there is one, and whose data set "
    "that is, nothing here can show (--ledger can)"
)
_UNITS = {"value": "the value of a rating", "rating": "that a rating exists", "user": "every whole person"}
_LIKES_UNITS = {**_UNITS, "value": "the weight of an interaction", "rating": "that an interaction exists"}


def _protects(certificate: Certificate, unit: str) -> Check:
    """Whether what was asked for is protected, at whatever price the certificate states."""
    price, names = certificate.protection[unit], _LIKES_UNITS if certificate.likes else _UNITS
    if not certificate.private:
        return Check(
            False, f"it was asked to protect {names[unit]}, and a release that is NOT PRIVATE protects nothing"
        )
    if price is None or price.epsilon == inf:
        own = names[certificate.unit]
        return Check(False, f"it was asked to protect {names[unit]}, and this release protects {own} alone")
    cost = f"epsilon = {epsilon_text(price.epsilon)}" + (
        f", delta = {epsilon_text(price.delta)}" if price.delta else ""
    )
    return Check(True, f"it protects {names[unit]}, as was asked, at {cost}")


def recorded_in(found: Verification, history: Sequence[Event]) -> Verification:
    """What a verification says, and whether a ledger's history holds the charge and the record of this very folder."""
    fault = _fault(found, history)
    if fault is not None:
        return found.with_check(Check(False, fault))
    words = "the ledger holds the charge that the certificate names, and recorded this certificate and this manifest"
    limit = OUTSIDE.format(what="the ledger recorded when it was released", whose="the ledger")
    return found.with_check(Check(True, words), limit)


def _fault(found: Verification, history: Sequence[Event]) -> str | None:
    certificate = found.certificate
    if certificate is None:
        return "there is no certificate that could name a charge of the ledger"
    if certificate.charge is None:
        return "the certificate names no charge, so no ledger has paid for it"
    events = {event.kind: event for event in history if event.charge == certificate.charge.id}
    charge, release = events.get("charge"), events.get("release")
    if charge is None or charge.digest != certificate.charge.digest:
        return "the ledger does not hold the charge that the certificate names"
    unit = next(event.unit or "value" for event in history if event.dataset == charge.dataset)
    if certificate.unit != unit:
        return f"the ledger was charged for {_UNITS[unit]}, and this release protects {_UNITS[certificate.unit]} alone"
    if exact(certificate.epsilon, "epsilon") > charge.epsilon or exact(certificate.delta, "delta") > charge.delta:
        return "the certificate costs more than the ledger was charged"
    if release is None:
        return "the ledger was charged, and recorded no release for that charge"
    if release.certificate != found.certificate_sha256:
        return "the ledger recorded another certificate for that charge"
    if release.manifest != found.manifest_sha256:
        return "the ledger recorded another manifest for that charge: the certificate is the one, the folder is not"
    return None
