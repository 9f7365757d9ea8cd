"""The folder in which blocks of raw ratings are kept meanwhile: for its owner alone, locked, and emptied by name.

    chosen by a person            emptied when the release is there; stays if the run dies with a charge or answers;
                                  without the file `run.json`, which goes first, it is left of a clearing and emptied
    hidden, beside the release    .NAME.XXXXXXXXXXXX.work: emptied in any case; of a killed run, by the next one

The folder has mode 0700 and its files 0600. A lock on the file `dpsr-work` says that its run lives: nobody else uses
the folder then, and nobody takes it for a leftover. The lock goes with the process, however that ends. On a file system
without locks there is no such protection, and hidden folders of killed runs stay.

Only files that have one of our names are ever deleted, and a folder only once it is empty.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from dpsr.errors import DataError, ParameterError
from dpsr.quoting import quoted

MARK, STORE, SPILLED, KEY = "dpsr-work", "ingest.duckdb", "ingest.duckdb.sorting", "fingerprint.key"
PIPED = "standard input"
"""What came through a pipe, under the name that messages have for it."""

RUN, CHARGE = "run.json", "charge.json"
"""Which run's answers a chosen folder holds, without which nobody goes on from them; which charge pays for them."""

_MADE_HERE = b"made by dpsr, which removes it\n"

_COLUMN = re.compile(r"[a-z_]+")
_OURS = re.compile(
    rf"{_COLUMN.pattern}-\d{{5}}\.block\.(parquet|partial)|ingest\.duckdb(\.wal|\.sorting)?|fingerprint\.key|"
    r"(run|charge)\.(json|partial)|answer-\d{3}\.(json|partial)|dpsr-work|standard input"
)
_SPILLED_FILE = re.compile(r"duckdb_temp_.*")
_HIDDEN = re.compile(r"\..+\.[0-9a-f]{12}\.work")


def one_inside_the_other(one: Path, other: Path) -> bool:
    """Whether two places, which need not exist, are the same or one holds the other, links followed."""
    a, b = one.resolve(), other.resolve()
    return _holds(a, b) or _holds(b, a)


def _holds(outer: Path, inner: Path) -> bool:
    if outer == inner or outer in inner.parents:
        return True
    places = [place for place in (inner, *inner.parents) if place.exists()]
    return outer.exists() and any(place.samefile(outer) for place in places)  # spelt otherwise, mounted twice


def block_file(folder: Path, column: str, number: int) -> Path:
    """Where a block's column is kept: under a name that whoever clears the folder knows for ours."""
    if not _COLUMN.fullmatch(column):
        raise ValueError(f"a column on disk needs a name of small letters and _, and this one is {column!r}")
    return folder / f"{column}-{number:05d}.block.parquet"


@contextmanager
def chosen_folder(path: Path) -> Iterator[Path]:
    """A folder a person chose: it must not exist, be empty, or be that of a run before."""
    folder = path.resolve()  # a link stays where it is, and what it leads to is used
    _refuse_other_files(folder, path)
    try:
        made = not folder.exists()
        folder.parent.mkdir(parents=True, exist_ok=True)
        if made:
            folder.mkdir(mode=0o700)
        folder.chmod(0o700)
        with _owned(folder, path, made=made):
            if not (folder / RUN).exists():
                _delete_ours(folder)
            yield from _until_released(folder)
    except OSError as error:
        raise DataError(
            f"the working folder cannot be used: {error.strerror or error}. Nothing was released. Give another one "
            "(--work FOLDER)."
        ) from error


def _until_released(folder: Path) -> Iterator[Path]:
    """The folder, then nothing of ours in it; but what was paid for or answered stays, with all that is needed."""
    try:
        yield folder
    except BaseException:
        if not (folder / CHARGE).exists() and not any(folder.glob("answer-*.json")):
            clear(folder)
        raise
    left = clear(folder)
    if left:
        raise DataError(
            f"the release is written and stays, but raw ratings could not be deleted from the working folder "
            f"{quoted(str(folder))}: {', '.join(left[:3])}. Delete it by hand."
        )


@contextmanager
def hidden_folder(beside: Path) -> Iterator[Path]:
    """A folder beside a release that is to come; it is gone in the end, and so are those of runs that were killed."""
    missing = [parent for parent in (beside.parent, *beside.parent.parents) if not parent.exists()]
    try:
        beside.parent.mkdir(parents=True, exist_ok=True)
        with passing_folder(beside.parent, beside.name) as folder:
            yield folder
    except OSError as error:
        raise DataError(
            f"no working folder could be made beside the release: {error.strerror or error}. Nothing was released. "
            "Give one with --work FOLDER."
        ) from error
    finally:
        with suppress(OSError):
            for parent in missing:  # made for a release that did not come
                parent.rmdir()


