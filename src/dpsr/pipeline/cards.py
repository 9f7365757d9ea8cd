"""The card of a release folder drawn again: onto disk, with its plots, or to be held against the page in the folder.

Nothing is replaced unasked, and no release folder is written into.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Mapping
from importlib import import_module
from pathlib import Path

from dpsr.certify.certificate import software
from dpsr.certify.check import Check
from dpsr.certify.folder import MANIFEST
from dpsr.errors import ParameterError, ReleaseError
from dpsr.release.folder.budget_page import read_budget
from dpsr.release.folder.examination import Examination, examined
from dpsr.release.folder.layout import CARD
from dpsr.release.folder.write import AnyContents
from dpsr.release.likes import LikesRelease
from dpsr.release.people import ItemRelease
from dpsr.report import card


def redraw(folder: Path, page: Path, plots: Path | None = None, *, overwrite: bool = False) -> list[Path]:
    """Draw the card of a release folder again as `page`, its plots into `plots`; the folder itself stays as it is."""
    _check_files([page], overwrite=overwrite)
    if plots is not None:
        _require_matplotlib()
    found = examined(folder)
    contents = _contents(found)
    files = {page: drawn_again(found)}
    if plots is not None and isinstance(contents, ItemRelease | LikesRelease):
        raise ParameterError("plots are drawn of released ratings, and a release that protects people has none.")
    if plots is not None and not isinstance(contents, ItemRelease | LikesRelease):
        from dpsr.report.figures import figures  # matplotlib, for those who want pictures

        files |= {plots / name: data for name, data in figures(contents).items()}
    return _write_files(files, overwrite=overwrite)


def _check_files(paths: Iterable[Path], *, overwrite: bool) -> None:
    """Refuse early: a manifest would no longer fit its folder, and files that exist are somebody's."""
    for path in paths:
        if (path.parent / MANIFEST).exists():
            raise ReleaseError(
                f"{path.parent.name} is a release folder; a new {path.name} in it would no longer fit its manifest. "
                "Choose another place."
            )
        if path.is_dir():
            raise ReleaseError(f"{path.name} is a folder; a file is to be written. Choose another name.")
        if path.exists() and not overwrite:
            raise ReleaseError(
                f"{path.name} exists already. Choose another name, or allow it with overwrite=True (or --force)."
            )


def _write_files(files: Mapping[Path, bytes], *, overwrite: bool) -> list[Path]:
    """Write every file beside its place, then rename: a reader sees the old one or the new one, never half of one."""
    _check_files(files, overwrite=overwrite)
    drafts: dict[Path, Path] = {}
    try:
        for path, content in files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
            drafts[path] = Path(name)
            with os.fdopen(handle, "wb") as draft:
                draft.write(content)
            drafts[path].chmod(0o644)
        for path, written in drafts.items():
            os.replace(written, path)
    except OSError as error:
        raise ReleaseError(
            f"{path.name} could not be written: {error.strerror or error}. "
            "Choose a folder with enough room where you may write."
        ) from error
    finally:
        for written in drafts.values():
            written.unlink(missing_ok=True)
    return list(files)


def _require_matplotlib() -> None:
    """Asked before a folder is read, which may take a while."""
    try:
        import_module("matplotlib")
    except ModuleNotFoundError as error:
        raise ParameterError("plots are drawn with matplotlib, which is not installed. Install dpsr[plots].") from error


def drawn_again(found: Examination) -> bytes:
    """The card that the folder's own tables give."""
    assert found.manifest is not None
    budget = None if found.budget is None else read_budget(found.budget, _contents(found).certificate)
    return card(_contents(found), budget=budget, signer=found.manifest.signer).encode()


def check_card(found: Examination, *, vouched: bool = False) -> Check | str:
    """Whether the page in a folder is the one its tables give.

    Another version of dpsr may draw another page, and what a folder says about its own version proves nothing: such a
    page is taken, with a note, only where something outside the folder has `vouched` for these very bytes.
    """
    if found.card is None:
        return f"there is no {CARD}"
    if drawn_again(found) == found.card:
        return Check(True, f"{CARD} is byte for byte the page that the tables give")
    wrong = f"{CARD} is not the page that the tables give"
    made_by, this = _contents(found).certificate.software, software()
    if made_by == this:
        return Check(False, f"{wrong}: believe the certificate, not the page")
    if vouched:
        return f"{CARD} was not checked: {made_by} made this release, and {this} draws another page. See: dpsr card"
    return Check(False, f"{wrong}; {made_by} is said to have drawn it: verify with that version, a ledger or a signer")


def _contents(found: Examination) -> AnyContents:
    assert found.release is not None
    return found.release.contents
