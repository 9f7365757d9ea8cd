"""Signing a finished folder: an officer looks, then vouches.

The folder is verified first, its card included, so that nobody signs what does not hold. Signatures are added to those
that are there; the file of signatures is replaced in one step, and two people who sign at once wait for each other.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from dpsr.certify.folder import SIGNATURES
from dpsr.certify.signature import Signature, signatures_to_bytes
from dpsr.engine.work_folder import sync
from dpsr.errors import SignatureError
from dpsr.pipeline.verification import verify_release
from dpsr.quoting import file_name
from dpsr.release.folder.examination import examined, not_readable
from dpsr.release.keys import SigningKey

_DRAFT = f".{SIGNATURES}.partial"


def sign_release(folder: Path, key: SigningKey) -> Signature:
    """Sign a private release that holds; a second signature by the same key changes nothing."""
    with suppress(OSError):  # what cannot be removed is no draft of ours, and `verify` names it
        (folder / _DRAFT).unlink()  # left by somebody who was interrupted
    signature = key.sign(_private(folder))
    try:
        with _waiting_lock(folder):
            _add(folder, signature)
    except OSError as error:
        raise SignatureError(
            f"the signature could not be written to {file_name(folder)}: {error.strerror}. Nothing was signed. Sign a "
            "copy that you may write to."
        ) from error
    return signature


def _private(folder: Path) -> str:
    """The SHA-256 of the manifest of a folder that verifies."""
    found = verify_release(folder)
    if found.fails or found.manifest_sha256 is None:
        raise not_readable(folder, found.fails[0])
    if not found.private:
        raise SignatureError(
            f"{file_name(folder)} is NOT PRIVATE, and a signature would say that somebody stands for it. "
            "Nothing was signed."
        )
    return found.manifest_sha256


def _add(folder: Path, signature: Signature) -> None:
    """Read again under the lock, add, force to disk, rename."""
    there = examined(folder).signatures
    if signature.key in {one.key for one in there}:
        return
    draft = folder / _DRAFT
    try:
        draft.write_bytes(signatures_to_bytes([*there, signature]))
        sync(draft)
        os.replace(draft, folder / SIGNATURES)
        sync(folder)
    finally:
        draft.unlink(missing_ok=True)


@contextmanager
def _waiting_lock(folder: Path) -> Iterator[None]:
    """Alone with a folder, among those who ask; where there are no locks, without one."""
    import fcntl

    handle = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
