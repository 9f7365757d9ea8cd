"""Which files a release folder holds, by the unit it protects, and how much of each is read.

A folder is what its unit says and nothing else: a file of another name is refused, named in the manifest or not. Sizes
are bounded before a byte is read, and what the tables would take unpacked is held against the memory of the machine.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from dpsr.certify import Certificate
from dpsr.certify.check import CERTIFICATE
from dpsr.certify.check import MOST_BYTES as MOST_CERTIFICATE_BYTES
from dpsr.certify.folder import MANIFEST, SIGNATURES
from dpsr.certify.signature import MOST_BYTES as MOST_SIGNATURE_BYTES

MODEL, NOT_PRIVATE, CARD, BUDGET = "model.json", "NOT_PRIVATE.txt", "card.html", "budget.json"
RATINGS, USERS, ITEMS, CELLS = "ratings.parquet", "users.parquet", "items.parquet", "cells.parquet"
TASTE = "taste.parquet"
SYNTHETIC = "synthetic.parquet"

MOST_BYTES = {
    MANIFEST: 1 << 16,
    CERTIFICATE: MOST_CERTIFICATE_BYTES,
    MODEL: 1 << 25,
    NOT_PRIVATE: 1 << 16,
    CARD: 1 << 24,
    BUDGET: 1 << 12,
    SIGNATURES: MOST_SIGNATURE_BYTES,
    RATINGS: 1 << 33,
    USERS: 1 << 33,
    ITEMS: 1 << 33,
    CELLS: 1 << 33,
    TASTE: 1 << 33,
    SYNTHETIC: 1 << 33,
}
"""Of each file, at most. Eight gigabytes hold some half a billion ratings, more than are loaded into memory."""


@dataclass(frozen=True)
class Layout:
    """The files of a folder: those that are always there, and those that may be."""

    required: frozenset[str]
    optional: frozenset[str]

    @property
    def allowed(self) -> frozenset[str]:
        return self.required | self.optional


_PAGES = frozenset({CARD, BUDGET, NOT_PRIVATE})

_OF_PEOPLE = Layout(frozenset({CERTIFICATE, MODEL, CELLS, ITEMS}), _PAGES | {SYNTHETIC})

LIKES_LAYOUT = Layout(_OF_PEOPLE.required | {TASTE}, _PAGES | {SYNTHETIC})
"""Where nobody rates."""

LAYOUTS = {
    "value": Layout(frozenset({CERTIFICATE, MODEL, RATINGS, USERS, ITEMS}), _PAGES),
    "rating": _OF_PEOPLE,
    "user": _OF_PEOPLE,
}
"""By unit of protection. Everything but the manifest and the signatures, which lie outside it."""

KNOWN = frozenset({MANIFEST, SIGNATURES}).union(*(layout.allowed for layout in (*LAYOUTS.values(), LIKES_LAYOUT)))


def warning_text(certificate: Certificate) -> str:
    """What `NOT_PRIVATE.txt` says, word for word."""
    reasons = "\n".join(f"* {reason}" for reason in certificate.reasons)
    return f"NOT PRIVATE. Do not share this folder.\n{reasons}\n"


def memory_of_machine() -> int:
    """Bytes of memory there are: those of the machine, or of the container this runs in."""
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 1 << 40
    for file in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            pages = min(pages, int(Path(file).read_text()))
        except (OSError, ValueError):  # no such container, or no limit
            continue
    return pages
