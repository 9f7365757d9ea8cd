"""Everything that can be said of a release folder by itself, found without trusting whoever sent it.

    1. the manifest      its form and seal; every file it names is there, plain, and has the size and SHA-256 it states;
                         nothing else is there
    2. the certificate   its form, its prices recomputed, what it says of itself
    3. the layout        the files that a release of its unit has, and no other
    4. the contents      tables and model, checked to the last number; what the certificate states of them
    5. the pages         the warning if the release is not private, what a ledger said, signatures

Each file is read once: what is hashed is what is parsed. A file whose bytes were changed is not parsed. `load_release`
and `verify` are the same examination: one wants a release or a sentence, the other the whole list.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISDIR
from typing import Any

import numpy as np

from dpsr.certify import Certificate
from dpsr.certify.check import CERTIFICATE, Check, check_certificate
from dpsr.certify.folder import (
    MANIFEST,
    SIGNATURES,
    MalformedError,
    Manifest,
    UnreadableError,
    names_in,
    read_plain,
    sha256_of,
)
from dpsr.certify.signature import Signature, signatures_from_bytes
from dpsr.errors import ReleaseError
from dpsr.quoting import file_name
from dpsr.release.folder.budget_page import read_budget
from dpsr.release.folder.item_tables import read_item_side
from dpsr.release.folder.layout import (
    BUDGET,
    CARD,
    KNOWN,
    LAYOUTS,
    LIKES_LAYOUT,
    MOST_BYTES,
    NOT_PRIVATE,
    Layout,
    memory_of_machine,
    warning_text,
)
from dpsr.release.folder.likes_tables import read_likes
from dpsr.release.folder.value_tables import read_values
from dpsr.release.likes import LikesRelease
from dpsr.release.people import ItemRelease
from dpsr.release.release import Release

_MOST_LISTED = 20
_PLAIN_NAME = re.compile(r"[A-Za-z0-9._-]{1,120}")

AnyRelease = Release | ItemRelease | LikesRelease

READERS: Mapping[str, Callable[[Mapping[str, bytes], Certificate], tuple[list[Check], AnyRelease | None]]] = {
    "value": read_values,
    "rating": read_item_side,
    "user": read_item_side,
}
"""What reads the tables of a folder, by the unit it protects."""


@dataclass(frozen=True)
class Examination:
    """What holds and what does not, and what could be read: all of it if everything holds."""

    checks: tuple[Check, ...]
    certificate: Certificate | None = None
    release: AnyRelease | None = None
    manifest: Manifest | None = None
    manifest_sha256: str | None = None
    certificate_sha256: str | None = None
    signatures: tuple[Signature, ...] = ()
    card: bytes | None = None
    budget: bytes | None = None

    @property
    def fails(self) -> tuple[str, ...]:
        return tuple(check.words for check in self.checks if not check.holds)


@np.errstate(under="ignore")  # made-up people are made again; tails vanish, also where a session lets numpy raise
def examine(folder: Path) -> Examination:
    """Examine a folder; an error only if there is none, or nothing of a release in it."""
    there = _names(folder)
    try:
        text = read_plain(folder / MANIFEST, MOST_BYTES[MANIFEST])
        manifest = Manifest.from_bytes(text)
    except UnreadableError as error:
        return Examination((Check(False, f"{MANIFEST} {error}, so no file can be compared with it"),))
    except MalformedError as error:
        return Examination((Check(False, str(error)),))
    checks = [
        Check(text == manifest.to_bytes(), f"{MANIFEST} is byte for byte what its own seal says"),
        *_membership(there, manifest),
    ]
    files = dict(_intact(folder, manifest, checks))
    if len(files) == len(manifest.files):
        checks.append(Check(True, f"all {len(files)} files have the size and SHA-256 that {MANIFEST} states"))
    certificate, release = _contents(files, manifest, checks)
    digest = sha256_of(text)
    signatures = _signatures(folder, there, digest, manifest, checks)
    certified = sha256_of(files[CERTIFICATE]) if CERTIFICATE in files else None
    intact = all(check.holds for check in checks)
    return Examination(
        tuple(checks),
        certificate,
        release if intact else None,
        manifest,
        digest,
        certified,
        tuple(signatures),
        files.get(CARD),
        files.get(BUDGET),
    )


def load_release(path: str | Path) -> Any:
    """Read a release folder back; it predicts and recommends exactly as the fitted model did.

    A `Release` of ratings where values are protected, an `ItemRelease` where people or ratings are, a `LikesRelease`
    where interactions are.

    Everything is checked first, as `dpsr verify` does: what does not hold is an error. Whether the release is private,
    its certificate says.
    """
    return examined(Path(path)).release


def examined(folder: Path) -> Examination:
    """The examination of a folder that holds; an error says what does not."""
    found = examine(folder)
    if found.release is None:
        raise not_readable(folder, found.fails[0])
    return found


def not_readable(folder: Path, why: str, *, there: bool = True) -> ReleaseError:
    """The one sentence for a folder that cannot be used."""
    which = ", with all its files, unchanged; `dpsr verify` says everything that is wrong with one" if there else ""
    return ReleaseError(
        f"{file_name(folder)} is not a readable release folder: {why}. Pass the folder that `dpsr release --out` or "
        f"`model.save` wrote{which}."
    )


def _names(folder: Path) -> set[str]:
    try:
        if not S_ISDIR(folder.stat().st_mode):
            raise not_readable(folder, "it is a file", there=False)
        there = names_in(folder)
        there |= {name for name in KNOWN if os.path.lexists(folder / name)}  # in whatever order there are too many
    except (FileNotFoundError, NotADirectoryError):
        raise not_readable(folder, "it does not exist", there=False) from None
    except OSError as error:
        raise not_readable(folder, f"it cannot be listed ({error.strerror})") from None
    except ValueError as error:  # a name that no file system has
        if isinstance(error, ReleaseError):
            raise
        there = set()
    if not there & KNOWN:
        raise not_readable(folder, "there is nothing of a release in it", there=False)
    return there


def _membership(there: set[str], manifest: Manifest) -> Iterator[Check]:
    files = set(manifest.files) | {MANIFEST, SIGNATURES}
    later = sorted(there - files)
    for name in later[:_MOST_LISTED]:
        yield Check(False, f"{_shown(name)} is not named in {MANIFEST}: it was added later")
    if len(later) > _MOST_LISTED:
        yield Check(False, f"and more than {_MOST_LISTED} files besides are not named in {MANIFEST}")
    if not later and not set(manifest.files) - there:
        yield Check(True, f"the folder holds exactly the {len(manifest.files)} files that {MANIFEST} names")


def _intact(folder: Path, manifest: Manifest, checks: list[Check]) -> Iterator[tuple[str, bytes]]:
    """The files that are exactly as written; what is wrong with the others is added to the checks."""
    for name, entry in sorted(manifest.files.items()):
        try:
            if name not in KNOWN or name in (MANIFEST, SIGNATURES):
                raise UnreadableError("is no file that a release has")
            limit = min(MOST_BYTES[name], memory_of_machine() // 2)
            content = read_plain(folder / name, limit, stated=entry.size)
            if sha256_of(content) != entry.sha256:
                raise UnreadableError(f"was changed: its SHA-256 is not the one {MANIFEST} states")
            yield name, content
        except UnreadableError as error:
            checks.append(Check(False, f"{_shown(name)} {error}"))
        except MemoryError:
            checks.append(Check(False, f"{_shown(name)} is larger than the memory there is"))


def _contents(
    files: Mapping[str, bytes], manifest: Manifest, checks: list[Check]
) -> tuple[Certificate | None, AnyRelease | None]:
    """The certificate, and the tables if they can be read in its light."""
    if CERTIFICATE not in files:
        checks.append(Check(False, f"the tables were not opened, because {CERTIFICATE} cannot be trusted"))
        return None, None
    found, certificate = check_certificate(files[CERTIFICATE])
    checks += found
    if certificate is None:
        checks.append(Check(False, f"the tables were not opened, because {CERTIFICATE} cannot be read"))
        return None, None
    layout = LIKES_LAYOUT if certificate.likes else LAYOUTS[certificate.unit]
    checks += _layout(layout, manifest)
    missing = sorted(layout.required - set(files))
    if missing:
        checks.append(Check(False, f"the tables were not opened, because {', '.join(missing)} cannot be trusted"))
        return certificate, None
    found, release = (read_likes if certificate.likes else READERS[certificate.unit])(files, certificate)
    checks += [*found, *_pages(files, certificate)]
    return certificate, release


def _layout(layout: Layout, manifest: Manifest) -> Iterator[Check]:
    """The unit's own files, whatever else the manifest may name."""
    for name in sorted(set(manifest.files) & KNOWN - layout.allowed):
        yield Check(False, f"{name} is no file that a release of this unit has")
    for name in sorted(layout.required - set(manifest.files)):
        yield Check(False, f"{name} is missing, and {MANIFEST} does not name it")


