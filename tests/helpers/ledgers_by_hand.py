"""Ledgers touched by other hands than dpsr's: rows put in with plain SQL, guards removed, and a ledger of format 1.

The rows of format 1 were written by the version that wrote them, digests included.
"""

import shutil
import sqlite3
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime

import psycopg

from dpsr.privacy.ledger.event import COLUMNS, Event

REFUSALS = (sqlite3.Error, psycopg.Error)
"""What the databases say no with."""


def is_sqlite(address):
    return not address.startswith("postgresql")


@contextmanager
def by_hand(address):
    """A plain connection, as any program opens one; statements are committed one by one."""
    connection = sqlite3.connect(address) if is_sqlite(address) else psycopg.connect(address)
    try:
        connection.isolation_level = None
        if not is_sqlite(address):
            connection.autocommit = True
        yield connection
    finally:
        connection.close()


def run(address, *statements):
    """What the last statement gives; all of them over one connection, for each would cost PostgreSQL a process."""
    with by_hand(address) as connection:
        for statement in statements:
            cursor = connection.execute(statement)
        return cursor.fetchall() if cursor.description else []


def insert(address, row):
    """Put a row in, whatever it holds."""
    with by_hand(address) as connection:
        put(connection, row)


def put(connection, row):
    """Put a row in over a connection that is open."""
    mark = "?" if isinstance(connection, sqlite3.Connection) else "%s"
    marks = ", ".join([mark] * len(row))
    connection.execute(f"insert into dpsr_events ({', '.join(row)}) values ({marks})", tuple(row.values()))


def copy_of(address, postgres, folder):
    """A database that holds the same, to do with as one likes."""
    if not is_sqlite(address):
        return postgres.copy_of(address.split("@/")[1].split("?")[0])
    return str(shutil.copy(address, folder / "copy.db"))


def next_entry(ledger, dataset="films", **facts):
    """What dpsr would write next, with `facts` of one's own, and the digest that fits: anybody can compute it."""
    history = ledger.history(dataset)
    now = datetime.now(UTC).isoformat(timespec="seconds")
    plain = {"dataset": dataset, "number": len(history) + 1, "kind": "charge", "at": now, "who": "eve"}
    plain |= {"epsilon": "1/10", "delta": "0", "method": "default", "note": "", "charge": "e" * 32, "format": 2}
    plain |= dict.fromkeys(("certificate", "unit", "manifest", "fingerprint")) | facts
    return {name: plain[name] for name in COLUMNS if name != "digest"} | {
        "digest": facts.get("digest") or digest(plain, history[-1].digest if history else "")
    }


def digest(row, previous):
    """The chain's digest for a row of whatever content."""

    class Forged(Event):
        def row(self):
            return {**row, "digest": ""}

    return Forged(**{name: row[name] for name in ("dataset", "number", "kind", "at", "who", "epsilon", "delta")},
                  format=row["format"]).digest_after(previous)  # fmt: skip


def rechained(events):
    """The same entries with digests that fit one another."""
    chain, previous = [], ""
    for event in events:
        chain.append(replace(event, digest=event.digest_after(previous)))
        previous = chain[-1].digest
    return chain


def remove_triggers(address):
    if is_sqlite(address):
        names = run(address, "select name from sqlite_master where type = 'trigger'")
        run(address, *(f"drop trigger {name}" for (name,) in names))
    else:
        run(address, "alter table dpsr_events disable trigger all")


def remove_guards(address):
    """All constraints and triggers gone, the rows as they are: what the owner of a database can do."""
    remove_triggers(address)
    if is_sqlite(address):
        names = ", ".join(COLUMNS)
        copied = f"create table copy as select {names} from dpsr_events"
        run(address, copied, "drop table dpsr_events", "alter table copy rename to dpsr_events")
        return
    names = run(
        address, "select conname from pg_constraint where conrelid = 'dpsr_events'::regclass and contype in ('c', 'u')"
    )
    run(address, *(f"alter table dpsr_events drop constraint {name}" for (name,) in names))


