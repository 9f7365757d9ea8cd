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
from typing import Any, cast

import pyarrow as pa

from dpsr.data.fingerprint import fingerprint, fingerprint_key
from dpsr.data.ingest import ingest
from dpsr.data.ingest_interactions import ingest_interactions
from dpsr.data.spark.files import spark_table_of_file
from dpsr.data.spark.likes import spark_interactions_of_file
from dpsr.data.spark.session import spark_session
from dpsr.engine.raw import InteractionTable, RawTable
from dpsr.engine.spark.secrecy import check_encrypts
from dpsr.engine.spark.table import SparkTable
from dpsr.engine.table import BLOCK_RATINGS
from dpsr.engine.work_folder import chosen_folder, hidden_folder, one_inside_the_other
from dpsr.errors import ParameterError
from dpsr.pipeline.dpsr import DPSR
from dpsr.pipeline.estimator import announce
from dpsr.pipeline.paper import PaperDPSR
from dpsr.pipeline.people import declared_items
from dpsr.privacy.vault.journal import Journal
from dpsr.quoting import quoted
from dpsr.types import Census, Scale

_BASE, _USER, _ITEM, _RATING = 350 << 20, 1 << 10, 5 << 10, 400
_PAPER_RATING = 200
"""Bytes a rating of a block in the passes of the paper's stages, which keep less of it than the default ones."""

_MMAP_THRESHOLD = -3
"""glibc's name for the size from which an array gets pages of its own."""

SECOND_MOMENTS_BYTES = 400 << 20
"""Second moments of 2,000 cells: sums, products of a block, noise, and what reads them."""

_SMALLEST = 1 << 14
_LEAST_SORT = 100 << 20
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def bytes_of(text: str) -> int:
    """1.5GB, 800MB, 1GiB: an amount of memory in bytes."""
    found = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([KMG]?)(?:i?B)?\s*", text, flags=re.IGNORECASE)
    if not found:
        raise ParameterError(f"an amount of memory looks like 800MB or 1.5GB, found {text!r}.")
    return int(float(found[1]) * _UNITS[found[2].upper()])


def block_size(census: Census, memory: int, beside: int = 0) -> int:
    """Ratings in a block, for an allowance of so many bytes, some of which are needed for something `beside`."""
    fixed = _BASE + _USER * census.n_users + _ITEM * census.n_items + beside
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
    """The folder the user chose, which is left to be resumed if the run dies, or one that is emptied in any case."""
    if chosen is not None and one_inside_the_other(chosen, beside):
        raise ParameterError(
            f"--work {quoted(str(chosen))} and --out {quoted(str(beside))} are one folder, or one lies inside the "
            "other: the working folder is emptied once the release is written. Nothing was spent. Give two folders "
            "side by side."
        )
    with hidden_folder(beside) if chosen is None else chosen_folder(chosen) as folder:
        yield folder


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
        check_encrypts(session.sparkContext)
        raw = spark_table_of_file(session, path, scale=scale, **named)
        try:
            yield raw
        finally:
            cast(SparkTable, raw.table).close()


@contextmanager
def interactions_on_spark(path: Path, **named: str | None) -> Iterator[InteractionTable]:
    """The file's interactions as blocks of the running Spark session, or of a local one, which then ends here."""
    announce("Reading the interactions with Spark")
    with spark_session() as session:
        check_encrypts(session.sparkContext)
        raw = spark_interactions_of_file(session, path, **named)
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
    scale: Scale | None,
    memory: int,
    work: Path | None,
    **named: Any,
) -> Iterator[tuple[RawTable | InteractionTable, Journal | None]]:
    """The rows of a file on disk or on Spark, as long as they are needed, and the answers given before.

    Ratings have a scale; without one the rows are interactions.
    """
    if scale is None:
        with _interactions(engine, path, beside, estimator, memory, work, **named) as found:
            yield found
        return
    if isinstance(estimator, PaperDPSR):
        estimator.check_fits_a_table()
    if engine == "spark":
        with table_on_spark(path, scale=scale, **named) as raw:
            yield raw, None
        return
    with working_folder(work, beside) as folder:
        raw = table_on_disk(path, folder, scale=scale, memory=memory, **named)
        yield raw, None if work is None else journal_for(estimator, folder, raw, named)


@contextmanager
def _interactions(
    engine: str, path: Path, beside: Path, estimator: DPSR | PaperDPSR, memory: int, work: Path | None, **named: Any
) -> Iterator[tuple[InteractionTable, Journal | None]]:
    """The same for interactions."""
    if engine == "spark":
        with interactions_on_spark(path, **named) as raw:
            yield raw, None
        return
    with working_folder(work, beside) as folder:
        announce("Sorting the interactions on disk")
        give_back_freed_memory()
        sort, sizes = max(memory // 3, _LEAST_SORT), partial(likes_block_size, memory=memory)
        raw = ingest_interactions(path, folder, memory=sort, block_size=sizes, **named)
        yield raw, None if work is None else journal_for(estimator, folder, raw, named)


def likes_block_size(census: Census, memory: int) -> int:
    """Interactions in a block, beside the products of the frequent cells."""
    return block_size(census, memory, SECOND_MOMENTS_BYTES)


def journal_for(
    estimator: DPSR | PaperDPSR, work: Path, raw: RawTable | InteractionTable, reading: dict[str, Any]
) -> Journal:
    """The answers already given in a working folder, if it belongs to this run: same ratings, blocks, settings."""
    blocks = [[block.first, block.start] for block in raw.table.scan()]
    settings = estimator.get_params()
    declared = declared_items(settings.get("items"))
    if declared is not None:  # by its digest
        settings["items"] = hashlib.sha256(repr(declared.to_pylist()).encode()).hexdigest()
    scale = str(raw.scale) if isinstance(raw, RawTable) else None
    facts = {"settings": settings, "scale": scale, "reading": reading, "blocks": blocks}
    return Journal(work, {"ratings": fingerprint(raw, fingerprint_key(work)), **facts})
