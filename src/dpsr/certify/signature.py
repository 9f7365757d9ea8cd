"""Who vouches for a folder: Ed25519 signatures of its manifest, checked with public keys.

A signature is made over one line that says what it is for, so that it cannot be taken for a signature of anything else:

    message = "dpsr-release-signature-1\\n" + SHA-256 of manifest.json in hexadecimal digits + "\\n"

The manifest names every other file with its SHA-256, so the line stands for the whole folder. Any tool that knows
Ed25519 can check it. What a signature shows: whoever held that key signed exactly this folder. Not who that is, not
when, and not that the ratings were the right ones.

    signature.json = {"format", "signatures": [{"key", "manifest", "signature"}]}      keys and signatures hexadecimal
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_public_key

from dpsr.certify.folder import (
    SIGNATURES,
    MalformedError,
    UnreadableError,
    check_format,
    first_violation,
    read_plain,
    strict_json,
)
from dpsr.errors import SignatureError
from dpsr.quoting import file_name

FORMAT = "dpsr-signatures-1"
MOST_BYTES = 1 << 16
"""Of a key file, and of the file of signatures."""

_PURPOSE = "dpsr-release-signature-1"
_WEAK = {
    bytes.fromhex(point)
    for point in (
        "00" * 32,
        "01" + "00" * 31,
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
        "ec" + "ff" * 30 + "7f",
        "ed" + "ff" * 30 + "7f",
        "ee" + "ff" * 30 + "7f",
    )
}
"""Points of small order, every way they are written but for the sign: under such a key anybody can sign anything."""

_HEX64, _HEX128 = {"type": "string", "pattern": "^[0-9a-f]{64}$"}, {"type": "string", "pattern": "^[0-9a-f]{128}$"}
_FORM: dict[str, Any] = {
    "type": "object",
    "required": ["format", "signatures"],
    "additionalProperties": False,
    "properties": {
        "format": {"const": FORMAT},
        "signatures": {
            "type": "array",
            "minItems": 1,
            "maxItems": 50,
            "items": {
                "type": "object",
                "required": ["key", "manifest", "signature"],
                "additionalProperties": False,
                "properties": {"key": _HEX64, "manifest": _HEX64, "signature": _HEX128},
            },
        },
    },
}


@dataclass(frozen=True)
class PublicKey:
    """An Ed25519 public key: its 32 bytes."""

    raw: bytes

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the key in DER, so that `openssl pkey -pubin -outform DER | sha256sum` prints the same."""
        return hashlib.sha256(self._key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).hexdigest()

    def to_pem(self) -> bytes:
        return self._key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)

    def signed(self, signature: bytes, manifest: str) -> bool:
        """Whether this is the key's signature of the manifest with that SHA-256; a weak key has signed nothing."""
        if bytes([*self.raw[:31], self.raw[31] & 0x7F]) in _WEAK:
            return False
        try:
            self._key.verify(signature, message(manifest))
        except InvalidSignature:
            return False
        return True

    @property
    def _key(self) -> Ed25519PublicKey:
        return Ed25519PublicKey.from_public_bytes(self.raw)


class Signature(NamedTuple):
    """One signature: whose, of which manifest, and the 64 bytes."""

    key: PublicKey
    manifest: str
    value: bytes

    @property
    def holds(self) -> bool:
        """Whether the key signed the manifest it names."""
        return self.key.signed(self.value, self.manifest)


def message(manifest: str) -> bytes:
    """What is signed for the manifest with this SHA-256."""
    return f"{_PURPOSE}\n{manifest}\n".encode()


def read_public_key(path: Path) -> PublicKey:
    """A public key file in PEM, as `dpsr keys new` and `openssl pkey -pubout` write it."""
    try:
        key = load_pem_public_key(read_plain(path, MOST_BYTES))
    except (UnreadableError, ValueError, UnsupportedAlgorithm) as error:
        why = str(error) if isinstance(error, UnreadableError) else "is not a public key in PEM"
        raise SignatureError(
            f"{file_name(path)} {why}. Pass the public key of whoever is to have signed: dpsr keys new writes it as "
            "NAME.pub."
        ) from None
    if not isinstance(key, Ed25519PublicKey):
        raise SignatureError(f"{file_name(path)} is a key of another kind. Releases are signed with Ed25519 keys.")
    return PublicKey(key.public_bytes(Encoding.Raw, PublicFormat.Raw))


def signatures_to_bytes(signatures: Sequence[Signature]) -> bytes:
    """As the folder holds them."""
    records = [{"key": one.key.raw.hex(), "manifest": one.manifest, "signature": one.value.hex()} for one in signatures]
    return (json.dumps({"format": FORMAT, "signatures": records}, indent=1) + "\n").encode()


def signatures_from_bytes(text: bytes) -> list[Signature]:
    """Signatures of the right form, one for each key; whether they hold is not looked at."""
    try:
        record = strict_json(text)
    except MalformedError as error:
        raise MalformedError(f"{SIGNATURES} cannot be read: {error}") from error
    check_format(record, FORMAT, SIGNATURES)
    if wrong := first_violation(record, _FORM):
        raise MalformedError(f"{SIGNATURES} has not the form of signatures: {wrong}")
    found = [_signature(one) for one in record["signatures"]]
    if len({one.key for one in found}) < len(found):
        raise MalformedError(f"{SIGNATURES} holds two signatures by one key")
    if signatures_to_bytes(found) != text:
        raise MalformedError(f"{SIGNATURES} is not written the way signatures are written")
    return found


def _signature(record: dict[str, str]) -> Signature:
    return Signature(PublicKey(bytes.fromhex(record["key"])), record["manifest"], bytes.fromhex(record["signature"]))
