"""`verify`: what holds of a release folder, as a list for people, and what a signature adds to it.

The examination (`folder/examination`) finds accidents, careless edits and everything that contradicts itself. Somebody
who rewrites every file consistently is found only by what lies outside the folder: a ledger that recorded the SHA-256
of the manifest, a signature by a key one knows, or the digest on a piece of paper.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dpsr.certify import Certificate
from dpsr.certify.check import Check
from dpsr.certify.signature import PublicKey
from dpsr.release.folder.examination import Examination, examine

LIMIT = (
    "This finds accidents and careless edits, not somebody who rewrote every file. Compare the manifest's SHA-256 with "
    "the one in your ledger (--ledger) or in the letter that came with the release, or ask for a signature (--signer)."
)
OUTSIDE = "So this is the very folder that {what}; whoever holds {whose} answers for that."


@dataclass(frozen=True)
class Verification:
    """What holds and what does not. `intact` is whether everything holds; `private` whether it may be shared, too.

    `notes` are what was seen and neither holds nor fails. `limit` says what nothing here can show.
    """

    holds: tuple[str, ...]
    fails: tuple[str, ...]
    notes: tuple[str, ...]
    certificate: Certificate | None
    manifest_sha256: str | None
    certificate_sha256: str | None
    signers: tuple[str, ...] = ()
    limit: str = LIMIT

    @property
    def intact(self) -> bool:
        return not self.fails

    @property
    def private(self) -> bool:
        """Intact, and the certificate calls the release private."""
        return self.intact and self.certificate is not None and self.certificate.private

    @property
    def vouched(self) -> bool:
        """Whether something outside the folder, a ledger or a key, stands for these very bytes."""
        return self.limit != LIMIT

    def with_check(self, check: Check, limit: str | None = None) -> Verification:
        """One more thing that holds or fails; `limit` is what is left to say if it holds."""
        if check.holds:
            return replace(self, holds=(*self.holds, check.words), limit=limit or self.limit)
        return replace(self, fails=(*self.fails, check.words))

    def to_dict(self) -> dict[str, Any]:
        found = self.certificate
        return {
            "intact": self.intact,
            "private": self.private,
            "unit": found.unit if found else None,
            "epsilon": found.to_record()["epsilon"] if found else None,
            "delta": found.delta if found else None,
            "reasons": list(found.reasons) if found else [],
            "manifest_sha256": self.manifest_sha256,
            "certificate_sha256": self.certificate_sha256,
            "signers": list(self.signers),
            "holds": list(self.holds),
            "fails": list(self.fails),
            "notes": list(self.notes),
            "limit": self.limit,
        }


def verify(path: str | Path, *, signer: PublicKey | None = None) -> Verification:
    """Check a release folder; an error only if there is no release to check.

    With a `signer` the folder must bear a valid signature by that key. Without one, signatures are reported and not
    trusted: anybody can make a key.
    """
    return verification(examine(Path(path)), signer=signer)


def verification(found: Examination, *, signer: PublicKey | None = None) -> Verification:
    """An examination as a list for people."""
    signers = tuple(one.key.fingerprint for one in found.signatures)
    others = [one for one in signers if signer is None or one != signer.fingerprint]
    result = Verification(
        tuple(check.words for check in found.checks if check.holds),
        found.fails,
        tuple(f"a signature by the key {one}; nobody said here whose key that is" for one in others),
        found.certificate,
        found.manifest_sha256,
        found.certificate_sha256,
        signers,
    )
    if signer is None:
        return result
    if signer.fingerprint in signers:
        limit = OUTSIDE.format(what="that key signed", whose="the key")
        return result.with_check(Check(True, f"signed by the key {signer.fingerprint}"), limit)
    return result.with_check(Check(False, f"there is no signature by the key {signer.fingerprint}"))
