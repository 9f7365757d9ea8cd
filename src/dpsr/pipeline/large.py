"""A release from a file larger than memory: blocks in a working folder, memory bounded, resumable.

What a run needs beside its blocks grows with users and items, not with ratings:

    base + 1 KiB a user + 5 KiB an item,    base: the interpreter and its libraries

The rest of the allowance decides how large a block may be. An allowance too small for the first part is refused, with
the least that would do.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from dpsr.data.ingest import ingest
from dpsr.engine.block import BLOCK_RATINGS
from dpsr.errors import ParameterError
from dpsr.pipeline.default import DPSR
from dpsr.pipeline.progress import announce
from dpsr.privacy.journal import Journal
from dpsr.release import Contents
from dpsr.types import Census, Scale

_BASE, _USER, _ITEM, _RATING = 350 << 20, 1 << 10, 5 << 10, 400
_SMALLEST = 1 << 14
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def bytes_of(text: str) -> int:
    """1.5GB, 800MB, 1GiB: an amount of memory in bytes."""
    found = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([KMG]?)(?:i?B)?\s*", text, flags=re.IGNORECASE)
    if not found:
        raise ParameterError(f"an amount of memory looks like 800MB or 1.5GB, found {text!r}.")
    return int(float(found[1]) * _UNITS[found[2].upper()])


def block_size(census: Census, memory: int) -> int:
    """Ratings in a block, for an allowance of so many bytes."""
    fixed = _BASE + _USER * census.n_users + _ITEM * census.n_items
    size = min((memory - fixed) // _RATING, BLOCK_RATINGS)
    if size < _SMALLEST:
        least = (fixed + _RATING * _SMALLEST) >> 20
        raise ParameterError(
            f"{census.n_users:,} users and {census.n_items:,} items need at least {least:,} MB, --memory allows "
            f"{memory >> 20:,} MB. Allow more, or leave out users or items with hardly any ratings."
        )
    return int(size)


@contextmanager
def working_folder(chosen: Path | None, beside: Path) -> Iterator[Path]:
    """The folder the user chose, which is left to be resumed if the run dies, or one that is deleted in any case."""
    if chosen is None:
        beside.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix=f".{beside.name}.", suffix=".work", dir=beside.parent) as folder:
            yield Path(folder)
    else:
        chosen.mkdir(parents=True, exist_ok=True)
        yield chosen
        rmtree(chosen)  # the release is written: nothing is left to resume


def contents_from_disk(
    estimator: DPSR, path: Path, work: Path, *, scale: Scale, memory: int, **reading: Any
) -> Contents:
    """All stages on a file, in blocks; a run that was killed with the same `work` folder goes on."""
    announce("Sorting the ratings on disk")
    raw = ingest(
        path, work, scale=scale, memory=memory // 3, block_size=lambda census: block_size(census, memory), **reading
    )
    facts = {"method": type(estimator).__name__, "settings": estimator.get_params(), "scale": str(scale)}
    return estimator.contents(raw, Journal(work, claim_of(path, raw.table.census, facts)))


def claim_of(path: Path, census: Census, facts: dict[str, Any]) -> dict[str, Any]:
    """Which run a working folder belongs to: the input by size and age, its public shape, and the settings."""
    digest = hashlib.sha256()
    for column in (census.user_counts, census.item_counts):
        digest.update(np.ascontiguousarray(column).tobytes())
    stat = path.stat()
    return {"file": [stat.st_size, stat.st_mtime_ns], "counts": digest.hexdigest(), **facts}
