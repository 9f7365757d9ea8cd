"""The real rating sets of the frontier: where they are, their declared scales, and the RMSE they should get.

The files are not part of the project. A set is a Parquet file named after it; its scale is printed on the rating form
of its source and stated here or by the caller, never read off the ratings.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from dpsr.data import Ratings
from dpsr.errors import DataError
from dpsr.types import Scale

TEST_SHARE = 0.2
EPSILONS = (0.1, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0)


@dataclass(frozen=True)
class Targets:
    """Mean RMSE by epsilon: `reach` is to be met, `aim` to be undercut. Empty for a set without targets."""

    reach: Mapping[float, float] = field(default_factory=dict)
    aim: Mapping[float, float] = field(default_factory=dict)


@dataclass(frozen=True)
class RatingFile:
    """One set found on disk."""

    name: str
    path: Path
    scale: Scale

    def read(self) -> Ratings:
        """The ratings, on the declared scale."""
        return Ratings.read(self.path, scale=self.scale)

    def digest(self) -> str:
        """Changes when the file or the declared scale does."""
        return sha256(self.path.read_bytes() + repr(self.scale).encode()).hexdigest()[:16]


def _targets(reach: tuple[float, ...], aim: tuple[float, ...]) -> Targets:
    return Targets(dict(zip(EPSILONS, reach, strict=True)), dict(zip(EPSILONS, aim, strict=True)))


KNOWN: Mapping[str, Scale] = {"ml-latest-small": Scale(0.5, 5, 0.5), "movietweetings-100k": Scale(0, 10)}

TARGETS: Mapping[str, Targets] = {
    "ml-latest-small": _targets(
        reach=(0.975, 0.920, 0.900, 0.882, 0.862, 0.846, 0.837),
        aim=(0.960, 0.905, 0.885, 0.865, 0.850, 0.838, 0.832),
    ),
    "movietweetings-100k": _targets(
        reach=(1.845, 1.760, 1.710, 1.660, 1.620, 1.580, 1.550),
        aim=(1.810, 1.720, 1.670, 1.625, 1.590, 1.550, 1.533),
    ),
}


def find_sets(data_dir: Path, sets: Mapping[str, Scale] | None) -> list[RatingFile]:
    """The files of `sets`, all of which must be there; without `sets`, whichever known ones are."""
    if not data_dir.is_dir():
        raise DataError(
            f"{data_dir} is not a folder of rating sets. Name the folder that holds "
            f"{' and '.join(f'{name}.parquet' for name in KNOWN)} (--data FOLDER)."
        )
    wanted = KNOWN if sets is None else sets
    files = [RatingFile(name, data_dir / f"{name}.parquet", scale) for name, scale in wanted.items()]
    missing = [file.path.name for file in files if not file.path.is_file()]
    if len(missing) == len(files) or (sets is not None and missing):
        raise DataError(
            f"{data_dir} has no {' and no '.join(missing) or 'set that was asked for'}. Put the Parquet files there "
            "(columns user, item, rating), or name another folder (--data FOLDER)."
        )
    return [file for file in files if file.path.is_file()]


def without_scale(data_dir: Path, files: list[RatingFile]) -> list[str]:
    """Parquet files beside the sets that are left out because nobody declared their scale."""
    used = {file.path.name for file in files}
    return sorted(p.name for p in data_dir.glob("*.parquet") if p.name not in used and p.stem not in KNOWN)
