"""`verify`: what holds of a release folder, found without a rating and without trusting whoever sent it.

Three questions, in this order: are these the bytes that were written, do the certificate's figures follow from its own
tables, and do the tables match what it says is public. A file whose bytes were changed is not opened.

It finds accidents and careless edits. Somebody who rewrites every file consistently is found only by comparing
`certificate_digest` with a record kept elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from dpsr.certify import Certificate
from dpsr.certify.check import Check, check_certificate
from dpsr.certify.manifest import MANIFEST, certificate_digest, check_manifest
from dpsr.errors import DpsrError, ReleaseError
from dpsr.release.folder.files import load_release
from dpsr.release.release import Release
from dpsr.types.mask import codes_of

NOT_PRIVATE = "NOT_PRIVATE.txt"


def check_contents(folder: Path, certificate: Certificate) -> list[Check]:
    """Load the release as a user would and hold it against its certificate."""
    try:
        release = load_release(folder)
        return [*_facts(release, certificate), *_order(folder, release), *_values(release), *_warning(folder, release)]
    except DpsrError as error:
        return [Check(False, f"the release cannot be loaded: {error}")]
    except Exception as error:  # a folder from a stranger may break a reader in any way; every way is this one finding
        return [Check(False, f"the release cannot be loaded: {type(error).__name__} while reading its tables")]


def _facts(release: Release, certificate: Certificate) -> Iterator[Check]:
    mask, counts = release.mask, release.mask.user_counts
    found = {
        "scale": str(release.scale),
        "levels": release.scale.n_levels,
        "n_users": mask.n_users,
        "n_items": mask.n_items,
        "n_ratings": mask.n_ratings,
        "median_ratings_per_user": float(np.median(counts)) if len(counts) else None,
        "max_ratings_per_user": int(counts.max(initial=0)),
        "has_timestamps": mask.timestamps is not None,
    }
    wrong = {name: value for name, value in found.items() if certificate.public.get(name) != value}
    for name, value in wrong.items():
        yield Check(False, f"{name} is {value} in the tables, and {certificate.public.get(name)!r} in the certificate")
    if not wrong:
        shape = f"{mask.n_ratings:,} ratings, {mask.n_users:,} users, {mask.n_items:,} items, scale {release.scale}"
        yield Check(True, f"the tables have the shape the certificate states: {shape}")


def _order(folder: Path, release: Release) -> Iterator[Check]:
    """The rating table names the same users and items, in the same order and number, as the other two tables."""
    mask = release.mask
    ratings, items = (pq.read_table(folder / f"{name}.parquet") for name in ("ratings", "items"))
    users = codes_of(ratings["user"].combine_chunks(), mask.user_ids)
    same = np.array_equal(users, mask.users) and len(release.ratings) == len(mask.items) and (mask.items >= 0).all()
    counted = np.array_equal(items["n_ratings"].to_numpy(), mask.item_counts) if same else False
    cells = mask.users.astype(np.int64) * max(mask.n_items, 1) + mask.items if counted else np.zeros(2)
    yield Check(bool((np.diff(cells) > 0).all()), "the three tables name the same users, items and counts")


def _values(release: Release) -> Iterator[Check]:
    scale, model = release.scale, release.model
    inside = (release.ratings >= scale.low) & (release.ratings <= scale.high)
    yield Check(bool(inside.all()), f"every released rating lies on the scale's range, {scale.low:g} to {scale.high:g}")
    numbers = (model.user_factors, model.item_factors, model.user_means, model.item_means)
    yield Check(all(np.isfinite(n).all() for n in numbers), "every number of the model is finite")


def _warning(folder: Path, release: Release) -> Iterator[Check]:
    marked = (folder / NOT_PRIVATE).exists()
    if release.certificate.private:
        yield Check(not marked, f"the folder has no {NOT_PRIVATE}, and the certificate does not ask for one")
    else:
        yield Check(marked, f"the folder is marked by {NOT_PRIVATE}, as its certificate asks")


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
