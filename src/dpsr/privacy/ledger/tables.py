"""The one table of a ledger, append-only by decree of the database itself.

Every row is an event of one data set, numbered 1, 2, 3, ... and chained: its `digest` is the SHA-256 of the row and of
the digest before it, so that a history edited by somebody who removed the triggers no longer adds up.

    budget    number 1 of every data set: what may be spent in all
    charge    spent, before any noise was drawn; never taken back
    release   the certificate that a charge paid for

Amounts are texts, exact fractions such as `1/10`: no database has to add them up.
"""

from __future__ import annotations

from sqlalchemy import (
    DDL,
    CheckConstraint,
    Column,
    Connection,
    Engine,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    event,
    text,
)

from dpsr.database import PATIENCE

REFUSED = "the ledger is append-only"

metadata = MetaData()

events = Table(
    "dpsr_events",
    metadata,
    Column("dataset", String(120), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("kind", String(10), CheckConstraint("kind in ('budget', 'charge', 'release')"), nullable=False),
    Column("at", String(32), nullable=False),
    Column("who", String(120), nullable=False),
    Column("epsilon", Text, nullable=False),
    Column("delta", Text, nullable=False),
    Column("method", Text, nullable=False),
    Column("note", Text, nullable=False),
    Column("charge", String(32)),
    Column("certificate", String(64)),
    Column("digest", String(64), nullable=False),
    Column("manifest", String(64)),
    CheckConstraint("(kind = 'budget') = (number = 1)", name="dpsr_budget_comes_first"),
    UniqueConstraint("charge", "kind", name="dpsr_one_release_per_charge"),
    sqlite_with_rowid=False,
)

_SQLITE = (
    *(
        f"CREATE TRIGGER dpsr_no_{verb.lower()} BEFORE {verb} ON dpsr_events "
        f"BEGIN SELECT RAISE(ABORT, '{REFUSED}'); END"
        for verb in ("UPDATE", "DELETE")
    ),
    # INSERT OR REPLACE would delete a row without asking the trigger above
    "CREATE TRIGGER dpsr_no_replace BEFORE INSERT ON dpsr_events WHEN "
    "NEW.number <> (SELECT coalesce(max(number), 0) + 1 FROM dpsr_events WHERE dataset = NEW.dataset) OR "
    "EXISTS (SELECT 1 FROM dpsr_events WHERE charge = NEW.charge AND kind = NEW.kind) "
    f"BEGIN SELECT RAISE(ABORT, '{REFUSED}'); END",
)
_POSTGRESQL = (
    "CREATE OR REPLACE FUNCTION dpsr_append_only() RETURNS trigger LANGUAGE plpgsql AS "
    f"$$ BEGIN RAISE EXCEPTION '{REFUSED}'; END $$",
    "CREATE TRIGGER dpsr_no_change BEFORE UPDATE OR DELETE ON dpsr_events "
    "FOR EACH ROW EXECUTE FUNCTION dpsr_append_only()",
    "CREATE TRIGGER dpsr_no_truncate BEFORE TRUNCATE ON dpsr_events "
    "FOR EACH STATEMENT EXECUTE FUNCTION dpsr_append_only()",
)
for _dialect, _statements in (("sqlite", _SQLITE), ("postgresql", _POSTGRESQL)):
    for _statement in _statements:
        event.listen(events, "after_create", DDL(_statement).execute_if(dialect=_dialect))  # type: ignore[no-untyped-call]


def settle(engine: Engine) -> Engine:
    """Transactions in which a lock means something, and which a power cut cannot take back."""
    if engine.dialect.name == "postgresql":
        return engine.execution_options(isolation_level="READ COMMITTED")  # reads what was there when the lock came

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        writing = connection.get_execution_options().get("writing", False)
        if writing:
            connection.exec_driver_sql("PRAGMA synchronous = EXTRA")  # the folder too is forced to disk
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")

    return engine


def lock(connection: Connection, dataset: str) -> None:
    """Writers of one data set queue here. SQLite's do at `BEGIN IMMEDIATE`.

    An advisory lock needs no right to update rows, so a team's roles can be limited to SELECT and INSERT.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(text(f"SET LOCAL lock_timeout = '{PATIENCE}s'"))
        connection.execute(text("SET LOCAL synchronous_commit = on"))
        connection.execute(text("SELECT pg_advisory_xact_lock(hashtextextended(:name, 4))"), {"name": dataset})


def read_snapshot(connection: Connection) -> None:
    """Everything read from here on is of one moment. SQLite's transactions are like that."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"))
