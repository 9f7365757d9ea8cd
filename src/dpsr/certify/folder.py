"""A folder by a stranger: its files opened plainly, its JSON read strictly, and the manifest that seals it.

**Plainly.** A name may be a link that leads elsewhere, a pipe or a device that never ends, or a file larger than
memory. So a file is opened without following links and without waiting, looked at through the handle that will be read,
and read to the size it then has. What is hashed and what is parsed are the same bytes in memory.

**Strictly.** No number that is none (NaN, Infinity), no whole number beyond 64 bits (or as many as asked for), and no
key twice, because two readers might read two things. Of JSON Schema there is what our own schemas use, so that a reader
of a certificate needs no further library: `type`, `const`, `enum`, `required`, `properties`, `additionalProperties`,
`items`, `minimum`, `maximum`, `pattern` and `anyOf`; a schema that uses more is refused.

**The manifest**: size and SHA-256 of every file, who is to sign it, and a seal over itself. It is written in one
canonical way, so that it can be rebuilt from its own content and compared byte by byte:

    body  = {"files": {name: {"bytes", "sha256"}}, "format", "signer"}      keys sorted, no spaces
    file  = body + "seal": SHA-256 of the canonical body

A changed byte in any file breaks its hash, a changed byte in the manifest breaks the seal or the canonical form. This
finds accidents and careless edits. It does not stop somebody who rewrites everything, seal included. The SHA-256 of the
manifest file stands for the whole folder: it is what a ledger records, what a signature signs and what a person keeps.

`signer` is the fingerprint of the key that was to sign the release, or null: without it, a signature could be removed
and nobody would miss it. The signatures themselves (`signature.json`) are the one file that the manifest cannot name.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from math import isfinite, log10
from pathlib import Path
from typing import Any, NamedTuple, Never

from dpsr.quoting import printable

_MOST_ENTRIES = 1_000
"""A release has ten files; whoever puts in a million wants the list of them to take long."""

_FLAGS = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)


_AT_ONCE = 1 << 30
"""Bytes a system call is asked for."""


class UnreadableError(ValueError):
    """Something that is not a plain file, is missing or is too large; the message goes on from the file's name."""


def names_in(folder: Path) -> set[str]:
    """What a folder holds, hidden entries too; a few more than allowed if it holds too many to list."""
    names = set()
    with os.scandir(folder) as entries:
        for entry in entries:
            names.add(entry.name)
            if len(names) > _MOST_ENTRIES:
                break
    return names


def read_plain(file: Path, limit: int, *, stated: int | None = None) -> bytes:
    """All bytes of a plain file of at most `limit` bytes, read once; of exactly `stated` bytes, if that is given."""
    try:
        handle = os.open(file, _FLAGS)
    except FileNotFoundError:
        raise UnreadableError("is missing") from None
    except (OSError, ValueError) as error:
        elsewhere = isinstance(error, OSError) and error.errno == errno.ELOOP
        reason = error.strerror if isinstance(error, OSError) else "it has no name"
        raise UnreadableError("is not a plain file" if elsewhere else f"cannot be read: {reason}") from None
    try:
        facts = os.fstat(handle)
        if not stat.S_ISREG(facts.st_mode):
            raise UnreadableError("is not a plain file")
        if stated is not None and facts.st_size != stated:
            raise UnreadableError(f"has {facts.st_size:,} bytes, and {stated:,} are stated")
        if facts.st_size > limit:
            raise UnreadableError(f"has {facts.st_size:,} bytes, and at most {limit:,} are read")
        return _exactly(handle, facts.st_size)
    finally:
        os.close(handle)


def _exactly(handle: int, size: int) -> bytes:
    """`size` bytes, and no more: a file that grows or shrinks meanwhile is not the one that was looked at."""
    pieces, left = [], size
    try:
        while left and (piece := os.read(handle, min(left, _AT_ONCE))):
            pieces.append(piece)
            left -= len(piece)
        if left or os.read(handle, 1):
            raise UnreadableError("changed while it was read")
    except OSError as error:
        raise UnreadableError(f"cannot be read: {error.strerror}") from None
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


