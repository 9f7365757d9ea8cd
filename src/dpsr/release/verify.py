"""`verify`: what holds of a release folder, found without a rating and without trusting whoever sent it.

Three questions, in this order: are these the bytes that were written, do the certificate's figures follow from its own
tables, and do the tables match what it says is public. A file whose bytes were changed is not opened.

It finds accidents and careless edits. Somebody who rewrites every file consistently is found only by comparing
`certificate_digest` with a record kept elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpsr.errors import ReleaseError
from dpsr.release.consistency import check_contents
from dpsr.release.manifest import MANIFEST, Check, certificate_digest, check_manifest
from dpsr.release.receipt import check_certificate
from dpsr.types import Certificate

CERTIFICATE = "certificate.json"
_TABLES = {CERTIFICATE, "model.json", "ratings.parquet", "users.parquet", "items.parquet"}

LIMIT = (
    "This finds accidents and careless edits, not somebody who rewrote every file. Compare the certificate's SHA-256 "
    "with the one in your ledger or in the letter that came with the release."
)


@dataclass(frozen=True)
class Verification:
    """What holds and what does not. `intact` is whether everything holds; `private` whether it may be shared, too."""

    holds: tuple[str, ...]
    fails: tuple[str, ...]
    certificate: Certificate | None
    certificate_sha256: str | None

    @property
    def intact(self) -> bool:
        return not self.fails

    @property
    def private(self) -> bool:
        """Intact, and the certificate calls the release private."""
        return self.intact and self.certificate is not None and self.certificate.private

    def to_dict(self) -> dict[str, Any]:
        found = self.certificate
        return {
            "intact": self.intact,
            "private": self.private,
            "epsilon": found.to_record()["epsilon"] if found else None,
            "delta": found.delta if found else None,
            "reasons": list(found.reasons) if found else [],
            "certificate_sha256": self.certificate_sha256,
            "holds": list(self.holds),
            "fails": list(self.fails),
            "limit": LIMIT,
        }


def verify(path: str | Path) -> Verification:
    """Check a release folder; an error only if there is no release to check."""
    folder = Path(path)
    there = {entry.name for entry in folder.iterdir()} if folder.is_dir() else set()
    if not there & (_TABLES | {MANIFEST}):
        raise ReleaseError(
            f"{folder.name or folder} is not a release folder. Pass the folder that `dpsr release --out` wrote."
        )
    try:
        checks, intact = check_manifest(folder)
        certificate, digest = None, None
        if CERTIFICATE in there:
            digest = certificate_digest(folder)
            found, certificate = check_certificate((folder / CERTIFICATE).read_bytes())
            checks += found
    except OSError as error:
        raise ReleaseError(
            f"a file of {folder.name} cannot be read: {error.strerror}. Check that you may read every file in it."
        ) from error
    checks += _contents(folder, intact, certificate)
    return Verification(*_sorted(checks), certificate, digest)


def _contents(folder: Path, intact: frozenset[str], certificate: Certificate | None) -> list[Check]:
    changed = sorted(_TABLES - intact)
    if changed or certificate is None:
        return [
            Check(False, f"the tables were not opened, because {', '.join(changed) or CERTIFICATE} cannot be trusted")
        ]
    return check_contents(folder, certificate)


def _sorted(checks: list[Check]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return tuple(c.words for c in checks if c.holds), tuple(c.words for c in checks if not c.holds)
