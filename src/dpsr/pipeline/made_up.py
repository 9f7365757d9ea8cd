"""Made-up people in a release folder, and tables of more of them made later."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from dpsr.errors import ParameterError
from dpsr.release import Release
from dpsr.release.atomic import atomic_table
from dpsr.release.folder.write import AnyContents
from dpsr.release.likes import LikesRelease
from dpsr.release.people import ItemRelease
from dpsr.synthesis import Synthesis

NOBODY = (
    "people are made up where real ones are protected, at --unit rating or user. A release that protects values has a "
    "row for every rating, which is the table to share (ratings.parquet): make nobody up."
)

_NOBODY_REAL = "people who do not exist, drawn from a release; the seed is public and hides nothing"


def check_made_up(unit: str, people: int | None) -> None:
    """Refuse a number of people that cannot be made up, before anything is spent."""
    if people is None or people == 0:
        return
    if unit == "value":
        raise ParameterError(NOBODY)
    Synthesis(people)


def with_made_up(contents: AnyContents, people: int) -> AnyContents:
    """The same contents with so many made-up people, 0 for none."""
    check_made_up(contents.certificate.unit, people)
    return contents.with_people(people) if isinstance(contents, ItemRelease | LikesRelease) else contents


def more_made_up(
    release: Release | ItemRelease | LikesRelease,
    people: int | None,
    path: Path,
    *,
    seed: int = 0,
    overwrite: bool = False,
) -> pa.Table:
    """Write made-up people (.parquet or .csv), whole or not at all; the table that was written.

    Parquet says what they are, and NOT PRIVATE if the release says so.
    """
    if not isinstance(release, ItemRelease | LikesRelease):
        raise ParameterError(NOBODY)
    words = _NOBODY_REAL if release.certificate.private else f"{release.certificate}; {_NOBODY_REAL}"
    table = release.synthesise(people, seed=seed).replace_schema_metadata({b"dpsr": words.encode()})
    with atomic_table(path, table.schema, overwrite=overwrite) as rows:
        rows.write_table(table)
    return table
