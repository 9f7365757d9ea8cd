"""The manifest: size and SHA-256 of every file of a release folder, and a seal over the manifest itself.

The manifest is written in one canonical way, so that it can be rebuilt from its own content and compared byte by byte:

    body  = {"files": {name: {"bytes", "sha256"}}, "format"}      keys sorted, no spaces
    file  = body + "seal": SHA-256 of the canonical body

A changed byte in any file breaks its hash, a changed byte in the manifest breaks the seal or the canonical form. This
finds accidents and careless edits. It does not stop somebody who rewrites everything, seal included: for that compare
`certificate_digest` with what the ledger or a signed letter recorded.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dpsr.certify.check import Check
from dpsr.certify.schema import MalformedError, strict_json, violations

MANIFEST = "manifest.json"
FORMAT = "dpsr-manifest-1"

_SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["files", "format", "seal"],
    "additionalProperties": False,
    "properties": {
        "format": {"const": FORMAT},
        "seal": {"type": "string"},
        "files": {
            "type": "object",
            "additionalProperties": {
                "type": "object",
                "required": ["bytes", "sha256"],
                "additionalProperties": False,
                "properties": {"bytes": {"type": "integer", "minimum": 0}, "sha256": {"type": "string"}},
            },
        },
    },
}


def write_manifest(folder: Path) -> None:
    """Seal a folder whose other files are complete."""
    files = {
        file.name: {"sha256": _sha256(file), "bytes": file.stat().st_size}
        for file in folder.iterdir()
        if file.name != MANIFEST
    }
    (folder / MANIFEST).write_bytes(_sealed(files))


def certificate_digest(folder: str | Path) -> str:
    """SHA-256 of the certificate's bytes: what a ledger records and a person can sign."""
    return _sha256(Path(folder) / "certificate.json")


def check_manifest(folder: Path) -> tuple[list[Check], frozenset[str]]:
    """What holds of the folder's bytes, and the names of the files that are exactly as written."""
    try:
        text = (folder / MANIFEST).read_bytes()
        record = strict_json(text)
        wrong = violations(record, _SCHEMA)
    except (OSError, MalformedError) as error:
        return [Check(False, f"{MANIFEST} cannot be read ({error}), so no file can be compared with it")], frozenset()
    if wrong:
        return [Check(False, f"{MANIFEST} is not a manifest: {wrong[0]}")], frozenset()
    files = record["files"]
    checks = [
        Check(text == _sealed(files), f"{MANIFEST} is byte for byte what its own seal says"),
        *_membership(folder, files),
    ]
    faults = {name: fault for name in sorted(files) if (fault := _fault(folder, name, files[name]))}
    checks += [Check(False, f"{ascii(name)[1:-1]} {fault}") for name, fault in faults.items()]
    if not faults:
        checks.append(Check(True, f"all {len(files)} files have the size and SHA-256 that {MANIFEST} states"))
    return checks, frozenset(set(files) - set(faults))


def _sealed(files: dict[str, Any]) -> bytes:
    body = {"files": files, "format": FORMAT}
    return _canonical({**body, "seal": hashlib.sha256(_canonical(body)).hexdigest()}) + b"\n"


def _canonical(record: dict[str, Any]) -> bytes:
    return json.dumps(record, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def _sha256(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _membership(folder: Path, files: dict[str, Any]) -> Iterator[Check]:
    there = {entry.name for entry in folder.iterdir()} - {MANIFEST}
    for name in sorted(there - set(files)):
        yield Check(False, f"{ascii(name)[1:-1]} is not named in {MANIFEST}: it was added later")
    if there == set(files):
        yield Check(True, f"the folder holds exactly the {len(files)} files that {MANIFEST} names")


def _fault(folder: Path, name: str, entry: dict[str, Any]) -> str | None:
    """Why a file is not the one that was written; None if it is."""
    file = folder / name
    if Path(name).name != name or file.is_symlink() or (file.exists() and not file.is_file()):
        return "is not a plain file of this folder"
    if not file.exists():
        return "is missing"
    if file.stat().st_size != entry["bytes"]:
        return f"has {file.stat().st_size:,} bytes, {MANIFEST} states {entry['bytes']:,}"
    if _sha256(file) != entry["sha256"]:
        return f"was changed: its SHA-256 is not the one {MANIFEST} states"
    return None