def _pages(files: Mapping[str, bytes], certificate: Certificate) -> Iterator[Check]:
    """The warning and what a ledger said, word for word."""
    if certificate.private:
        words = f"the folder has no {NOT_PRIVATE}, and the certificate does not ask for one"
        yield Check(NOT_PRIVATE not in files, words)
    else:
        words = f"the folder is marked by {NOT_PRIVATE}, as its certificate asks"
        yield Check(files.get(NOT_PRIVATE) == warning_text(certificate).encode(), words)
    if BUDGET in files:
        try:
            read_budget(files[BUDGET], certificate)
            yield Check(True, f"{BUDGET} says what a ledger can have said when it was charged")
        except MalformedError as error:
            yield Check(False, str(error))


def _signatures(folder: Path, there: set[str], digest: str, manifest: Manifest, checks: list[Check]) -> list[Signature]:
    """Signatures that hold; what is wrong with others, and with one that was promised, is added to the checks."""
    valid: list[Signature] = []
    if SIGNATURES in there:
        try:
            found = signatures_from_bytes(read_plain(folder / SIGNATURES, MOST_BYTES[SIGNATURES]))
        except (UnreadableError, MalformedError) as error:
            checks.append(Check(False, f"{SIGNATURES} {error}" if isinstance(error, UnreadableError) else str(error)))
            found = []
        for one in found:
            if one.manifest == digest and one.holds:
                valid.append(one)
            else:
                words = f"{SIGNATURES}: what stands there for the key {one.key.fingerprint} is no signature of this"
                checks.append(Check(False, f"{words} {MANIFEST}"))
    if manifest.signer is not None and manifest.signer not in {one.key.fingerprint for one in valid}:
        words = f"it was to be signed by the key {manifest.signer}, and there is no signature by that key"
        checks.append(Check(False, words))
    return valid


def _shown(name: str) -> str:
    """A name of a file, spelt out where it could be taken for another: letters of other alphabets look like ours."""
    return name if _PLAIN_NAME.fullmatch(name) else f"{name[:120]!a}"
