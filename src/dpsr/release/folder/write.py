"""The release folder: written beside its place, forced to disk, then renamed into it. Whole or not at all, also on
kill -9, a full disk or lost power.

    certificate.json   what is protected and what it cost
    manifest.json      SHA-256 and size of every other file, and a seal over itself
    model.json         scale, method and public settings
    ratings.parquet    user, item, rating[, timestamp][, predicted][, noisy, weight]: the private table
    users.parquet      user, n_ratings, mean, factors[, affinity]
    items.parquet      item, n_ratings, mean, factors[, affinity][, covariance][, title]
    card.html          the page for people, and budget.json what the ledger said, if there was one
    NOT_PRIVATE.txt    only if the certificate says so
    signature.json     who vouches for the manifest; the one file that it does not name

Tables of releases that know items alone are in `item_tables` and `likes_tables`. No pickles: Parquet and JSON only.
What would not be read back (`model_form`, `parquet`) is not written.

    .NAME.XXXXXXXXXXXX.partial/NAME     written here, beside its place, so that a rename is enough
    NAME                                renamed to, after every byte is on disk

A rename is atomic. Replacing a folder exchanges the two in one step where the system can (Linux); elsewhere the old one
steps aside for a moment, and whoever finds it there without its successor puts it back. A killed run leaves its hidden
draft behind: the next run with the same target removes it, unless its owner still holds the lock on it.
"""

from __future__ import annotations

import ctypes
import errno
import os
import secrets
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa

from dpsr.certify.check import CERTIFICATE
from dpsr.certify.manifest import MANIFEST, SIGNATURES, write_manifest
from dpsr.certify.signature import signatures_to_bytes
from dpsr.engine.table import TIMESTAMP
from dpsr.engine.work_folder import lock
from dpsr.errors import ReleaseError
from dpsr.quoting import quoted
from dpsr.release.folder.item_tables import write_item_side
from dpsr.release.folder.layout import ITEMS, KNOWN, MODEL, NOT_PRIVATE, RATINGS, USERS, warning_text
from dpsr.release.folder.likes_tables import write_likes
from dpsr.release.folder.model_form import NOISY_COLUMNS, model_json, personal_record, scale_record
from dpsr.release.folder.parquet import title_column, vectors, write_table, writer
from dpsr.release.keys import SigningKey
from dpsr.release.likes import LikesRelease
from dpsr.release.people import ItemRelease
from dpsr.release.release import Contents
from dpsr.types import Census, Mask

AnyContents: TypeAlias = Contents | ItemRelease | LikesRelease
"""What a folder may hold."""

_FIXED_BYTES, _BYTES_PER_RATING, _BYTES_PER_ROW = 3_000_000, 48, 1_500
"""Certificate and pages; six columns of eight bytes; some two hundred numbers for each user and item."""


def write_release(
    contents: AnyContents,
    path: Path,
    *,
    overwrite: bool = False,
    pages: Mapping[str, str] | None = None,
    signer: SigningKey | None = None,
) -> Path:
    """Write the folder `path`, with further text `pages`, signed if a key is given.

    An existing folder stays unless `overwrite`.
    """
    with atomic_folder(path, overwrite=overwrite) as draft:
        draft.mkdir()
        if isinstance(contents, ItemRelease):
            write_item_side(contents, draft)
        elif isinstance(contents, LikesRelease):
            write_likes(contents, draft)
        else:
            _write_values(contents, draft)
        (draft / CERTIFICATE).write_text(contents.certificate.to_json(), "utf-8")
        if not contents.certificate.private:
            (draft / NOT_PRIVATE).write_text(warning_text(contents.certificate), "utf-8")
        for name, text in (pages or {}).items():
            (draft / name).write_text(text, "utf-8")
        seal(draft, signer)
        sync_tree(draft)
    return path


def seal(folder: Path, signer: SigningKey | None = None) -> str:
    """Write the manifest of a folder whose other files are complete, and sign it; the manifest's SHA-256."""
    digest = write_manifest(folder, signer=None if signer is None else signer.public.fingerprint)
    if signer is not None:
        (folder / SIGNATURES).write_bytes(signatures_to_bytes([signer.sign(digest)]))
    return digest


