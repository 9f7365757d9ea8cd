"""What an audit found: claims, lower bounds, and whether they can both be true."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from dpsr.certify.certificate import number

CONFIDENCE = 0.95
CURATOR_ONLY = "This audit read raw ratings: its figures are not private. For the curator only."


@dataclass(frozen=True)
class Finding:
    """`claimed` is the epsilon somebody states, `lower` what was found at least: above the claim, it refutes it."""

    what: str
    claimed: float
    lower: float
    trials: int
    detail: str = ""

    @property
    def rejected(self) -> bool:
        return self.lower > self.claimed


@dataclass(frozen=True)
class AuditReport:
    """All findings of one audit, which hold together at `confidence`; `curator_only` if it read raw ratings."""

    subject: str
    findings: tuple[Finding, ...]
    curator_only: bool = False
    confidence: float = CONFIDENCE

    @property
    def rejected(self) -> bool:
        return any(finding.rejected for finding in self.findings)

    @property
    def overlooked(self) -> bool:
        """Whether a claim stands: of planted errors none should."""
        return not all(finding.rejected for finding in self.findings)

    def open_to_all(self) -> AuditReport:
        """The same findings about ratings that are nobody's."""
        return replace(self, curator_only=False)

    def to_dict(self) -> dict[str, Any]:
        return {
            "subject": self.subject,
            "rejected": self.rejected,
            "confidence": self.confidence,
            "private": not self.curator_only,
            "note": CURATOR_ONLY if self.curator_only else None,
            "findings": [
                {
                    "what": finding.what,
                    "claimed": finding.claimed,
                    "lower": number(finding.lower),
                    "trials": finding.trials,
                    "detail": finding.detail,
                    "rejected": finding.rejected,
                }
                for finding in self.findings
            ],
        }
