"""Pages and pictures on disk: nothing is replaced unasked, and no release folder is written into."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from dpsr.certify.manifest import MANIFEST
from dpsr.errors import ReleaseError


def check_files(paths: Iterable[Path], *, overwrite: bool) -> None:
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


def write_files(files: Mapping[Path, bytes], *, overwrite: bool) -> list[Path]:
    """Write every file beside its place, then rename: a reader sees the old one or the new one, never half of one."""
    check_files(files, overwrite=overwrite)
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
        for written in drafts.values():
            written.unlink(missing_ok=True)
        raise ReleaseError(
            f"{path.name} could not be written: {error.strerror or error}. "
            "Choose a folder with enough room where you may write."
        ) from error
    return list(files)
