"""Folders and files that are there whole or not at all, also on kill -9, a full disk or lost power.

    .NAME.XXXXXXXXXXXX.partial/NAME     a release folder is written here, beside its place, so that a rename is enough
    .NAME.XXXXXXXXXXXX.partial          a file of its own, such as a key or everybody's lists, is written here
    NAME                                renamed to, after every byte is on disk

A rename is atomic. Replacing a folder exchanges the two in one step where the system can (Linux); elsewhere the old one
steps aside for a moment, and whoever finds it there without its successor puts it back. A killed run leaves its hidden
draft behind, which may hold people's own lists: the next run with the same target removes it, unless its owner still
holds the lock on it. A finished one that was paid for and recorded it puts into its place.
"""

from __future__ import annotations

import ctypes
import errno
import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from dpsr.certify.folder import MANIFEST
from dpsr.engine.work_folder import lock, sync
from dpsr.errors import ReleaseError, UnansweredError
from dpsr.quoting import quoted
from dpsr.release.folder.layout import KNOWN

_AT_FDCWD, _EXCHANGE = -100, 2
_ASIDE = "replaced"


def check_target(path: Path, *, overwrite: bool = False) -> None:
    """Refuse early, before anything is computed or spent."""
    if path.name in ("", "..") or not path.name.isprintable():
        raise ReleaseError(f"a release folder needs a printable name, found {str(path)!r}. Choose another.")
    try:
        taken = path.is_symlink() or path.exists()
        inside = set(os.listdir(path)) if path.is_dir() else set()
        _refuse_unwritable(next(parent for parent in path.absolute().parents if parent.exists()))
    except OSError as error:
        raise _cannot_write(path, error) from error
    if taken and (path.is_symlink() or not path.is_dir()):
        raise ReleaseError(f"{path.name} is a file or a link; a release is a folder. Choose another name.")
    if inside and not overwrite:
        raise ReleaseError(
            f"the folder {path.name} exists already. Choose another name, or allow it with overwrite=True (or --force)."
        )
    if inside and MANIFEST not in inside:
        raise ReleaseError(f"the folder {path.name} is not a release, so it is not replaced. Choose another name.")
    if others := sorted(inside - KNOWN):
        raise ReleaseError(
            f"the folder {path.name} holds more than a release, and {quoted(others[0])} would be deleted with it. Move "
            "that elsewhere, or choose another name."
        )


def _refuse_unwritable(folder: Path) -> None:
    if not folder.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, f"{folder.name} is not a folder")
    if not os.access(folder, os.W_OK | os.X_OK, effective_ids=os.access in os.supports_effective_ids):
        raise PermissionError(errno.EACCES, f"nothing may be written in {folder.name or folder}")


def check_disk_space(path: Path, n_bytes: int) -> None:
    """Refuse if the disk under `path` has not `n_bytes` left, by its own account."""
    folder = next(parent for parent in path.absolute().parents if parent.exists())
    free = shutil.disk_usage(folder).free
    if free < n_bytes:
        raise ReleaseError(
            f"the release needs about {n_bytes / 1e6:,.1f} MB and there are {free / 1e6:,.1f} MB free where "
            f"{path.name} is to be written. Make room, or choose another disk."
        )


@contextmanager
def atomic_folder(path: Path, *, overwrite: bool = False) -> Iterator[Path]:
    """A path to write a folder at; when the block ends well it is renamed to `path`, else nothing is left.

    The block forces what it writes to disk (`sync_tree`); the rename and its forcing happen here. What a ledger may
    have recorded without saying so stays a draft: the next run finds out whether it is owed (`finish_killed`).
    """
    clear_leftovers(path)
    check_target(path, overwrite=overwrite)
    missing: list[Path] = []
    root = path.parent / f".{path.name}.{secrets.token_hex(6)}.partial"  # named before it exists: cleaned in any case
    handle, undecided = -1, False
    try:
        try:
            missing += [parent for parent in (path.parent, *path.parent.parents) if not parent.exists()]
            path.parent.mkdir(parents=True, exist_ok=True)
            root.mkdir(mode=0o700)
            handle = _own(root)
            _refuse_second(path, root)
            check_target(path, overwrite=overwrite)  # once more: another run may have ended just now
            yield root / path.name
            _swap_in(root / path.name, path, overwrite=overwrite)
            with suppress(OSError):  # it is there; some network disks cannot force a folder
                for parent in (path, *missing):
                    sync(parent.parent)
        except UnansweredError:
            undecided = True
            raise
        finally:
            if not undecided:
                _discard(root, path, missing)
    except OSError as error:
        raise _cannot_write(path, error) from error
    finally:
        if not undecided:
            _discard(root, path, missing)  # once more: Ctrl-C may have stopped the first
        with suppress(OSError):
            os.close(handle)


def _drafts(path: Path) -> list[Path]:
    """The hidden folders beside `path` in which it is written, or was."""
    found = sorted(path.parent.glob(f".{_escaped(path.name)}.{'[0-9a-f]' * 12}.partial"))
    return [root for root in found if root.is_dir() and not root.is_symlink()]


def _refuse_second(path: Path, mine: Path) -> None:
    """Refuse to write what a living run is writing: one of the two would have been paid for and thrown away."""
    for root in _drafts(path):
        try:
            if root != mine:
                os.close(lock(root))
        except BlockingIOError:
            raise ReleaseError(
                f"another run is writing the release {path.name}. Wait until it ends, or choose another name."
            ) from None
        except OSError:  # it has ended, or there are no locks
            continue


