"""What is measured on: rating files with declared scales, and generators of made-up ratings.

A set is named on a command line: a generator (`realistic`, `paper`), a rating file, or a folder, which stands for the
known sets in it. A generator draws a new population for every seed; a file is split anew for every seed. The scale of a
file is printed on the rating form of its source and stated here or by the caller, never read off the ratings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from hashlib import sha256
from pathlib import Path

from dpsr.data import Interactions, Ratings, paper_matrix, realistic
from dpsr.errors import DataError, ScaleError
from dpsr.types import Scale

GENERATORS: dict[str, Callable[[int], Ratings]] = {
    "paper": paper_matrix,
    "paper-standardised": partial(paper_matrix, normalisation="standardise"),
    "realistic": realistic,
    "taste-1m": partial(realistic, n_users=6_040, n_items=3_700, n_ratings=1_000_000),
    "taste-10m": partial(realistic, n_users=70_000, n_items=10_700, n_ratings=10_000_000),
}
"""By name. In all but the paper's, who rates what depends on taste; the last two have the shapes of ML-1M and -10M."""

LIKES_GENERATORS: dict[str, Callable[[int], Ratings]] = {
    "realistic": realistic,
    "realistic-100k": partial(realistic, n_users=100_000, n_items=20_000, n_ratings=3_000_000),
}
"""Generators whose rows are taken as interactions: who meets what depends on taste."""

KNOWN: dict[str, Scale] = {"ml-latest-small": Scale(0.5, 5, 0.5), "movietweetings-100k": Scale(0, 10)}
"""Public sets whose files (NAME.parquet) are not part of the project, with the scales of their rating forms."""


@dataclass(frozen=True)
class RatingSet:
    """One rating set: a file on a declared scale, or a generator (`path` is empty)."""

    name: str
    path: str = ""
    scale: str = ""

    @property
    def made_up(self) -> bool:
        """Whether every seed brings other users and items."""
        return not self.path

    def read(self, seed: int = 0) -> Ratings:
        """All ratings; `seed` matters to generators alone."""
        if self.made_up:
            return _drawn(self.name, seed)
        return Ratings.read(self.path, scale=Scale.parse(self.scale))

    def interactions(self, seed: int = 0) -> Interactions:
        """All rows as interactions: ratings are not looked at, weights and counts are."""
        if self.made_up:
            return Interactions.of_mask(LIKES_GENERATORS[self.name](seed).mask, self.name)
        return Interactions.read(self.path)

    @property
    def digest(self) -> str:
        """Changes when the file or the declared scale does; generators are part of the source code."""
        return "generator" if self.made_up else _file_digest(self.path, self.scale)


@lru_cache(maxsize=1)
def _drawn(name: str, seed: int) -> Ratings:
    """Kept, since the jobs of a method follow one another in a process and a large set takes a minute to draw."""
    return GENERATORS[name](seed)


@lru_cache(maxsize=64)
def _file_digest(path: str, scale: str) -> str:
    return sha256(Path(path).read_bytes() + scale.encode()).hexdigest()[:16]


def find_sets(names: Sequence[str], scales: Mapping[str, str]) -> list[RatingSet]:
    """The sets named, in that order; `scales` maps a set's name to LOW:HIGH:STEP, "" stands for all others."""
    return _distinct(one for name in names for one in _expand(name, GENERATORS, lambda set: _scale_of(set, scales)))


def find_likes(names: Sequence[str]) -> list[RatingSet]:
    """The same where rows are interactions: a file needs no scale."""
    return _distinct(one for name in names for one in _expand(name, LIKES_GENERATORS, lambda _: ""))


def _distinct(sets: Iterable[RatingSet]) -> list[RatingSet]:
    found = list(sets)
    doubled = {one.name for one in found if sum(other.name == one.name for other in found) > 1}
    if doubled:
        raise DataError(f"every set needs a name of its own, found {', '.join(sorted(doubled))} twice. Rename a file.")
    if not found:
        raise DataError("a benchmark needs a rating set, found none. Name a file, a folder, `paper` or `realistic`.")
    return found


def sets_in_folder(folder: Path, scales: Mapping[str, Scale] | None = None) -> list[RatingSet]:
    """The files `NAME.parquet` of `scales`, all of which must be there; without, whichever known ones are."""
    if not folder.is_dir():
        raise DataError(
            f"{folder} is not a folder of rating sets. Name the folder that holds "
            f"{' and '.join(f'{name}.parquet' for name in KNOWN)} (--data FOLDER)."
        )
    wanted = {folder / f"{name}.parquet": scale for name, scale in (KNOWN if scales is None else scales).items()}
    missing = [path.name for path in wanted if not path.is_file()]
    if len(missing) == len(wanted) or (scales is not None and missing):
        raise DataError(
            f"{folder} has no {' and no '.join(missing) or 'set that was asked for'}. Put the Parquet files there "
            "(columns user, item, rating), or name another folder (--data FOLDER)."
        )
    return [RatingSet(path.stem, str(path), str(scale)) for path, scale in wanted.items() if path.is_file()]


def without_scale(folder: Path, sets: Sequence[RatingSet]) -> list[str]:
    """Parquet files beside the sets that are left out because nobody declared their scale."""
    used = {one.name for one in sets}
    return sorted(path.name for path in folder.glob("*.parquet") if path.stem not in used | KNOWN.keys())


def parse_scales(texts: Sequence[str]) -> dict[str, str]:
    """`NAME=LOW:HIGH:STEP` or, for all files without one of their own, `LOW:HIGH:STEP`.

    >>> parse_scales(["1:5:1", "jokes=-10:10:0.25"])
    {'': '1:5:1', 'jokes': '-10:10:0.25'}
    """
    return {name: scale for name, _, scale in (text.rpartition("=") for text in texts)}


def _expand(name: str, generators: Mapping[str, object], scale_of: Callable[[str], str]) -> list[RatingSet]:
    if name in generators:
        return [RatingSet(name)]
    path = Path(name)
    if path.is_dir():
        return sets_in_folder(path)
    if not path.is_file():
        raise DataError(
            f"a set is a rating file, a folder of known sets, or one of {', '.join(generators)}; found {name!r}. "
            "Check the path."
        )
    return [RatingSet(path.stem, name, scale_of(path.stem))]


def _scale_of(name: str, scales: Mapping[str, str]) -> str:
    declared = scales.get(name, scales.get(""))
    if declared is not None:
        return str(Scale.parse(declared))
    if name in KNOWN:
        return str(KNOWN[name])
    raise ScaleError(
        f"the scale of {name} must be declared, found none. Add --scale {name}=LOW:HIGH:STEP, as printed on its rating "
        "form; it is never guessed from the data."
    )
