"""Where a database is, as a person writes it, and what may be said of it.

    sqlite:///ratings.db      postgresql://ada@db.example.org/ratings

An address may hold a password. It goes to the driver and nowhere else: `str()` names the kind, user, host and database,
and what a driver says about a failure is cut to one printable line without the address's secrets.
"""

from __future__ import annotations

import re
import sqlite3
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from urllib.parse import quote

from dpsr.errors import ParameterError

if TYPE_CHECKING:
    from psycopg import Connection as PostgresConnection
    from sqlalchemy import URL, Engine

Mode = Literal["ro", "rw", "rwc"]
"""Read only; read and write; create if missing. PostgreSQL databases are never created."""

PATIENCE = 30
"""Seconds to wait for another writer."""

_ADVICE = "Write sqlite:///file.db, or postgresql://user@host/database; in a password, write @ as %40 and / as %2F."
_NO_DRIVER = "PostgreSQL is reached through psycopg, which is not installed. Run: pip install 'dpsr[postgres]'."
_ARGUMENTS = {"connect_timeout": 10, "application_name": "dpsr"}
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_DRIVERS = {"sqlite": "sqlite", "postgresql": "postgresql+psycopg", "postgres": "postgresql+psycopg"}


def is_address(text: str) -> bool:
    """Whether this is meant as a database address and not as a file."""
    return _ADDRESS.match(text) is not None


@dataclass(frozen=True, repr=False)
class Database:
    """A SQLite file or a PostgreSQL database. A file's path is understood without SQLAlchemy, which is slow to load."""

    _file: Path | None
    _url: URL | None

    @classmethod
    def parse(cls, text: str | PathLike[str]) -> Database:
        """Read an address; a plain path is a SQLite file."""
        if not isinstance(text, str | PathLike):
            raise ParameterError(f"a database is given by its address, found {type(text).__name__}. {_ADVICE}")
        text = fspath(text)
        if not text.strip():
            raise ParameterError(f"the address of a database is empty. {_ADVICE}")
        if not is_address(text):
            return cls(Path(text), None)
        from sqlalchemy import make_url

        try:
            url = make_url(text)
        except Exception:
            raise ParameterError(f"this is not a database address. {_ADVICE}") from None  # the cause may quote it
        kind = url.drivername.split("+")[0].lower()
        if kind not in _DRIVERS or "@" in f"{url.host}{url.database}":
            raise ParameterError(f"a database address is SQLite's or PostgreSQL's, this one is neither. {_ADVICE}")
        if kind != "sqlite":
            return cls(None, url.set(drivername=_DRIVERS[kind]))
        if url.host or url.database in (None, "", ":memory:"):
            raise ParameterError(f"a SQLite address names a file after three slashes. {_ADVICE}")
        return cls(Path(url.database or ""), None)

    @property
    def is_file(self) -> bool:
        return self._file is not None

    @property
    def path(self) -> Path:
        """The file of a SQLite database."""
        return self._file or Path()

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        """What its driver raises; nothing, where there is no driver."""
        if self._url is None:
            return (sqlite3.Error,)
        try:
            import psycopg
        except ModuleNotFoundError:
            return ()
        return (psycopg.Error,)

    def __str__(self) -> str:
        if self._url is None:
            return self.path.name
        user = f"{self._url.username}@" if self._url.username else ""
        host = self._url.host or self._url.query.get("host") or "localhost"
        port = f":{self._url.port}" if self._url.port else ""
        return f"postgresql://{user}{host}{port}/{self._url.database or ''}"

    __repr__ = __str__

    def engine(self, mode: Mode) -> Engine:
        """Connections that are opened when needed and closed at once, so that processes may fork."""
        from sqlalchemy import NullPool, create_engine

        if self._url is None:
            return create_engine("sqlite://", creator=lambda: self._open_file(mode), poolclass=NullPool)
        try:
            return create_engine(self._url, connect_args=_ARGUMENTS, poolclass=NullPool)
        except ModuleNotFoundError:
            raise ParameterError(_NO_DRIVER) from None

    def connect(self, mode: Mode) -> sqlite3.Connection | PostgresConnection:
        """One connection of the driver itself, in autocommit: transactions are begun by name."""
        if self._url is None:
            return self._open_file(mode)
        try:
            import psycopg
        except ModuleNotFoundError:
            raise ParameterError(_NO_DRIVER) from None
        _, arguments = self._url.get_dialect()().create_connect_args(self._url)
        return psycopg.connect(**{**arguments, **_ARGUMENTS, "client_encoding": "utf8", "autocommit": True})

    def _open_file(self, mode: Mode) -> sqlite3.Connection:
        """In autocommit: transactions are begun by name, as `BEGIN IMMEDIATE` must be."""
        address = f"file:{quote(str(self.path))}?mode={mode}"
        return sqlite3.connect(address, uri=True, timeout=PATIENCE, isolation_level=None, check_same_thread=False)

    def reason(self, error: BaseException) -> str:
        """What a driver said, in one printable line without secrets; SQLite does not say why a file is not opened."""
        said = str(getattr(error, "orig", None) or error).strip().split("\n")[0]
        if self._url is None and "unable to open" in said and not self.path.parent.is_dir():
            said = f"there is no folder {self.path.parent.name}"
        elif self._url is None and "unable to open" in said and self.path.is_dir():
            said = "it is a folder"
        for secret in self._secrets():
            said = said.replace(secret, "***")
        return "".join(c if c.isprintable() else " " for c in said)[:200].strip().rstrip(".")

    def _secrets(self) -> list[str]:
        if self._url is None:
            return []
        hidden = [str(self._url.password or "")]
        hidden += [str(value) for key, value in self._url.query.items() if "pass" in key.lower()]
        return [spelling for secret in hidden if secret for spelling in (secret, quote(secret, safe=""))]
