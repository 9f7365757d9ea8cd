"""What personal lists promise and for whom they are: the same words on screen, in files and in the documentation."""

from __future__ import annotations

from dpsr.certify import Certificate

FOR_WHOM = "Each list may be shown to its own person, and to nobody else."


def statement(certificate: Certificate) -> str:
    """The promise in words, with the release's own figures; NOT PRIVATE stays NOT PRIVATE."""
    if not certificate.private:
        return f"NOT PRIVATE: {'; '.join(certificate.reasons)}. {FOR_WHOM}"
    delta = f", delta = {certificate.delta:.3g}" if certificate.delta else ""
    rows = "interactions" if certificate.likes else "ratings"
    return (
        f"{FOR_WHOM} It was computed from that person's own {rows} and the release; nobody else's {rows} entered but "
        f"through the release. Everything together is joint differential privacy at epsilon = {certificate.epsilon:.6g}"
        f"{delta}, unit: {certificate.unit}."
    )


def file_metadata(certificate: Certificate) -> dict[str, str]:
    """What a file of personal lists says of itself."""
    return {
        "dpsr.for": FOR_WHOM,
        "dpsr.statement": statement(certificate),
        "dpsr.promise": "joint differential privacy" if certificate.private else "NOT PRIVATE",
        "dpsr.epsilon": repr(certificate.epsilon),
        "dpsr.delta": repr(certificate.delta),
        "dpsr.unit": certificate.unit,
        "dpsr.certificate": certificate.id,
    }