OLD_TABLE = """CREATE TABLE dpsr_events (
    dataset VARCHAR(120) NOT NULL,
    number INTEGER NOT NULL,
    kind VARCHAR(10) NOT NULL CHECK (kind in ('budget', 'charge', 'release')),
    at VARCHAR(32) NOT NULL,
    who VARCHAR(120) NOT NULL,
    epsilon TEXT NOT NULL,
    delta TEXT NOT NULL,
    method TEXT NOT NULL,
    note TEXT NOT NULL,
    charge VARCHAR(32),
    certificate VARCHAR(64),
    digest VARCHAR(64) NOT NULL,
    PRIMARY KEY (dataset, number),
    CONSTRAINT dpsr_budget_comes_first CHECK ((kind = 'budget') = (number = 1)),
    CONSTRAINT dpsr_one_release_per_charge UNIQUE (charge, kind)
)"""
OLD_SQLITE = [
    OLD_TABLE + " WITHOUT ROWID",
    *(
        f"CREATE TRIGGER dpsr_no_{verb.lower()} BEFORE {verb} ON dpsr_events "
        "BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END"
        for verb in ("UPDATE", "DELETE")
    ),
    "CREATE TRIGGER dpsr_no_replace BEFORE INSERT ON dpsr_events WHEN "
    "NEW.number <> (SELECT coalesce(max(number), 0) + 1 FROM dpsr_events WHERE dataset = NEW.dataset) OR "
    "EXISTS (SELECT 1 FROM dpsr_events WHERE charge = NEW.charge AND kind = NEW.kind) "
    "BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END",
]
OLD_POSTGRESQL = [
    OLD_TABLE,
    "CREATE OR REPLACE FUNCTION dpsr_append_only() RETURNS trigger LANGUAGE plpgsql AS "
    "$$ BEGIN RAISE EXCEPTION 'the ledger is append-only'; END $$",
    "CREATE TRIGGER dpsr_no_change BEFORE UPDATE OR DELETE ON dpsr_events "
    "FOR EACH ROW EXECUTE FUNCTION dpsr_append_only()",
    "CREATE TRIGGER dpsr_no_truncate BEFORE TRUNCATE ON dpsr_events "
    "FOR EACH STATEMENT EXECUTE FUNCTION dpsr_append_only()",
]
OLD_COLUMNS = (
    "dataset", "number", "kind", "at", "who", "epsilon", "delta", "method", "note", "charge", "certificate", "digest",
)  # fmt: skip
TENTH, MILLIONTH = "3602879701896397/36028797018963968", "944473296573929/9444732965739290427392"
OLD_ROWS = [
    ("films", 1, "budget", "2026-05-03T09:00:00+00:00", "officer@bureau", "3", "1/1000000", "", "board meeting, 3 May",
     None, None, "b5e6cfc0f1ef152210a9e7db8ff746bc632f0bd6d491a9bc82792924e942c521"),
    ("films", 2, "charge", "2026-05-03T09:07:00+00:00", "ada@desk", "1/10", "0", "default", "for the website",
     "a1" * 16, None, "8b9fe3b2b4d46345792e8d52fbb0d95d868b79529086052d705530b0e3019ea0"),
    ("films", 3, "release", "2026-05-03T09:14:00+00:00", "ada@desk", "7205759403792793/72057594037927936", "0",
     "default", "", "a1" * 16, "71bb611ac8af464711cf5bd155992bee5ab43b0b5f20bac441a5017c6147d8b5",
     "8773eaabfb8c0720b17068a1bd3ee2a01c9c870f7fc124707198d00dafa3496a"),
    ("films", 4, "charge", "2026-05-03T09:21:00+00:00", "ada@desk", TENTH, MILLIONTH, "paper", "two\nlines",
     "b2" * 16, None, "c0017340018cbdf3c8787f10fb9d66caaeea0b826287ae1a274f682c3cf2887e"),
    ("caf\u00e9", 1, "budget", "2026-05-03T09:28:00+00:00", "officer@bureau", "2", "0", "", "",
     None, None, "0a912a06754d65f43855cae94ca3282f7ca0751c1edd518f5a95d72fdb66dcd3"),
    ("cafe\u0301", 1, "budget", "2026-05-03T09:35:00+00:00", "officer@bureau", "1", "0", "", "",
     None, None, "7dc09ea4fe51a6a1a44b118472109386e1d305a74030e30908a6f20e6a3f869f"),
    ("cafe\u0301", 2, "charge", "2026-05-03T09:42:00+00:00", "grace@desk", "1/4", "0", "default", "",
     "c3" * 16, None, "6a2c38a42efa1321609e101d36a68f148a92f67d3253a74a0619c3b9a131db97"),
]  # fmt: skip
"""Format 1: two charges of which one was released, a note of two lines, and one name in two spellings."""


def make_old(address):
    """A ledger as the version before made it."""
    run(address, *(OLD_SQLITE if is_sqlite(address) else OLD_POSTGRESQL))
    with by_hand(address) as connection:
        for row in OLD_ROWS:
            put(connection, dict(zip(OLD_COLUMNS, row, strict=True)))


def old_rows(address):
    """The columns of format 1, of every row, in order."""
    rows = run(address, f"select {', '.join(OLD_COLUMNS)} from dpsr_events")
    return sorted(rows, key=lambda row: row[:2])
