"""The options every command that reads ratings shares, and the reading itself."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from dpsr import Ratings


class Duplicates(StrEnum):
    """What to do when a user rated an item twice."""

    error = "error"
    first = "first"
    last = "last"


RatingsFile = Annotated[Path, typer.Argument(help="CSV, TSV, Parquet or a MovieLens file (u.data, ratings.dat).")]
ScaleText = Annotated[str, typer.Option(help="The rating scale, LOW:HIGH:STEP, as printed on the rating form.")]
User = Annotated[str | None, typer.Option(help="Name of the user column, if it is not found.")]
Item = Annotated[str | None, typer.Option(help="Name of the item column, if it is not found.")]
Rating = Annotated[str | None, typer.Option(help="Name of the rating column, if it is not found.")]
Timestamp = Annotated[str | None, typer.Option(help="Name of the timestamp column, if it is not found.")]
Delimiter = Annotated[str | None, typer.Option(help="Field separator of a text file, if it is not found.")]
OnDuplicates = Annotated[Duplicates, typer.Option(help="A (user, item) pair rated twice.")]
Snap = Annotated[bool, typer.Option("--snap", help="Put continuous ratings on the scale's grid.")]


@dataclass(frozen=True)
class Reading:
    """How a rating file is to be read."""

    path: Path
    scale: str
    user: str | None
    item: str | None
    rating: str | None
    timestamp: str | None
    delimiter: str | None
    duplicates: Duplicates
    snap: bool

    def read(self) -> Ratings:
        """Read it, or say in one sentence why not."""
        from dpsr import Ratings, Scale

        return Ratings.read(
            self.path,
            scale=Scale.parse(self.scale, snap=self.snap),
            user=self.user,
            item=self.item,
            rating=self.rating,
            timestamp=self.timestamp,
            delimiter=self.delimiter,
            duplicates=self.duplicates.value,
        )
