"""Where a database is, as a person writes it, and what may be said of it.

    sqlite:///ratings.db      postgresql://ada@db.example.org/ratings

An address may hold a password. It goes to the driver and nowhere else: `str()` names the kind, user, host and database,
and what a driver says about a failure is cut to one printable line without the address's secrets.
"""

from __future__ import annotations

import re
import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from urllib.parse import quote

from dpsr.errors import ParameterError

if TYPE_CHECKING:
    from sqlalchemy import URL, Engine

Mode = Literal["ro", "rw", "rwc"]
"""Read only; read and write; create if missing. PostgreSQL databases are never created."""

PATIENCE = 30
"""Seconds to wait for another writer."""

_ADVICE = "Write sqlite:///file.db, or postgresql://user@host/database; in a password, write @ as %40 and / as %2F."
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_DRIVERS = {"sqlite": "sqlite", "postgresql": "postgresql+psycopg", "postgres": "postgresql+psycopg"}


def is_address(text: str) -> bool:
    """Whether this is meant as a database address and not as a file."""
    return _ADDRESS.match(text) is not None


@dataclass(frozen=True, repr=False)
class Database:
    """A SQLite file or a PostgreSQL database."""

    _url: URL

    @classmethod
    def parse(cls, text: str) -> Database:
        """Read an address; a plain path is a SQLite file."""
        from sqlalchemy import URL, make_url

        if not is_address(text):
            return cls(URL.create("sqlite", database=text))
        try:
            url = make_url(text)
        except Exception:
            raise ParameterError(f"this is not a database address. {_ADVICE}") from None  # the cause may quote it
        kind = url.drivername.split("+")[0].lower()
        if kind not in _DRIVERS or "@" in f"{url.host}{url.database}":
            raise ParameterError(f"a database address is SQLite's or PostgreSQL's, this one is neither. {_ADVICE}")
        if kind == "sqlite" and (url.host or url.database in (None, "", ":memory:")):
            raise ParameterError(f"a SQLite address names a file after three slashes. {_ADVICE}")
        return cls(url.set(drivername=_DRIVERS[kind]))

    @property
    def is_file(self) -> bool:
        return self._url.drivername == "sqlite"

    @property
    def path(self) -> Path:
        """The file of a SQLite database."""
        return Path(self._url.database or "")

    def __str__(self) -> str:
        if self.is_file:
            return self.path.name
        user = f"{self._url.username}@" if self._url.username else ""
        host = self._url.host or self._url.query.get("host") or "localhost"
        port = f":{self._url.port}" if self._url.port else ""
        return f"postgresql://{user}{host}{port}/{self._url.database or ''}"

    __repr__ = __str__

    def engine(self, mode: Mode) -> Engine:
        """Connections that are opened when needed and closed at once, so that processes may fork."""
        from sqlalchemy import NullPool, create_engine

        if self.is_file:
            return create_engine("sqlite://", creator=lambda: self._open_file(mode), poolclass=NullPool)
        try:
            arguments = {"connect_timeout": 10, "application_name": "dpsr"}
            return create_engine(self._url, connect_args=arguments, poolclass=NullPool)
        except ModuleNotFoundError:
            raise ParameterError(
                "PostgreSQL is reached through psycopg, which is not installed. Run: pip install 'dpsr[postgres]'."
            ) from None

    def _open_file(self, mode: Mode) -> sqlite3.Connection:
        """In autocommit: transactions are begun by name, as `BEGIN IMMEDIATE` must be."""
        address = f"file:{quote(str(self.path))}?mode={mode}"
        return sqlite3.connect(address, uri=True, timeout=PATIENCE, isolation_level=None, check_same_thread=False)

    def reason(self, error: BaseException) -> str:
        """What a driver said, in one printable line without secrets."""
        said = str(getattr(error, "orig", None) or error).strip().split("\n")[0]
        for secret in self._secrets():
            said = said.replace(secret, "***")
        return "".join(c if c.isprintable() else " " for c in said)[:200].strip().rstrip(".")

    def _secrets(self) -> list[str]:
        hidden = [str(self._url.password or "")]
        hidden += [str(value) for key, value in self._url.query.items() if "pass" in key.lower()]
        return [spelling for secret in hidden if secret for spelling in (secret, quote(secret, safe=""))]