_KNOWN = {
    "$schema", "title", "type", "const", "enum", "required", "properties", "additionalProperties", "items", "minimum",
    "maximum", "pattern", "anyOf", "minItems", "maxItems", "maxLength", "maxProperties",
}  # fmt: skip
_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,), "array": (list,), "string": (str,), "number": (int, float), "integer": (int,),
    "boolean": (bool,), "null": (type(None),),
}  # fmt: skip

_NUMBERS: dict[str, set[type]] = {"number": {int, float}, "integer": {int}}
_OF_NUMBERS = {"type", "minimum", "maximum"}


class MalformedError(ValueError):
    """Text that is not strict JSON, or a file that has not the form it should have."""


def strict_json(text: bytes, bits: int = 64) -> Any:
    """The record `text` holds, if there is exactly one way to read it; whole numbers have at most so many bits."""
    try:
        record = json.loads(
            text.decode("utf-8"),
            parse_constant=_no_number,
            parse_float=_finite,
            parse_int=partial(_whole, bits=bits) if _has_long_numbers(text, bits) else None,
            object_pairs_hook=_distinct,
        )
        if b"\\u" in text:
            json.dumps(record, ensure_ascii=False).encode()  # half a character can be spelt, and nobody could print it
        return record
    except (ValueError, RecursionError) as error:
        raise MalformedError(f"not strict JSON: {printable(str(error), 80)}") from error


def check_format(record: Any, expected: str, name: str) -> None:
    """Refuse a file of another version with a sentence that says so; what has no format at all is another's finding."""
    found = record.get("format") if isinstance(record, dict) else None
    kind, _, version = expected.rpartition("-")
    if isinstance(found, str) and found != expected and re.fullmatch(rf"{kind}-[0-9]{{1,4}}", found):
        age = "an older" if int(found.rpartition("-")[2]) < int(version) else "a newer"
        raise MalformedError(
            f"{name} has the format {found} of {age} version of dpsr, this one reads {expected}: use the version that "
            "wrote the folder, or make the release again"
        )


def first_violation(value: Any, schema: dict[str, Any], where: str = "it") -> str | None:
    """The first way in which `value` breaks `schema`, in words, with the place; None if it does not."""
    return next(_violations(value, schema, where), None)


def _violations(value: Any, schema: dict[str, Any], where: str) -> Iterator[str]:
    if set(schema) - _KNOWN:
        raise NotImplementedError(f"schema words {sorted(set(schema) - _KNOWN)}")
    if "anyOf" in schema:
        yield from _no_option(value, schema["anyOf"], where)
    if "const" in schema and not _same(value, schema["const"]):
        yield f"{where} must be {schema['const']!r}"
    if "enum" in schema and not any(_same(value, one) for one in schema["enum"]):
        yield f"{where} must be one of {schema['enum']}"
    if "type" in schema and not any(_is(value, name) for name in _names(schema["type"])):
        yield f"{where} must be of type {' or '.join(_names(schema['type']))}"
        return
    if _is(value, "number"):
        yield from _range(value, schema, where)
    elif isinstance(value, str):
        yield from _text(value, schema, where)
    elif isinstance(value, list):
        yield from _elements(value, schema, where)
    elif isinstance(value, dict):
        yield from _members(value, schema, where)


def _no_option(value: Any, options: list[dict[str, Any]], where: str) -> Iterator[str]:
    """Nothing if one of the options fits; else what is wrong with the only one of the right type, if there is one."""
    wrong = [first_violation(value, option, where) for option in options]
    if all(wrong):
        near = [one for one, option in zip(wrong, options, strict=True) if _is_of(value, option)]
        yield near[0] if len(near) == 1 and near[0] else f"{where} is none of what it may be"


def _is_of(value: Any, option: dict[str, Any]) -> bool:
    return "type" in option and any(_is(value, name) for name in _names(option["type"]))


def _range(value: float, schema: dict[str, Any], where: str) -> Iterator[str]:
    if value < schema.get("minimum", value):
        yield f"{where} must be at least {schema['minimum']}"
    if value > schema.get("maximum", value):
        yield f"{where} must be at most {schema['maximum']}"


def _text(value: str, schema: dict[str, Any], where: str) -> Iterator[str]:
    if len(value) > schema.get("maxLength", len(value)):
        yield f"{where} must have at most {schema['maxLength']} characters"
    pattern = schema.get("pattern", "")
    ends = pattern.removesuffix("$") + r"\Z" if pattern.endswith("$") else pattern  # Python's $ allows a line break
    if not re.search(ends, value):
        yield f"{where} does not have the form {pattern}"