@contextmanager
def passing_folder(parent: Path, name: str) -> Iterator[Path]:
    """A hidden folder in `parent` that is gone in the end; so are those there of runs that were killed."""
    clear_dead_runs(parent)
    folder = parent / f".{name}.{secrets.token_hex(6)}.work"
    try:
        folder.mkdir(mode=0o700)
        with _owned(folder, folder, made=True):
            try:
                yield folder
            finally:
                clear(folder)
    finally:
        clear(folder)  # once more: Ctrl-C may have stopped the first


def clear_dead_runs(parent: Path) -> None:
    """Empty the hidden working folders in `parent` whose runs were killed: those that nobody holds the lock of."""
    with suppress(OSError):
        for folder in [place for place in parent.iterdir() if _HIDDEN.fullmatch(place.name)]:
            with suppress(OSError):
                facts = folder.lstat()
                if not stat.S_ISDIR(facts.st_mode) or facts.st_uid != os.geteuid():
                    continue
                if (folder / MARK).exists():
                    handle = lock(folder / MARK)  # fails while its owner lives
                    clear(folder)
                    os.close(handle)
                else:
                    folder.rmdir()  # killed before it was marked, and then it is empty


def left_behind(path: Path, *, released: bool = False) -> str:
    """What a killed run left in a folder a person chose, in a sentence; a clearing that was killed is ended here.

    So is one that did not begin, where the release that the folder was for is known to be in its place.
    """
    folder = path.resolve()
    try:
        handle = lock(folder / MARK)  # fails while its run lives, and where there was none
    except OSError:
        return ""
    try:
        if released or not (folder / RUN).exists():
            clear(folder)
            return ""
    finally:
        os.close(handle)
    return (
        f"The working folder {quoted(str(path))} holds raw ratings of a run that was killed: give another --out to go "
        "on from it, or delete it."
    )


def clear(folder: Path) -> list[str]:
    """Delete what is ours, the mark last, and the folder itself if dpsr made it; the names that could not be."""
    if not folder.is_dir():
        return []
    left = _delete_ours(folder)
    if not left:
        with suppress(OSError):
            made = (folder / MARK).read_bytes() == _MADE_HERE
            (folder / MARK).unlink()
            if made:
                folder.rmdir()
    return left


def _delete_ours(folder: Path) -> list[str]:
    """Delete what is ours but the mark: first the name of the run, so that nobody goes on with half of its answers."""
    left = []
    ours = [place for place in folder.iterdir() if _OURS.fullmatch(place.name) and place.name != MARK]
    for entry in sorted(ours, key=lambda place: place.name != RUN):
        try:
            _delete(entry)
        except OSError:
            left.append(entry.name)
    return left


def clear_store(folder: Path) -> None:
    """The database of a sort, its log, and what it spilled."""
    for name in (STORE, f"{STORE}.wal", SPILLED):
        with suppress(OSError):
            _delete(folder / name)


def create_private(path: Path) -> Path:
    """An empty file that its owner alone may read, to be written to by its name."""
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600))
    return path


@contextmanager
def private_files() -> Iterator[None]:
    """Whatever is created meanwhile, its owner alone may read."""
    before = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(before)


def lock(path: Path) -> int:
    """An open file or folder that is locked until it is closed; BlockingIOError while another holds it."""
    import fcntl  # here, so that releases can be read where this does not exist

    handle = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BaseException:
        os.close(handle)
        raise
    return handle


def sync(entry: Path) -> None:
    """Force one file or folder to disk."""
    handle = os.open(entry, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def _owned(folder: Path, named: Path, *, made: bool) -> Iterator[None]:
    """Mark and lock a folder for as long as this process lives."""
    mark, handle = folder / MARK, -1
    if not mark.exists():
        create_private(mark).write_bytes(_MADE_HERE if made else b"dpsr\n")
    try:
        handle = lock(mark)
    except BlockingIOError:
        raise ParameterError(
            f"another run is using the working folder {quoted(str(named))}. Wait until it ends, or give another one "
            "with --work."
        ) from None
    except OSError as error:
        if error.errno == errno.ENOENT:
            raise
    try:
        if not mark.exists():  # another run took it for a leftover before the lock was on it
            raise OSError(errno.EBUSY, "another run is using the same folder")
        yield
    finally:
        if handle >= 0:
            os.close(handle)


def _refuse_other_files(folder: Path, named: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise ParameterError(f"--work {quoted(str(named))} is a file. Give a folder that is empty or does not exist.")
    inside = {place.name for place in folder.iterdir()} if folder.exists() else set()
    if inside and (MARK not in inside or not all(_OURS.fullmatch(name) for name in inside)):
        raise ParameterError(
            f"--work {quoted(str(named))} holds files that are not from dpsr. Give an empty folder, or one that does "
            "not exist."
        )


def _delete(entry: Path) -> None:
    """A file, or the folder a sort spilled to, with the files that have a sort's names."""
    if entry.name == SPILLED and entry.is_dir() and not entry.is_symlink():
        for file in [place for place in entry.iterdir() if _SPILLED_FILE.fullmatch(place.name)]:
            file.unlink()
        entry.rmdir()
    else:
        entry.unlink(missing_ok=True)
