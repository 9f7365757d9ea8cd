"""One transaction of a ledger on either database, in which a lock means something and a power cut takes nothing back.

Statements are written once, with `:name` for a value. SQLite's writers queue at `BEGIN IMMEDIATE`, PostgreSQL's at an
advisory lock, which needs no right to update rows: a team's roles can be limited to SELECT and INSERT.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from dpsr.database import PATIENCE, Database, Mode

_PLACE = re.compile(r"(?<![:\w]):(\w+)")


@dataclass(frozen=True)
class Session:
    """A transaction that is under way."""

    database: Database
    connection: Any
    """The driver's own: `sqlite3.Connection` or `psycopg.Connection`."""

    @property
    def is_sqlite(self) -> bool:
        return self.database.is_file

    def run(self, statement: str, **values: Any) -> None:
        """Execute one statement."""
        self._execute(statement, values)

    def rows(self, statement: str, **values: Any) -> list[dict[str, Any]]:
        """The answer to one statement."""
        cursor = self._execute(statement, values)
        names = [column[0] for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    def _execute(self, statement: str, values: dict[str, Any]) -> Any:
        if self.is_sqlite:
            return self.connection.execute(statement, values)
        if not values:
            return self.connection.execute(statement)
        return self.connection.execute(_PLACE.sub(r"%(\1)s", statement.replace("%", "%%")), values)

    def lock(self, name: str) -> None:
        """Writers of one data set queue here; SQLite's have queued already."""
        if not self.is_sqlite:
            self.rows("SELECT pg_advisory_xact_lock(hashtextextended(:name, 4))", name=name)


@contextmanager
def writing(database: Database, mode: Mode = "rw") -> Iterator[Session]:
    """A transaction that is committed at the end, or not at all."""
    if database.is_file:
        begin = ["PRAGMA synchronous = EXTRA", "BEGIN IMMEDIATE"]  # the folder too is forced to disk
    else:
        begin = [
            "BEGIN ISOLATION LEVEL READ COMMITTED",  # reads what was there when the lock came
            f"SET LOCAL lock_timeout = '{PATIENCE}s'",
            "SET LOCAL synchronous_commit = on",
        ]
    with _transaction(database, mode, begin) as session:
        yield session


@contextmanager
def reading(database: Database) -> Iterator[Session]:
    """A transaction in which everything is of one moment."""
    begin = ["BEGIN"] if database.is_file else ["BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"]
    with _transaction(database, "rw", begin) as session:
        yield session


@contextmanager
def _transaction(database: Database, mode: Mode, begin: list[str]) -> Iterator[Session]:
    with closing(database.connect(mode)) as connection:
        session = Session(database, connection)
        for statement in begin:
            session.run(statement)
        try:
            yield session
        except BaseException:
            with suppress(*database.errors):
                session.run("ROLLBACK")
            raise
        session.run("COMMIT")


def copy_of(database: Database, target: str) -> None:
    """What is committed in a SQLite file, as a new file; a writer that waits to commit does not disturb it."""
    with closing(database.connect("ro")) as source, closing(sqlite3.connect(target)) as copy:
        if isinstance(source, sqlite3.Connection):
            source.backup(copy)