def _elements(value: list[Any], schema: dict[str, Any], where: str) -> Iterator[str]:
    least, most = schema.get("minItems", 0), schema.get("maxItems", len(value))
    if not least <= len(value) <= most:
        yield f"{where} must have {least} to {most} elements, it has {len(value)}"
    elif "items" in schema and not _are_numbers(value, schema["items"]):
        for i, one in enumerate(value):
            yield from _violations(one, schema["items"], f"{where}[{i}]")


def _are_numbers(values: list[Any], rule: dict[str, Any]) -> bool:
    """Whether all obey a rule about numbers alone, seen at a glance: tables and models are long lists of them.

    Where one does not, or is not a number to be compared, they are looked at one by one, which finds the words.
    """
    kinds = _NUMBERS.get(rule["type"]) if isinstance(rule.get("type"), str) else None
    if kinds is None or not rule.keys() <= _OF_NUMBERS or not values or not set(map(type, values)) <= kinds:
        return False
    low, high = min(values), max(values)
    return bool(rule.get("minimum", low) <= low and high <= rule.get("maximum", high))


def _members(record: dict[str, Any], schema: dict[str, Any], where: str) -> Iterator[str]:
    known, other = schema.get("properties", {}), schema.get("additionalProperties", True)
    if len(record) > schema.get("maxProperties", len(record)):
        yield f"{where} must have at most {schema['maxProperties']} fields"
        return
    for name in schema.get("required", ()):
        if name not in record:
            yield f"{where} lacks {name!r}"
    for name, one in record.items():
        rule = known.get(name, other)
        if rule is False:
            yield f"{where} has a field {name[:40]!a} nobody knows"
        elif rule is not True:
            yield from _violations(one, rule, f"{where}.{ascii(name[:40])[1:-1]}")


def _names(types: str | list[str]) -> list[str]:
    return [types] if isinstance(types, str) else types


def _is(value: Any, name: str) -> bool:
    """JSON's types: a boolean is no number. Stricter in one point: an integer is written without a point."""
    return name == "boolean" if isinstance(value, bool) else isinstance(value, _TYPES[name])


def _same(a: Any, b: Any) -> bool:
    return isinstance(a, bool) == isinstance(b, bool) and bool(a == b)


def _no_number(word: str) -> Never:
    raise MalformedError(f"{word} is not a number")


def _has_long_numbers(text: bytes, bits: int) -> bool:
    """Whether digits stand together that may be a whole number of more bits; tables are long, and hardly ever have."""
    return re.search(b"[0-9]{%d}" % (int(bits * log10(2)) + 1), text) is not None


def _whole(word: str, bits: int) -> int:
    if len(word) > bits or abs(number := int(word)) >= 1 << bits:  # a digit is more than a bit
        raise MalformedError(f"a whole number of {len(word)} digits is larger than {bits} bits")
    return number


def _finite(word: str) -> float:
    return float(word) if isfinite(float(word)) else _no_number(word)


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) < len(pairs):
        raise MalformedError("a key occurs twice")
    return record


MANIFEST, SIGNATURES = "manifest.json", "signature.json"
MANIFEST_FORMAT = "dpsr-manifest-2"

_HEX64 = "^[0-9a-f]{64}$"
_FORM: dict[str, Any] = {
    "type": "object",
    "required": ["files", "format", "seal", "signer"],
    "additionalProperties": False,
    "properties": {
        "format": {"const": MANIFEST_FORMAT},
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
        body = {"files": files, "format": MANIFEST_FORMAT, "signer": self.signer}
        return _canonical({**body, "seal": hashlib.sha256(_canonical(body)).hexdigest()}) + b"\n"

    @classmethod
    def from_bytes(cls, text: bytes) -> Manifest:
        """Read one of the right form; its seal is not looked at (`to_bytes` shows whether it fits)."""
        try:
            record = strict_json(text)
        except MalformedError as error:
            raise MalformedError(f"{MANIFEST} cannot be read ({error}), so no file can be compared with it") from error
        check_format(record, MANIFEST_FORMAT, MANIFEST)
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
