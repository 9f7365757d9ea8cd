"""A table in a file of its own, such as everybody's lists: whole or not at all.

It is written piece by piece beside its place, forced to disk and renamed into it when the last piece is written. What a
killed run left of it may be people's own lists: the next one that writes the same file removes it, unless its owner
still holds the lock on it. The extension decides the format: `.parquet`, or `.csv` for people.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from glob import escape
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from dpsr.engine.work_folder import lock
from dpsr.errors import ReleaseError

FORMATS = (".parquet", ".csv")


@contextmanager
def atomic_table(path: Path, schema: pa.Schema, *, overwrite: bool = False) -> Iterator[Any]:
    """A writer with `write_table`; the file is there once the block ends well, and nothing is left otherwise."""
    check_file(path, overwrite=overwrite)
    _clear_leftovers(path)
    draft, held = path.parent / f".{path.name}.{secrets.token_hex(6)}.partial", -1
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            with suppress(OSError, ImportError):  # without locks (some network disks, Windows) nobody removes it
                held = lock(draft)
            writer = pq.ParquetWriter if path.suffix.lower() == ".parquet" else pacsv.CSVWriter
            with writer(file, schema) as rows:
                yield rows
            file.flush()
            os.fsync(file.fileno())
        draft.chmod(0o644)
        os.replace(draft, path)
    except OSError as error:
        raise ReleaseError(
            f"{path.name} could not be written: {error.strerror or error}. Nothing was left behind. "
            "Choose a place with enough room that you may write to."
        ) from error
    finally:
        with suppress(OSError):
            draft.unlink()
        with suppress(OSError):
            os.close(held)


def _clear_leftovers(path: Path) -> None:
    """Remove drafts of killed runs."""
    for draft in sorted(path.parent.glob(f".{escape(path.name)}.{'[0-9a-f]' * 12}.partial")):
        if draft.is_file() and not draft.is_symlink():
            with suppress(OSError, ImportError):
                handle = lock(draft)  # fails while its owner lives
                draft.unlink()
                os.close(handle)


def check_file(path: Path, *, overwrite: bool = False) -> None:
    """Refuse early, before anything is computed."""
    if path.suffix.lower() not in FORMATS:
        raise ReleaseError(
            f"{path.name}: the extension says what to write, {' or '.join(FORMATS)}. Choose one of them."
        )
    if path.is_dir():
        raise ReleaseError(f"{path.name} is a folder. Name a file in it, for example {path.name}/table.parquet.")
    if path.exists() and not overwrite:
        raise ReleaseError(
            f"{path.name} exists already. Choose another name, or allow it with overwrite=True (or --force)."
        )
