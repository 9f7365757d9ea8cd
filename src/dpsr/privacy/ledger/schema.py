"""The one table of a ledger, `dpsr_events`: which format it has, and what both databases are told to refuse.

Every row is an entry of one data set, numbered 1, 2, 3, ... and chained.

    budget    number 1 of every data set: what may be spent in all, and for which unit of protection
    charge    spent, before any noise was drawn; never taken back
    release   the certificate and the manifest that a charge paid for

What a CHECK can say is a CHECK; the rest are triggers. SQLite cannot compare fractions or compute a SHA-256, PostgreSQL
can. Whatever they let pass, the reader checks again (`rules`).
"""

from __future__ import annotations

from collections.abc import Iterable

from dpsr.errors import LedgerError
from dpsr.privacy.ledger import postgresql_rules, sqlite_rules
from dpsr.privacy.ledger.event import COLUMNS, FORMAT, OLD_COLUMNS, TABLE
from dpsr.privacy.ledger.messages import foreign_columns
from dpsr.privacy.ledger.session import Session


def format_of(session: Session) -> int:
    """Which format the table has, by its columns: 1 or 2; 0 if there is none. An error if it has other columns."""
    names = set(sqlite_rules.columns(session) if session.is_sqlite else postgresql_rules.columns(session))
    if not names:
        return 0
    if names == set(COLUMNS):
        return FORMAT
    if names == set(OLD_COLUMNS):
        return 1
    raise LedgerError(foreign_columns(session.database, sorted(names ^ set(COLUMNS))))


def create(session: Session) -> None:
    """The table with everything that guards it."""
    _run(session, sqlite_rules.CREATE if session.is_sqlite else postgresql_rules.CREATE)


def keep_others_out(session: Session) -> None:
    """Nobody reads or writes the table until this transaction ends; SQLite's writers are alone already."""
    if not session.is_sqlite:
        session.run(f"LOCK TABLE {TABLE} IN ACCESS EXCLUSIVE MODE")


def bring_up_to_date(session: Session) -> None:
    """The table as `create` makes it, with the rows it has: those of format 1 keep every cell and are marked."""
    old = format_of(session) == 1
    _run(session, sqlite_rules.rebuild(old) if session.is_sqlite else postgresql_rules.rebuild(session, old))


def missing_guards(session: Session) -> list[str]:
    """The names of constraints and triggers that are not as `create` makes them."""
    return sqlite_rules.missing(session) if session.is_sqlite else postgresql_rules.missing(session)


def _run(session: Session, statements: Iterable[str]) -> None:
    for statement in statements:
        session.run(statement)
