"""Private keys that sign releases: made, kept and used.

A key is a file of its own (PKCS 8 in PEM, readable by its owner alone, under a passphrase if one is given), its public
half another beside it (`NAME.pub`). Signing looks at the folder first: what is not intact or not private is not signed.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)

from dpsr.certify.folder import UnreadableError, read_plain
from dpsr.certify.signature import MOST_BYTES, PublicKey, Signature, message
from dpsr.errors import SignatureError
from dpsr.quoting import file_name
from dpsr.release.atomic import write_new_file


@dataclass(frozen=True, eq=False)
class SigningKey:
    """An Ed25519 private key in memory."""

    _key: Ed25519PrivateKey

    @property
    def public(self) -> PublicKey:
        return PublicKey(self._key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw))

    def sign(self, manifest: str) -> Signature:
        """The signature of the manifest with this SHA-256."""
        return Signature(self.public, manifest, self._key.sign(message(manifest)))

    def __repr__(self) -> str:  # a key is never shown
        return f"SigningKey({self.public.fingerprint})"


class PassphraseNeededError(SignatureError):
    """A key is kept under a passphrase and none was given."""


def public_name(private: Path) -> Path:
    """Where the public half of a key lies."""
    return private.with_name(f"{private.name}.pub")


def new_key(path: Path, passphrase: str | None) -> PublicKey:
    """Make a key and write both halves; nothing that exists is replaced. None means: kept without a passphrase.

    The private half comes last: whoever finds one, whenever the process ended, finds it whole and with its public half.
    """
    public = public_name(path)
    if os.path.lexists(path):
        raise _taken(path)
    if os.path.lexists(public):
        raise SignatureError(
            f"{file_name(public)} exists already, without {file_name(path)}: its private half is kept elsewhere, or "
            "was never written because the command was killed. Choose another name, or delete it if nobody uses it."
        )
    if passphrase == "":
        raise SignatureError(
            "a passphrase has at least one character. To keep the key without one, say so: --no-passphrase."
        )
    key = Ed25519PrivateKey.generate()
    lock = NoEncryption() if passphrase is None else BestAvailableEncryption(passphrase.encode())
    secret = SigningKey(key)
    _write_new(public, secret.public.to_pem(), 0o644)
    try:
        _write_new(path, key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, lock), 0o600)
    except BaseException as error:
        if isinstance(error, SignatureError) or not os.path.lexists(path):  # an interrupt may come when it is there
            public.unlink(missing_ok=True)
        raise
    return secret.public


def read_key(path: Path, passphrase: str | None = None) -> SigningKey:
    """A private key from its file, which nobody but its owner may read."""
    try:
        text = read_plain(path, MOST_BYTES)
    except UnreadableError as error:
        raise SignatureError(
            f"the key {file_name(path)} {error}. Pass a private key: dpsr keys new makes one."
        ) from None
    if b"PUBLIC KEY" in text:
        raise SignatureError(
            f"{file_name(path)} is the public half of a key, for checking. Sign with the private half: dpsr keys new "
            "writes it without .pub."
        )
    _refuse_readable_by_others(path)
    try:
        key = load_pem_private_key(text, None if passphrase is None else passphrase.encode())
    except TypeError:  # how the library says that a passphrase is missing, or was given for nothing
        if passphrase is not None:
            return read_key(path)
        raise PassphraseNeededError(
            f"the key {file_name(path)} is kept under a passphrase. Set DPSR_KEY_PASSPHRASE, or type it when asked."
        ) from None
    except (ValueError, UnsupportedAlgorithm):
        why = "is no private key in PEM. dpsr keys new makes a key"
        if b"ENCRYPTED" in text:
            why = "does not open with this passphrase. Correct DPSR_KEY_PASSPHRASE, or leave it unset to be asked"
        raise SignatureError(f"{file_name(path)} {why}.") from None
    if not isinstance(key, Ed25519PrivateKey):
        raise SignatureError(f"{file_name(path)} is a key of another kind. Releases are signed with Ed25519 keys.")
    return SigningKey(key)


def _refuse_readable_by_others(path: Path) -> None:
    if os.name == "posix" and stat.S_IMODE(path.stat().st_mode) & 0o077:
        raise SignatureError(
            f"the key {file_name(path)} may be read by others than its owner. Protect it (chmod 600), and make a new "
            "one if somebody may have read it."
        )


def _write_new(path: Path, content: bytes, mode: int) -> None:
    """A file that was not there, with these rights from its first byte on; if it cannot be whole, it is not there."""
    try:
        write_new_file(path, content, mode)
    except OSError as error:
        if os.path.lexists(path):
            raise _taken(path) from None
        raise SignatureError(
            f"{file_name(path)} could not be written: {error.strerror}. Choose a name and a place where you may write."
        ) from None


def _taken(file: Path) -> SignatureError:
    return SignatureError(
        f"{file_name(file)} exists already, and a key that is overwritten is lost. Choose another name."
    )
