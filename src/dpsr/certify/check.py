"""What holds of a certificate by itself: its form, its prices, its sum and its own verdict.

Prices are recomputed from the tables (`types.prices`). A stated figure may not lie below the recomputed one by a single
unit in the last place, and not above it by more than one part in 10^9: more would mean that it was never computed.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf
from typing import Any

from dpsr.certify import Certificate, Part
from dpsr.certify.certificate import COMPOSITION, SCHEMA, UNIT
from dpsr.certify.exact import sum_up
from dpsr.certify.manifest import Check
from dpsr.certify.prices import price_of
from dpsr.certify.schema import MalformedError, strict_json, violations
from dpsr.errors import PrivacyError

_SLACK = 1e-9


def check_certificate(text: bytes) -> tuple[list[Check], Certificate | None]:
    """Everything that can be said of a certificate from its own bytes; the certificate, if it could be read."""
    try:
        record = strict_json(text)
    except MalformedError as error:
        return [Check(False, f"certificate.json cannot be read: {error}")], None
    if wrong := violations(record, SCHEMA, "the certificate"):
        return [Check(False, f"certificate.json has not the form of a certificate: {wrong[0]}")], None
    certificate = Certificate.from_json(text.decode("utf-8"))
    return [*_terms(certificate), *_prices(certificate), *_sums(record, certificate), *_flag(certificate)], certificate


def fits(stated: float, exact: float) -> bool:
    """Never below the exact figure, and not above it by more than a trace."""
    return stated == exact or exact <= stated <= exact * (1 + _SLACK)


def _terms(certificate: Certificate) -> Iterator[Check]:
    yield Check(certificate.unit == UNIT, "the unit of protection is the value of one rating")
    yield Check(certificate.composition == COMPOSITION, "prices of parts are composed by adding them up")
    if not certificate.parts:
        yield Check(False, "a certificate names what it paid for, this one has no parts")


def _prices(certificate: Certificate) -> Iterator[Check]:
    for part in certificate.parts:
        try:
            exact = price_of(part)
        except PrivacyError as error:
            yield Check(False, f"{part.name}: {error}")
            continue
        evidence = _evidence(part)
        if not fits(part.epsilon, exact.epsilon):
            words = f"epsilon = {exact.epsilon!r} by its {evidence}, and it states {part.epsilon!r}"
            yield Check(False, f"{part.name}: {words}")
        elif not fits(part.delta, exact.delta):
            words = (
                f"delta = {exact.delta!r} by its {evidence} at epsilon = {part.epsilon:g}, and it states {part.delta!r}"
            )
            yield Check(False, f"{part.name}: {words}")
        else:
            delta = f", delta = {part.delta:.3g}" if part.delta else ""
            yield Check(True, f"{part.name}: epsilon = {part.epsilon:.6g}{delta}, recomputed from its {evidence}")


def _evidence(part: Part) -> str:
    if part.tables:
        return "integer table" if len(part.tables) == 1 else f"{len(part.tables)} integer tables"
    return "sensitivity and noise scale" if part.sensitivity is not None else "worst case over all data sets"


def _sums(record: dict[str, Any], certificate: Certificate) -> Iterator[Check]:
    for name in ("epsilon", "delta"):
        stated, exact = float(record[name]), sum_up(getattr(part, name) for part in certificate.parts)
        if fits(stated, exact):
            yield Check(True, f"{name} = {stated:.6g} is what its parts add up to")
        else:
            yield Check(False, f"{name} is stated as {stated!r}, and its parts add up to {exact!r}")


def _flag(certificate: Certificate) -> Iterator[Check]:
    """`private` may be said only if nothing speaks against it; `NOT PRIVATE` needs a reason."""
    against = list(_against(certificate))
    if certificate.private and (against or certificate.reasons):
        words = "; ".join(against) or "it lists reasons why it is not"
        yield Check(False, f"the certificate calls itself private although {words}")
    elif not certificate.private and not certificate.reasons:
        yield Check(False, "the certificate calls itself NOT PRIVATE and gives no reason")
    else:
        said = "private" if certificate.private else "NOT PRIVATE, with its reasons"
        yield Check(True, f"the certificate rightly calls itself {said}")


def _against(certificate: Certificate) -> Iterator[str]:
    if certificate.randomness != "system":
        yield f"its randomness is {certificate.randomness!r}, not the system's"
    if certificate.epsilon == inf:
        yield "its epsilon is infinite"
    if certificate.nominal is None:
        yield "no epsilon was asked for"
    elif certificate.epsilon > certificate.nominal:
        yield f"its epsilon {certificate.epsilon!r} exceeds the {certificate.nominal!r} asked for"
    for part in certificate.parts:
        asked = part.details.get("nominal_delta", 1.0 if part.delta == 0 else 0.0)
        if not isinstance(asked, int | float) or part.delta > asked:
            yield f"the delta {part.delta!r} of {part.name} exceeds what was asked for"
