"""The manifest: size and SHA-256 of every file of a release folder, who is to sign it, and a seal over itself.

The manifest is written in one canonical way, so that it can be rebuilt from its own content and compared byte by byte:

    body  = {"files": {name: {"bytes", "sha256"}}, "format", "signer"}      keys sorted, no spaces
    file  = body + "seal": SHA-256 of the canonical body

A changed byte in any file breaks its hash, a changed byte in the manifest breaks the seal or the canonical form. This
finds accidents and careless edits. It does not stop somebody who rewrites everything, seal included. The SHA-256 of the
manifest file stands for the whole folder: it is what a ledger records, what a signature signs and what a person keeps.

`signer` is the fingerprint of the key that was to sign the release, or null: without it, a signature could be removed
and nobody would miss it. The signatures themselves (`signature.json`) are the one file that the manifest cannot name.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from dpsr.certify.json_schema import MalformedError, check_format, first_violation, strict_json

MANIFEST, SIGNATURES = "manifest.json", "signature.json"
FORMAT = "dpsr-manifest-2"

_HEX64 = "^[0-9a-f]{64}$"
_FORM: dict[str, Any] = {
    "type": "object",
    "required": ["files", "format", "seal", "signer"],
    "additionalProperties": False,
    "properties": {
        "format": {"const": FORMAT},
        "seal": {"type": "string", "pattern": _HEX64},
        "signer": {"anyOf": [{"type": "null"}, {"type": "string", "pattern": _HEX64}]},
        "files": {
            "type": "object",
            "maxProperties": 100,
            "additionalProperties": {
                "type": "object",
                "required": ["bytes", "sha256"],
                "additionalProperties": False,
                "properties": {
                    "bytes": {"type": "integer", "minimum": 0},
                    "sha256": {"type": "string", "pattern": _HEX64},
                },
            },
        },
    },
}


class Entry(NamedTuple):
    """What the manifest says of one file."""

    size: int
    sha256: str


@dataclass(frozen=True)
class Manifest:
    """The files of a folder, and the fingerprint of the key that was to sign it."""

    files: Mapping[str, Entry]
    signer: str | None = None

    def to_bytes(self) -> bytes:
        """The one way to write it."""
        files = {name: {"bytes": entry.size, "sha256": entry.sha256} for name, entry in self.files.items()}
        body = {"files": files, "format": FORMAT, "signer": self.signer}
        return _canonical({**body, "seal": hashlib.sha256(_canonical(body)).hexdigest()}) + b"\n"

    @classmethod
    def from_bytes(cls, text: bytes) -> Manifest:
        """Read one of the right form; its seal is not looked at (`to_bytes` shows whether it fits)."""
        try:
            record = strict_json(text)
        except MalformedError as error:
            raise MalformedError(f"{MANIFEST} cannot be read ({error}), so no file can be compared with it") from error
        check_format(record, FORMAT, MANIFEST)
        if wrong := first_violation(record, _FORM):
            raise MalformedError(f"{MANIFEST} is not a manifest: {wrong}")
        files = {name: Entry(entry["bytes"], entry["sha256"]) for name, entry in record["files"].items()}
        return cls(files, record["signer"])


def write_manifest(folder: Path, *, signer: str | None = None) -> str:
    """Seal a folder whose other files are complete; the SHA-256 of the manifest."""
    outside = (MANIFEST, SIGNATURES)
    files = {file.name: _entry(file) for file in folder.iterdir() if file.name not in outside}
    text = Manifest(files, signer).to_bytes()
    (folder / MANIFEST).write_bytes(text)
    return sha256_of(text)


def sha256_of(content: bytes) -> str:
    """SHA-256 in hexadecimal digits, as `sha256sum` prints it."""
    return hashlib.sha256(content).hexdigest()


def _entry(file: Path) -> Entry:
    """Piece by piece: a table of our own may be larger than memory."""
    with file.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
        return Entry(stream.tell(), digest)


def _canonical(record: dict[str, Any]) -> bytes:
    return json.dumps(record, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()
