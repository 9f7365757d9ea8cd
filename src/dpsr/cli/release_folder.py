"""The release folder a command works on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpsr.cli.terminal import err

if TYPE_CHECKING:
    from dpsr.release import Release
    from dpsr.release.likes import LikesRelease
    from dpsr.release.people import ItemRelease

ReleaseFolder = Annotated[
    Path, typer.Argument(metavar="RELEASE", file_okay=False, help="Release folder, as `dpsr release --out` wrote it.")
]


def open_release(folder: Path) -> Release:
    """Load a release of ratings; one that protects people has no users or rows, and is refused."""
    from dpsr.errors import ParameterError
    from dpsr.release.likes import LikesRelease
    from dpsr.release.people import ItemRelease

    release = open_any_release(folder)
    if isinstance(release, ItemRelease):
        raise ParameterError(
            f"this release protects the unit {release.certificate.unit!r} and knows no user and no rating. Lists: dpsr "
            "personalise, from people's own ratings, or dpsr recommend --rated for one person. Predictions: dpsr "
            "personalise --predict PAIRS."
        )
    if isinstance(release, LikesRelease):
        raise ParameterError(
            "this release was learned from interactions; it knows no user and no rating. Lists: dpsr personalise, from "
            "people's own interactions, or dpsr recommend --liked ITEM for one person."
        )
    return release


def open_any_release(folder: Path) -> Release | ItemRelease | LikesRelease:
    """Load it; one that is not private is announced as such on stderr."""
    from dpsr import load_release
    from dpsr.quoting import for_terminal

    release: Release | ItemRelease | LikesRelease = load_release(folder)
    if not release.certificate.private:
        err.print(f"[red]NOT PRIVATE[/red]: {for_terminal('; '.join(release.certificate.reasons), 1_000)}")
    return release
