"""Where ratings may come from, by name: files of the working folder, tables of a database and their columns; and the
releases that lie there. No file is opened and no row of a table is read.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpsr.certify.folder import MANIFEST
from dpsr.database import Database
from dpsr.errors import DataError, ParameterError

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from dpsr.studio.commands import Choices

_TABLES = {
    ".csv", ".tsv", ".tab", ".dat", ".data", ".txt", ".parquet", ".pq", ".parq", ".jsonl", ".ndjson", ".gz", ".bz2",
    ".zst",
}  # fmt: skip
_DATABASES = {".sqlite", ".sqlite3", ".db"}
_MOST = 200


@dataclass(frozen=True)
class Entry:
    """A file by name, its size in words, and what it is opened as."""

    name: str
    size: str
    source: str


def rating_files() -> list[Entry]:
    """Files of the working folder that may hold ratings, databases among them."""
    found = []
    for path in sorted(Path().iterdir())[: 10 * _MOST]:
        suffix = path.suffix.lower()
        if path.name.startswith(".") or suffix not in _TABLES | _DATABASES or not path.is_file():
            continue
        source = f"sqlite:///{path.name}" if suffix in _DATABASES else path.name
        found.append(Entry(path.name, _size(path.stat().st_size), source))
    return found[:_MOST]


def release_folders() -> list[str]:
    """Folders of the working folder that hold a release, the newest first."""
    found = [path for path in Path().iterdir() if not path.name.startswith(".") and (path / MANIFEST).is_file()]
    found.sort(key=lambda path: -path.stat().st_mtime)
    return [path.name for path in found[:_MOST]]


def _size(count: int) -> str:
    for unit in ("bytes", "KB", "MB", "GB"):
        if count < 1_000:
            return f"{count:.0f} {unit}"
        count = round(count / 1_000)
    return f"{count:,} TB"


PASSWORD = (
    "an address with a password would stand in pages and in the list of processes. Leave it out here, and put it into "
    "~/.pgpass or PGPASSWORD."
)


def tables_of(address: str) -> list[str]:
    """The tables and views that an address may read."""
    from sqlalchemy import inspect

    with _opened(address) as connection:
        found = inspect(connection)
        return sorted([*found.get_table_names(), *found.get_view_names()])


def columns_of(address: str, table: str) -> list[str]:
    """The columns of one of them."""
    from sqlalchemy import inspect

    with _opened(address) as connection:
        return [str(column["name"]) for column in inspect(connection).get_columns(table)]


def query_for(chosen: Choices) -> str:
    """The SELECT that reads the chosen columns of the chosen table, with names quoted where they must be."""
    from sqlalchemy import column, select, table
    from sqlalchemy.dialects import postgresql, sqlite

    names = [name for name in (chosen.user, chosen.item, chosen.rating) if name]
    statement: Any = select(*(column(name) for name in names)).select_from(table(chosen.table))
    dialects: Any = postgresql if chosen.source.startswith("postgres") else sqlite
    return (
        " ".join(str(statement.compile(dialect=dialects.dialect())).split())
        .replace("SELECT ", "select ")
        .replace(" FROM ", " from ")
    )


@contextmanager
def _opened(address: str) -> Iterator[Connection]:
    """A connection for reading; what goes wrong is said in one sentence without secrets."""
    from sqlalchemy.exc import SQLAlchemyError

    if "@" in address and ":" in address.partition("://")[2].partition("@")[0]:
        raise ParameterError(PASSWORD)
    database = Database.parse(address)
    if database.is_file and not database.path.is_file():
        raise DataError(f"{database} must exist, and does not. Check the path.")
    try:
        with database.engine("ro").connect() as connection:
            yield connection
    except SQLAlchemyError as error:
        raise DataError(
            f"{database} cannot be read: {database.reason(error)}. Check the address and who may read it."
        ) from None
