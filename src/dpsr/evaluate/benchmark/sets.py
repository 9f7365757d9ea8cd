"""What is measured on: rating files with declared scales, and both generators of made-up ratings.

A source is named on the command line: `realistic` or `paper` for a generator, a rating file, or a folder, which stands
for the known sets in it. A generator draws a new population for every seed; a file is split anew for every seed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path

from dpsr.data import Ratings, paper_matrix, realistic
from dpsr.errors import DataError, ScaleError
from dpsr.evaluate.frontier_sets import KNOWN, TEST_SHARE, find_sets
from dpsr.types import Scale

GENERATORS: dict[str, Callable[[int], Ratings]] = {"paper": paper_matrix, "realistic": realistic}


@dataclass(frozen=True)
class Source:
    """One rating set: a file on a declared scale, or a generator (`path` is empty)."""

    name: str
    path: str = ""
    scale: str = ""

    @property
    def made_up(self) -> bool:
        """Whether every seed brings other users and items."""
        return not self.path

    def read(self, seed: int) -> Ratings:
        """All ratings; `seed` matters to generators alone."""
        if self.made_up:
            return GENERATORS[self.name](seed)
        return Ratings.read(self.path, scale=Scale.parse(self.scale))

    def split(self, seed: int) -> tuple[Ratings, Ratings]:
        """Training and test part: the same for every method, whichever process asks."""
        return self.read(seed).split(TEST_SHARE, seed=seed)

    @property
    def digest(self) -> str:
        """Changes when the file or the declared scale does; generators are part of the source code."""
        return "generator" if self.made_up else _file_digest(self.path, self.scale)


@lru_cache(maxsize=64)
def _file_digest(path: str, scale: str) -> str:
    return sha256(Path(path).read_bytes() + scale.encode()).hexdigest()[:16]


def find_sources(names: Sequence[str], scales: Mapping[str, str]) -> list[Source]:
    """The sources named, in that order; `scales` maps a set's name to LOW:HIGH:STEP, "" stands for all others."""
    found = [source for name in names for source in _expand(name, scales)]
    doubled = {source.name for source in found if sum(s.name == source.name for s in found) > 1}
    if doubled:
        raise DataError(f"every set needs a name of its own, found {', '.join(sorted(doubled))} twice. Rename a file.")
    if not found:
        raise DataError("a benchmark needs a rating set, found none. Name a file, a folder, `paper` or `realistic`.")
    return found


def _expand(name: str, scales: Mapping[str, str]) -> list[Source]:
    if name in GENERATORS:
        return [Source(name)]
    path = Path(name)
    if path.is_dir():
        return [Source(file.name, str(file.path), str(file.scale)) for file in find_sets(path, None)]
    if not path.is_file():
        raise DataError(
            f"a set is a rating file, a folder of known sets, or one of {', '.join(GENERATORS)}; found {name!r}. "
            "Check the path."
        )
    return [Source(path.stem, name, _scale_of(path.stem, scales))]


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


def parse_scales(texts: Sequence[str]) -> dict[str, str]:
    """`NAME=LOW:HIGH:STEP` or, for all files without one of their own, `LOW:HIGH:STEP`.

    >>> parse_scales(["1:5:1", "jokes=-10:10:0.25"])
    {'': '1:5:1', 'jokes': '-10:10:0.25'}
    """
    return {name: scale for name, _, scale in (text.rpartition("=") for text in texts)}
