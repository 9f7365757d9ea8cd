"""The release folder a command works on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpsr.cli.terminal import err

if TYPE_CHECKING:
    from dpsr.release import Release

ReleaseFolder = Annotated[
    Path, typer.Argument(metavar="RELEASE", file_okay=False, help="Release folder, as `dpsr release --out` wrote it.")
]


def open_release(folder: Path) -> Release:
    """Load it; one that is not private is announced as such on stderr."""
    from dpsr import load_release
    from dpsr.quoting import for_terminal

    release = load_release(folder)
    if not release.certificate.private:
        err.print(f"[red]NOT PRIVATE[/red]: {for_terminal('; '.join(release.certificate.reasons), 1_000)}")
    return release
