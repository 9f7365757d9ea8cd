"""Rate some things, see your list: one's own ratings meet the released item side, for this answer alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from dpsr.certify.folder import MANIFEST
from dpsr.release.folder.examination import Examination, examined
from dpsr.release.folder.layout import CARD
from dpsr.release.likes import LikesRelease
from dpsr.release.people import ItemRelease
from dpsr.release.release import Release

SHOWN = 24
WANTED = 5


@dataclass(frozen=True)
class RatableItem:
    """An item that may be rated: its id, and what it is called."""

    id: str
    name: str


@dataclass(frozen=True)
class Suggestion:
    """One line of a list."""

    name: str
    score: str


def items_to_rate(release: Release | ItemRelease | LikesRelease, words: str) -> list[RatableItem]:
    """Well-known items, or those whose title or id holds the words."""
    ids, titles = _named(release)
    order = range(len(ids)) if words else _well_known(release)
    wanted = words.casefold()
    found = []
    for code in order:
        name = _name(ids[code], titles, code)
        if wanted in name.casefold():
            found.append(RatableItem(str(ids[code]), name))
        if len(found) == SHOWN:
            break
    return found


def suggestions(
    release: Release | ItemRelease | LikesRelease, ratings: Mapping[str, float], n: int = 10
) -> list[Suggestion]:
    """The list of somebody with these ratings."""
    found = release.fold_in(list(ratings), list(ratings.values()), n)
    names = [title or str(item) for item, title in zip(found.items, found.titles or found.items, strict=True)]
    return [
        Suggestion(str(name), f"{score:.1f}" if isinstance(release, Release | ItemRelease) else f"{score:.2g}")
        for name, score in zip(names, found.scores.tolist(), strict=True)
    ]


def levels_of(release: Release | ItemRelease | LikesRelease) -> list[str]:
    """What may be given, best first; of a long scale, ten of its values."""
    if isinstance(release, LikesRelease):  # what was done has no scale: done, or not
        return ["1"]
    values = release.scale.values
    chosen = values if len(values) <= 11 else values[np.unique(np.linspace(0, len(values) - 1, 11).round().astype(int))]
    return [f"{value:g}" for value in chosen[::-1].tolist()]


def loaded(folder: str) -> Release | ItemRelease | LikesRelease:
    """A release, examined whole."""
    release = opened(folder).release
    assert release is not None
    return release


def opened(folder: str) -> Examination:
    """A folder that holds together; it is read once as long as its manifest and its card stay as they are."""
    return _examined(folder, tuple(_state(Path(folder) / name) for name in ("", MANIFEST, CARD)))


@lru_cache(maxsize=2)
def _examined(folder: str, state: tuple[tuple[int, int], ...]) -> Examination:
    return examined(Path(folder))


def _state(path: Path) -> tuple[int, int]:
    try:
        found = path.stat()
    except (OSError, ValueError):
        return 0, 0
    return found.st_size, found.st_mtime_ns


def _named(release: Release | ItemRelease | LikesRelease) -> tuple[list[Any], list[str | None] | None]:
    ids = release.mask.item_ids if isinstance(release, Release) else release.index.named
    return ids.to_pylist(), release.titles


def _well_known(release: Release | ItemRelease | LikesRelease) -> list[int]:
    if isinstance(release, ItemRelease):
        popularity = release.side.log_popularity[release.index.named_cells]
    elif isinstance(release, LikesRelease):
        popularity = release.side.popularity[release.index.named_cells]
    else:
        popularity = release.mask.item_counts.astype(np.float64)
    order: list[int] = np.argsort(-popularity, kind="stable").tolist()
    return order


def _name(item: Any, titles: list[str | None] | None, code: int) -> str:
    return (titles[code] if titles else None) or str(item)
