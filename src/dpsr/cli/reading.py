"""The options every command that reads ratings shares, and the reading itself."""

from __future__ import annotations

import shutil
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from tempfile import gettempdir
from typing import TYPE_CHECKING, Annotated, ClassVar

import typer

if TYPE_CHECKING:
    from dpsr import Ratings


class Duplicates(StrEnum):
    """What to do when a user rated an item twice."""

    error = "error"
    first = "first"
    last = "last"


@dataclass(frozen=True)
class RatingsSource:
    """Where ratings are: a file, or the address of a database. Its `name` is safe to print."""

    text: str

    @property
    def is_database(self) -> bool:
        from dpsr.database import is_address

        return is_address(self.text)

    @property
    def is_stdin(self) -> bool:
        return self.text == "-"

    @property
    def name(self) -> str:
        from dpsr.database import Database
        from dpsr.quoting import file_name

        if self.is_stdin:
            return "standard input"
        return str(Database.parse(self.text)) if self.is_database else file_name(Path(self.text))

    def check(self, query: str | None) -> None:
        """A database needs a query, and a file has none."""
        from dpsr.errors import ParameterError

        if self.is_database != (query is not None):
            raise ParameterError(
                "ratings come from a file, or from a database with --query: "
                "sqlite:///shop.db --query 'select user_id, item_id, rating from ratings'."
            )


RatingsFile = Annotated[
    RatingsSource,
    typer.Argument(
        parser=RatingsSource,
        help="CSV in any common form, TSV, JSON lines, Parquet or a MovieLens file, compressed or not; - for standard "
        "input; or a database, sqlite:///file.db or postgresql://user@host/database, with --query.",
    ),
]
Query = Annotated[str | None, typer.Option(help="The SELECT that gives the ratings, if they are in a database.")]
OptionalScale = Annotated[
    str | None, typer.Option("--scale", help="The rating scale, LOW:HIGH:STEP, as printed on the rating form.")
]
User = Annotated[str | None, typer.Option(help="Name of the user column, if it is not found.")]
Item = Annotated[str | None, typer.Option(help="Name of the item column, if it is not found.")]
Items = Annotated[
    Path | None,
    typer.Option(metavar="CATALOGUE", help="File of items, an id and perhaps a title in each row: titles name items."),
]
Rating = Annotated[str | None, typer.Option(help="Name of the rating column, if it is not found.")]
Timestamp = Annotated[str | None, typer.Option(help="Name of the timestamp column, if it is not found.")]
Delimiter = Annotated[str | None, typer.Option(help="Field separator of a text file, if it is not found.")]
OnDuplicates = Annotated[Duplicates, typer.Option(help="A (user, item) pair rated twice.")]
Snap = Annotated[bool, typer.Option("--snap", help="Put continuous ratings on the scale's grid.")]


class FileReading(ABC):
    """What reading ratings and reading interactions share; afterwards `taken` says which columns were."""

    interactions: ClassVar[bool] = False
    source: RatingsSource
    delimiter: str | None
    query: str | None
    taken: str

    @property
    @abstractmethod
    def columns(self) -> dict[str, str | None]:
        """The columns that were named."""

    @property
    def file(self) -> Path:
        """The file itself; a database and a pipe are read into memory only."""
        from dpsr.errors import ParameterError

        if self.query is not None or self.source.is_database:
            raise ParameterError("rows in a database are read into memory. Use --engine memory, or export a file.")
        if self.source.is_stdin:
            raise ParameterError("standard input is read into memory. Use --engine memory, or save it to a file.")
        self.taken = self.columns_in(Path(self.source.text))
        return Path(self.source.text)

    def columns_in(self, path: Path) -> str:
        """Which columns are taken for what, in words."""
        from dpsr.data.columns import INTERACTION_ROWS, RATING_ROWS
        from dpsr.data.files.read import columns_taken
        from dpsr.quoting import quoted

        kind = INTERACTION_ROWS if self.interactions else RATING_ROWS
        found = columns_taken(path, kind, **self.columns, delimiter=self.delimiter)
        return "Columns: " + ", ".join(f"{role} = {quoted(name)}" for role, name in found.items()) + "."


@dataclass
class Reading(FileReading):
    """How a rating file is to be read; afterwards `taken` says which columns were."""

    source: RatingsSource
    scale: str
    user: str | None
    item: str | None
    rating: str | None
    timestamp: str | None
    delimiter: str | None
    duplicates: Duplicates
    snap: bool
    query: str | None = None
    taken: str = ""

    @property
    def columns(self) -> dict[str, str | None]:
        """The columns that were named."""
        return {"user": self.user, "item": self.item, "rating": self.rating, "timestamp": self.timestamp}

    def read(self) -> Ratings:
        """Read it, or say in one sentence why not."""
        from dpsr import Ratings, Scale

        scale, columns = Scale.parse(self.scale, snap=self.snap), self.columns
        self.source.check(self.query)
        if self.query is None:
            options = {**columns, "delimiter": self.delimiter}
            with local_file(self.source) as path:
                self.taken = self.columns_in(path)
                return Ratings.read(path, scale=scale, duplicates=self.duplicates.value, **options)
        return Ratings.from_sql(self.source.text, self.query, scale=scale, duplicates=self.duplicates.value, **columns)


@contextmanager
def local_file(source: RatingsSource) -> Iterator[Path]:
    """The file; what comes through a pipe is kept in one that nobody else can read, as long as it is needed.

    What a run that was killed has left is removed by the next one that reads from a pipe.
    """
    if not source.is_stdin:
        yield Path(source.text)
        return
    from dpsr.engine.work_folder import PIPED, create_private, passing_folder
    from dpsr.errors import DataError

    with ExitStack() as stack:
        try:
            folder = stack.enter_context(passing_folder(Path(gettempdir()), "dpsr"))
            path = create_private(folder / PIPED)
            with path.open("wb") as copy:
                shutil.copyfileobj(sys.stdin.buffer, copy)
        except OSError as error:
            raise DataError(
                f"standard input could not be kept: {error.strerror or error}. Nothing was spent. "
                "Set TMPDIR to a folder with room, or save it to a file."
            ) from error
        yield path
