"""Interactions on the command line: `--likes`, or a file without a rating column; which reading was taken is said."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpsr.cli.reading import FileReading, RatingsSource, local_file

if TYPE_CHECKING:
    from dpsr import Interactions

Likes = Annotated[
    bool,
    typer.Option(
        "--likes", help="Rows are interactions (clicks, plays, purchases), not ratings: no --scale is needed."
    ),
]
Weight = Annotated[
    str | None, typer.Option(help="With --likes: name of the column of weights or counts, if it is not found.")
]

NO_RATINGS = "There is no rating column, so every row is read as an interaction (--likes)."


@dataclass
class LikesReading(FileReading):
    """How a file of interactions is to be read; afterwards `taken` says what was made of it."""

    interactions = True
    source: RatingsSource
    user: str | None
    item: str | None
    weight: str | None
    timestamp: str | None
    delimiter: str | None
    query: str | None = None
    taken: str = ""

    @property
    def columns(self) -> dict[str, str | None]:
        """The columns that were named."""
        return {"user": self.user, "item": self.item, "weight": self.weight, "timestamp": self.timestamp}

    def read(self) -> Interactions:
        """Read it, or say in one sentence why not."""
        from dpsr import Interactions

        self.source.check(self.query)
        if self.query is not None:
            found = Interactions.from_sql(self.source.text, self.query, **self.columns)
        else:
            with local_file(self.source) as path:
                self.taken = self.columns_in(path)
                found = Interactions.read(path, **self.columns, delimiter=self.delimiter)
        self.taken = said(self.taken, found.notes)
        return found


def said(taken: str, notes: Sequence[str]) -> str:
    """Which reading was taken, and how to choose the other."""
    words = [taken, *(note[0].upper() + note[1:] for note in notes)]
    if any("looks like a rating" in note for note in notes):
        words.append("To release ratings instead, leave out --likes and name their --scale.")
    return " ".join(words).strip()


@dataclass(frozen=True)
class NamedColumns:
    """Columns that were named, which may say that rows are interactions, and the delimiter."""

    user: str | None
    item: str | None
    rating: str | None
    weight: str | None
    delimiter: str | None


def reads_likes(likes: bool, scale: str | None, source: RatingsSource, named: NamedColumns) -> bool:
    """Whether rows are interactions: as asked, or because no scale was named and the file has no rating column."""
    from dpsr.errors import ParameterError

    if likes and (scale is not None or named.rating is not None):
        raise ParameterError(
            "interactions have no scale and no rating: leave out --scale and --rating, or leave out --likes to read "
            "ratings. To take a column as a weight: --weight COLUMN."
        )
    likes = likes or (scale is None and has_no_rating(source, named))
    if not likes and named.weight is not None:
        raise ParameterError("--weight is for interactions. Add --likes, or name the ratings with --rating COLUMN.")
    if not likes and scale is None:
        raise ParameterError(
            "ratings need their scale, LOW:HIGH:STEP as printed on the rating form. Example: dpsr release ratings.csv "
            "--scale 1:5:1 --epsilon 1 --out release/. If the rows are "
            "clicks, plays or purchases: --likes."
        )
    return likes


def has_no_rating(source: RatingsSource, named: NamedColumns) -> bool:
    """Whether a file has a user and an item, and no column that looks like a rating.

    Where there are two columns there is no room for one, whatever they are called.
    """
    from dpsr.data.columns import INTERACTION_ROWS
    from dpsr.data.files.read import columns_in, columns_taken
    from dpsr.errors import DataError

    if named.rating is not None or source.is_database or source.is_stdin:
        return False
    path, columns = Path(source.text), {"user": named.user, "item": named.item, "delimiter": named.delimiter}
    try:
        columns_taken(path, **columns)
    except DataError:
        try:
            if len(columns_in(path, delimiter=named.delimiter).names) == 2:
                return True
            return "user" in columns_taken(path, INTERACTION_ROWS, **columns)
        except DataError:
            return False
    return False