def expected_bytes(mask: Mask | Census) -> int:
    """About what a release of these ratings takes on disk, on the generous side; read off the public mask."""
    ids = mask.user_ids.nbytes + mask.item_ids.nbytes
    rows = mask.n_users + mask.n_items
    return _FIXED_BYTES + 2 * ids + _BYTES_PER_RATING * mask.n_ratings + _BYTES_PER_ROW * rows


def _write_values(contents: Contents, folder: Path) -> None:
    model, census = contents.model, contents.table.census
    (folder / MODEL).write_text(_model_json(contents), "utf-8")
    _write_ratings(contents, folder / RATINGS)
    users = {"user": census.user_ids, "n_ratings": census.user_counts, "mean": model.user_means}
    items = {"item": census.item_ids, "n_ratings": census.item_counts, "mean": model.item_means}
    users["factors"], items["factors"] = vectors(model.user_factors), vectors(model.item_factors)
    if model.affinity is not None:
        users["affinity"], items["affinity"] = vectors(model.affinity.users), vectors(model.affinity.items)
    if model.personal is not None:
        items["covariance"] = vectors(model.personal.item_covariance)
    write_table(folder / USERS, pa.table(users))
    write_table(folder / ITEMS, pa.table({**items, **title_column(contents.titles)}))


def _write_ratings(contents: Contents, path: Path) -> None:
    """The table block by block: it may be larger than memory."""
    table, census = contents.table, contents.table.census
    observed = {"predicted": contents.observed} if contents.observed else {}
    noisy = dict(zip(NOISY_COLUMNS, contents.noisy, strict=True)) if contents.noisy else {}
    names = {"rating": contents.ratings, **({TIMESTAMP: TIMESTAMP} if census.timed else {}), **observed, **noisy}
    kinds = {name: pa.float64() for name in names} | {name: pa.float32() for name in noisy}
    if census.timed:
        kinds[TIMESTAMP] = pa.int64()
    schema = pa.schema({"user": census.user_ids.type, "item": census.item_ids.type, **kinds})
    with writer(path, schema) as rows:
        for block in table.scan(list(names.values())):
            columns = {
                "user": census.user_ids.take(pa.array(block.rows + block.first)),
                "item": census.item_ids.take(pa.array(block.items)),
                **{name: pa.array(block.columns[column], kinds[name]) for name, column in names.items()},
            }
            rows.write_table(pa.table(columns, schema=schema))


def _model_json(contents: Contents) -> str:
    model = contents.model
    facts = {
        "scale": scale_record(model.scale),
        "rank": model.rank,
        "overall": model.overall,
        "residual_variance": model.residual_variance,
        "user_mean": model.user_mean.tolist(),
        "user_covariance": model.user_covariance.tolist(),
    }
    if model.personal is not None:
        facts["personal"] = personal_record(model.personal)
    unit = contents.certificate.unit
    return model_json(unit, unit, contents.method, contents.settings, **facts)


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

    The block forces what it writes to disk (`sync_tree`); the rename and its forcing happen here.
    """
    clear_leftovers(path)
    check_target(path, overwrite=overwrite)
    missing: list[Path] = []
    root = path.parent / f".{path.name}.{secrets.token_hex(6)}.partial"  # named before it exists: cleaned in any case
    handle = -1
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
        finally:
            _discard(root, path, missing)
    except OSError as error:
        raise _cannot_write(path, error) from error
    finally:
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


def sync_tree(folder: Path) -> None:
    """Force a folder to disk: its files first, then the list of them."""
    for entry in [*sorted(folder.iterdir()), folder]:
        sync(entry)


def sync(entry: Path) -> None:
    """Force one file or folder to disk."""
    handle = os.open(entry, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


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
        old = draft if draft.exists() else draft.parent / _ASIDE
        if set(os.listdir(old)) - KNOWN:  # somebody put a file into it meanwhile: it is not ours to delete
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