def clear_leftovers(path: Path) -> None:
    """Remove drafts of killed runs, and put back a release that one of them had moved aside."""
    for root in _drafts(path):
        with suppress(OSError):
            handle = lock(root)  # fails while its owner lives
            if (root / _ASIDE).is_dir() and not path.exists():
                os.rename(root / _ASIDE, path)
            shutil.rmtree(root, ignore_errors=True)
            os.close(handle)


def finish_killed(path: Path, owed: Callable[[Path], bool], *, overwrite: bool) -> bool:
    """Put the finished draft of a killed run into its place if it is `owed` to somebody; whether there was one.

    A draft beside a release may be the older one, which was just replaced: `owed` says which is which.
    """
    for root in _drafts(path):
        with suppress(OSError):
            handle, draft = lock(root), root / path.name  # fails while its owner lives
            try:
                if draft.is_dir() and not draft.is_symlink() and owed(draft):
                    _swap_in(draft, path, overwrite=overwrite)
                    with suppress(OSError):  # it is there; some network disks cannot force a folder
                        sync(path.parent)
                    shutil.rmtree(root, ignore_errors=True)
                    return True
            finally:
                os.close(handle)
    return False


def sync_tree(folder: Path) -> None:
    """Force a folder to disk: its files first, then the list of them."""
    for entry in [*sorted(folder.iterdir()), folder]:
        sync(entry)


def _swap_in(draft: Path, path: Path, *, overwrite: bool) -> None:
    """Rename the finished draft into place; an old release changes places with it, if it may."""
    try:
        os.rename(draft, path)  # refused by the system if a folder with files is there
    except OSError as error:
        if not overwrite or error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
        if not _exchange(draft, path):
            os.rename(path, draft.parent / _ASIDE)
            os.rename(draft, path)
    for old in (draft, draft.parent / _ASIDE):
        if old.exists() and set(os.listdir(old)) - KNOWN:  # somebody put a file into it: it is not ours to delete
            os.rename(old, path.with_name(f"{path.name}.before.{secrets.token_hex(3)}"))


def _exchange(one: Path, other: Path) -> bool:
    """Two folders change places in one step; False where the system or the file system cannot."""
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if rename is None:
        return False
    if rename(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _EXCHANGE) == 0:
        return True
    code = ctypes.get_errno()
    if code in (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP):
        return False
    raise OSError(code, os.strerror(code))


def _own(root: Path) -> int:
    """Lock a new draft for as long as this process lives; without locks (some network disks) nobody removes it."""
    try:
        handle = lock(root)
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.ENOENT):
            raise
        return -1
    if not root.exists():  # another run took it for a leftover before the lock was on it
        raise OSError(errno.EBUSY, "another run is writing to the same folder")
    return handle


def _discard(root: Path, path: Path, made: list[Path]) -> None:
    """Remove a draft, and the folders made for a release that did not come."""
    shutil.rmtree(root, ignore_errors=True)
    with suppress(OSError):
        for parent in [] if path.exists() else made:
            parent.rmdir()


def _escaped(name: str) -> str:
    """A name as a pattern that matches only itself."""
    return "".join(f"[{character}]" if character in "*?[" else character for character in name)


def _cannot_write(path: Path, error: OSError) -> ReleaseError:
    return ReleaseError(
        f"the release could not be written to {path.name}: {error.strerror or error}. "
        "Nothing was left behind. Choose a folder with enough room and run again."
    )


FORMATS = (".parquet", ".csv")
"""Of a table in a file of its own: the extension decides."""


@contextmanager
def atomic_table(path: Path, schema: pa.Schema, *, overwrite: bool = False) -> Iterator[Any]:
    """A writer with `write_table`; the file is there once the block ends well, and nothing is left otherwise."""
    check_file(path, overwrite=overwrite)
    try:
        with _draft_of(path, 0o600) as (draft, file):
            writer = pq.ParquetWriter if path.suffix.lower() == ".parquet" else pacsv.CSVWriter
            with writer(file, schema) as rows:
                yield rows
            _finish(file)
            draft.chmod(0o644)
            os.replace(draft, path)
    except OSError as error:
        raise ReleaseError(
            f"{path.name} could not be written: {error.strerror or error}. Nothing was left behind. "
            "Choose a place with enough room that you may write to."
        ) from error


def write_new_file(path: Path, content: bytes, mode: int) -> None:
    """A file with these rights, whole or not at all; FileExistsError if anything has its name, which is kept."""
    with _draft_of(path, mode) as (draft, file):
        file.write(content)
        _finish(file)
        try:
            os.link(draft, path)  # refused by the system if anything is there, as no rename is
        except FileExistsError:
            raise
        except OSError:  # a file system without links
            if os.path.lexists(path):
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST)) from None
            os.rename(draft, path)
        with suppress(OSError):  # it is there; some network disks cannot force a folder
            sync(path.parent)


@contextmanager
def _draft_of(path: Path, mode: int) -> Iterator[tuple[Path, BinaryIO]]:
    """A hidden file beside `path` to write to, locked while this process lives, and gone afterwards under that name."""
    _clear_file_drafts(path)
    draft, held = path.parent / f".{path.name}.{secrets.token_hex(6)}.partial", -1
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            with suppress(OSError, ImportError):  # without locks (some network disks, Windows) nobody removes it
                held = lock(draft)
            yield draft, file
    finally:
        with suppress(OSError):
            draft.unlink()
        with suppress(OSError):
            os.close(held)


def _finish(file: BinaryIO) -> None:
    """Force what was written to disk, and close it: not every system renames a file that is open."""
    file.flush()
    os.fsync(file.fileno())
    file.close()


def _clear_file_drafts(path: Path) -> None:
    """Remove drafts of killed runs."""
    for draft in sorted(path.parent.glob(f".{_escaped(path.name)}.{'[0-9a-f]' * 12}.partial")):
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
