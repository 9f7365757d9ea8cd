"""What holds of a ledger as it is now, and of it compared with what was noted or handed out before.

Digests without a key show accidents and careless edits. Whoever may write to the ledger's storage can rewrite a history
and compute every digest anew, or put an older copy in its place; that is seen only by comparison with what is kept
elsewhere. Two things are: heads (the digest of the last entry) that somebody noted, and release folders, each of which
holds the digest of the charge that paid for it. Both must still occur.
"""

from __future__ import annotations

import os
import re
import stat
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from dpsr.certify.certificate import ChargeReference
from dpsr.certify.check import Check
from dpsr.certify.folder import MalformedError, strict_json
from dpsr.certify.normal_price import VARIANCE_BITS
from dpsr.errors import LedgerError
from dpsr.privacy.ledger.event import FORMAT, Event
from dpsr.privacy.ledger.ledger import Ledger
from dpsr.privacy.ledger.log import Log
from dpsr.privacy.ledger.names import find
from dpsr.privacy.ledger.schema import missing_guards
from dpsr.quoting import file_name, quoted

_MOST_BYTES = 1 << 26
_GONE = "the history was rewritten, cut off or replaced after that"


def examine(ledger: Ledger, heads: Sequence[tuple[str, str]] = (), folders: Sequence[Path] = ()) -> list[Check]:
    """Every history and the database's own rules, and whether noted `heads` (data set, digest) and folders fit."""
    checks: list[Check] = []
    found: dict[str, list[Event]] = {}
    with ledger.snapshot() as logs:
        for log in logs:
            try:
                found[log.dataset] = log.read().events
                checks.append(Check(True, _sound(found[log.dataset])))
            except LedgerError as error:
                checks.append(Check(False, str(error).removesuffix(".")))
        checks += _guards(logs)
    checks += _ids(found)
    checks += [_head(dataset, digest, found) for dataset, digest in heads]
    return checks + [_folder(folder, found) for folder in folders]


def head_of(text: str) -> tuple[str, str]:
    """A data set and the digest of its last entry, as `dpsr ledger show` prints them."""
    dataset, _, digest = text.rpartition("=")
    if not dataset or not re.fullmatch("[0-9a-f]{64}", digest, re.ASCII):
        raise LedgerError(
            f"a head is written DATASET=DIGEST with 64 hexadecimal digits, found {quoted(text)}. Copy it from what "
            "dpsr ledger show printed."
        )
    return dataset, digest


def _sound(events: list[Event]) -> str:
    count = f"{len(events)} {'entry follows' if len(events) == 1 else 'entries follow'}"
    return f"{quoted(events[0].dataset)}: {count} from the rules and from one another; the head is {events[-1].digest}"


def _guards(logs: list[Log]) -> Iterator[Check]:
    """Without a data set there is nothing to guard."""
    if not logs:
        return
    if logs[0].format < FORMAT:
        yield Check(False, "the ledger is of format 1, which the database guards less: run dpsr ledger migrate")
        return
    missing = missing_guards(logs[0].session)
    if missing:
        names = ", ".join(quoted(name) for name in missing[:5])
        yield Check(False, f"constraints or triggers are not as dpsr makes them ({names}): run dpsr ledger migrate")
    else:
        yield Check(True, "the database has the constraints and triggers that dpsr gave it")


def _ids(found: dict[str, list[Event]]) -> Iterator[Check]:
    ids = Counter(event.charge for events in found.values() for event in events if event.kind == "charge")
    for one, times in ids.items():
        if times > 1:
            yield Check(False, f"the charge {quoted(one)} occurs in {times} data sets")


def _head(dataset: str, digest: str, found: dict[str, list[Event]]) -> Check:
    name = find(dataset, found)
    events = [] if name is None else found[name]
    for event in events:
        if event.digest == digest:
            return Check(True, f"{quoted(dataset)}: the head that was noted is entry {event.number} of {len(events)}")
    return Check(False, f"{quoted(dataset)}: the head that was noted does not occur: {_GONE}")


def _folder(folder: Path, found: dict[str, list[Event]]) -> Check:
    name = file_name(folder)
    try:
        reference = _reference(folder)
    except (OSError, MalformedError, LedgerError) as error:
        return Check(False, f"{name}: its certificate cannot be read ({type(error).__name__})")
    if reference is None:
        return Check(False, f"{name}: its certificate names no charge")
    for event in (event for events in found.values() for event in events if event.kind == "charge"):
        if (event.charge, event.digest) == reference:
            return Check(True, f"{name}: its charge is entry {event.number} of {quoted(event.dataset)}")
    return Check(False, f"{name}: the charge that its certificate names does not occur: {_GONE}, or was kept elsewhere")


def _reference(folder: Path) -> ChargeReference | None:
    """What a folder's certificate says of its charge; nothing else of it is believed or checked here."""
    record = strict_json(_plain_file(folder / "certificate.json"), VARIANCE_BITS)
    charge = record.get("charge") if isinstance(record, dict) else None
    if not isinstance(charge, dict) or not all(isinstance(charge.get(name), str) for name in ChargeReference._fields):
        return None
    return ChargeReference(charge["id"], charge["digest"])


def _plain_file(path: Path) -> bytes:
    """The bytes of a file that is neither a link, a device nor without end."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with open(descriptor, "rb") as stream:
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode) or facts.st_size > _MOST_BYTES:
            raise LedgerError("not a plain file")
        return stream.read(_MOST_BYTES)
