"""A release from a file larger than memory: blocks in a working folder, memory bounded, resumable.

What a run needs beside its blocks grows with users and items, not with ratings:

    base + 1 KiB a user + 5 KiB an item,    base: the interpreter and its libraries

The rest of the allowance decides how large a block may be. An allowance too small for the first part is refused, with
the least that would do. What blocks leave, and what the paper's stages do not need of their share, is room for the
similarities of its Stage 2: the more there is, the fewer passes they take.
"""

from __future__ import annotations

import ctypes
import hashlib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory
from typing import Any, cast

import numpy as np
import pyarrow as pa

from dpsr.data.ingest import ingest
from dpsr.data.spark.files import spark_table_of_file
from dpsr.data.spark.session import spark_session
from dpsr.engine.raw import RawTable
from dpsr.engine.spark.table import SparkTable
from dpsr.engine.table import BLOCK_RATINGS
from dpsr.errors import DataError, ParameterError
from dpsr.pipeline.estimator import announce
from dpsr.pipeline.paper import PaperDPSR
from dpsr.pipeline.value import DPSR
from dpsr.privacy.vault.journal import Journal
from dpsr.quoting import quoted
from dpsr.types import Census, Scale

_BASE, _USER, _ITEM, _RATING = 350 << 20, 1 << 10, 5 << 10, 400
_PAPER_RATING = 200
"""Bytes a rating of a block in the passes of the paper's stages, which keep less of it than the default ones."""

_MMAP_THRESHOLD = -3
"""glibc's name for the size from which an array gets pages of its own."""

_SMALLEST = 1 << 14
_LEAST_SORT = 100 << 20
_OURS = "dpsr-work"
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


def bytes_left(census: Census, memory: int) -> int:
    """Bytes that an allowance leaves for item-side sums of the paper's stages."""
    fixed = _BASE + _USER * census.n_users + _ITEM * census.n_items
    return memory - fixed - _PAPER_RATING * block_size(census, memory)


def give_back_freed_memory() -> None:
    """From here on memory that is freed goes back to the system at once, which costs some time."""
    pa.set_memory_pool(pa.system_memory_pool())
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # the C library of Linux; others do so, or cannot
    if mallopt is not None:
        mallopt(_MMAP_THRESHOLD, 1 << 20)


@contextmanager
def working_folder(chosen: Path | None, beside: Path) -> Iterator[Path]:
    """The folder the user chose, which is left to be resumed if the run dies, or one that is deleted in any case."""
    if chosen is None:
        beside.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix=f".{beside.name}.", suffix=".work", dir=beside.parent) as folder:
            yield Path(folder)
    else:
        _claim(chosen)
        yield chosen
        rmtree(chosen)  # the release is written: nothing is left to resume


def _claim(folder: Path) -> None:
    """A folder of our own: it is deleted in the end, so it must be empty, or the one of a run before."""
    mark = folder / _OURS
    if folder.is_dir() and any(folder.iterdir()) and not mark.exists():
        raise ParameterError(
            f"--work {quoted(str(folder))} holds files that are not from dpsr, and it is deleted once the release is "
            "written. Give an empty folder, or one that does not exist."
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        mark.touch()
    except OSError as error:
        raise DataError(
            f"the working folder cannot be made: {error.strerror}. Give another one (--work FOLDER)."
        ) from error


def table_on_disk(path: Path, work: Path, *, scale: Scale, memory: int, **reading: Any) -> RawTable:
    """The file's ratings as blocks in the working folder, whose size the memory allows."""
    announce("Sorting the ratings on disk")
    give_back_freed_memory()
    sizes = partial(block_size, memory=memory)
    sort = max(memory // 3, _LEAST_SORT)  # an allowance below that is refused as soon as the ids are counted
    raw = ingest(path, work, scale=scale, memory=sort, block_size=sizes, **reading)
    raw.table.sum_bytes = bytes_left(raw.table.census, memory)
    return raw


@contextmanager
def table_on_spark(path: Path, *, scale: Scale, duplicates: str = "error", **named: str | None) -> Iterator[RawTable]:
    """The file's ratings as blocks of the running Spark session, or of a local one, which then ends here."""
    if duplicates != "error":
        raise ParameterError(
            "Spark knows no first and last of several rows. Use --engine disk for --duplicates first or last, or keep "
            "one rating of each pair beforehand."
        )
    announce("Reading the ratings with Spark")
    with spark_session() as session:
        raw = spark_table_of_file(session, path, scale=scale, **named)
        try:
            yield raw
        finally:
            cast(SparkTable, raw.table).close()


@contextmanager
def large_table(
    engine: str,
    path: Path,
    beside: Path,
    estimator: DPSR | PaperDPSR,
    *,
    scale: Scale,
    memory: int,
    work: Path | None,
    **named: Any,
) -> Iterator[tuple[RawTable, Journal | None]]:
    """The ratings of a file on disk or on Spark, as long as they are needed, and the answers given before."""
    if isinstance(estimator, PaperDPSR):
        estimator.check_fits_a_table()
    if engine == "spark":
        with table_on_spark(path, scale=scale, **named) as raw:
            yield raw, None
        return
    with working_folder(work, beside) as folder:
        raw = table_on_disk(path, folder, scale=scale, memory=memory, **named)
        yield raw, None if work is None else journal_for(estimator, path, folder, raw, named)


def journal_for(estimator: DPSR | PaperDPSR, path: Path, work: Path, raw: RawTable, reading: dict[str, Any]) -> Journal:
    """The answers already given in a working folder, if it belongs to this run, cut into the same blocks."""
    blocks = [[block.first, block.start] for block in raw.table.scan()]
    facts = {"settings": estimator.get_params(), "scale": str(raw.scale), "reading": reading, "blocks": blocks}
    return Journal(work, claim_of(path, raw.table.census, facts))


def claim_of(path: Path, census: Census, facts: dict[str, Any]) -> dict[str, Any]:
    """Which run a working folder belongs to: the input by size and age, its public shape, and the settings."""
    digest = hashlib.sha256()
    for column in (census.user_counts, census.item_counts):
        digest.update(np.ascontiguousarray(column).tobytes())
    stat = path.stat()
    return {"file": [stat.st_size, stat.st_mtime_ns], "counts": digest.hexdigest(), **facts}
