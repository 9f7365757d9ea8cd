"""The file that marks a folder which may not be shared."""

from __future__ import annotations

from dpsr.certify import Certificate


def warning_text(certificate: Certificate) -> str:
    """What `NOT_PRIVATE.txt` says, word for word."""
    reasons = "\n".join(f"* {reason}" for reason in certificate.reasons)
    return f"NOT PRIVATE. Do not share this folder.\n{reasons}\n"
