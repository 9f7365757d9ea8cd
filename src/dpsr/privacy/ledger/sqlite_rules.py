"""The table on SQLite, and what SQLite itself refuses.

A CHECK that is NULL passes and a column takes values of any type, so every check asks for the type first. `GLOB` stops
at a zero byte; lengths in characters and in bytes are therefore compared. Decimal numbers without leading zeros compare
as texts of one length. SQLite can neither multiply long numbers nor compute a SHA-256: whether a charge fits the
budget, a release its charge and a digest its entry is left to the reader. Whoever may write to the file could drop the
triggers anyway.
"""

from __future__ import annotations

from dpsr.certify.amounts import LONGEST as LONGEST_AMOUNT
from dpsr.privacy.ledger.event import (
    APPEND_ONLY,
    COLUMNS,
    NO_CHARGE,
    OLD_COLUMNS,
    OUT_OF_ORDER,
    PORTABLE,
    TABLE,
    WRONG_TIME,
)
from dpsr.privacy.ledger.names import LONGEST as LONGEST_NAME
from dpsr.privacy.ledger.rules import CLOCK, HEX, LONGEST
from dpsr.privacy.ledger.session import Session

_CONTROL = "char(1) || '-' || char(31) || char(127) || '-' || char(159)"
_OLD_FREE = {"charge"}
"""Free text in format 1."""


def _ascii(name: str) -> str:
    return f"typeof({name}) = 'text' AND length(CAST({name} AS BLOB)) = length({name})"


def _amount(name: str) -> str:
    """`3` or `1/10`: not negative, no leading zeros, nothing over 1. Lowest terms are the reader's business."""
    return (
        f"{_ascii(name)} AND length({name}) BETWEEN 1 AND {LONGEST_AMOUNT} AND {name} NOT GLOB '*[^0-9/]*' "
        f"AND {name} GLOB '[0-9]*' AND ({name} = '0' OR {name} NOT GLOB '0*') AND {name} NOT GLOB '*/*/*' "
        f"AND {name} NOT GLOB '*/' AND {name} NOT GLOB '*/0*' AND {name} NOT GLOB '*/1'"
    )


def _below_one(name: str) -> str:
    top, bottom = f"substr({name}, 1, instr({name}, '/') - 1)", f"substr({name}, instr({name}, '/') + 1)"
    shorter = f"length({top}) < length({bottom}) OR (length({top}) = length({bottom}) AND {top} < {bottom})"
    return f"{name} = '0' OR ({name} GLOB '*/*' AND ({shorter}))"


def _hex(name: str, digits: int) -> str:
    form = f"{_ascii(name)} AND length({name}) = {digits} AND {name} NOT GLOB '*[^0-9a-f]*'"
    free = f"format = 1 AND typeof({name}) = 'text' OR " if name in _OLD_FREE else ""
    return f"{name} IS NULL OR {free}({form})"


def _line(name: str, most: int, least: int = 0) -> str:
    form = (
        f"length({name}) BETWEEN {least} AND {most} AND instr({name}, char(0)) = 0 "
        f"AND {name} NOT GLOB '*[' || {_CONTROL} || ']*'"
    )
    return f"typeof({name}) = 'text' AND (format = 1 OR ({form}))"


CHECKS = {
    **PORTABLE,
    "dpsr_whole_numbers": "typeof(format) = 'integer' AND typeof(number) = 'integer'",
    "dpsr_epsilon_is_an_amount": _amount("epsilon"),
    "dpsr_delta_is_an_amount": _amount("delta"),
    "dpsr_budget_has_delta_below_one": f"kind <> 'budget' OR {_below_one('delta')}",
    "dpsr_at_is_a_time": f"{_ascii('at')} AND strftime('%Y-%m-%dT%H:%M:%S+00:00', at) IS at",
    "dpsr_dataset_is_a_line": _line("dataset", LONGEST_NAME, 1),
    **{f"dpsr_{name}_is_a_line": _line(name, most) for name, most in LONGEST.items()},
    **{f"dpsr_{name}_is_hexadecimal": _hex(name, digits) for name, digits in HEX.items()},
}

_TABLE = f"""CREATE TABLE {TABLE} (
    format INTEGER NOT NULL, dataset TEXT NOT NULL, number INTEGER NOT NULL, kind TEXT NOT NULL, unit TEXT,
    at TEXT NOT NULL, who TEXT NOT NULL, epsilon TEXT NOT NULL, delta TEXT NOT NULL, method TEXT NOT NULL,
    note TEXT NOT NULL, charge TEXT, certificate TEXT, manifest TEXT, fingerprint TEXT, digest TEXT NOT NULL,
    {", ".join(f"CONSTRAINT {name} CHECK ({check})" for name, check in CHECKS.items())},
    CONSTRAINT dpsr_one_release_per_charge UNIQUE (charge, kind),
    PRIMARY KEY (dataset, number)
) WITHOUT ROWID"""

_LAST = f"SELECT max(number) FROM {TABLE} WHERE dataset = NEW.dataset"
_LATEST = f"SELECT max(at) FROM {TABLE} WHERE dataset = NEW.dataset AND format = 2"
_TWICE = f"SELECT 1 FROM {TABLE} WHERE charge = NEW.charge AND kind = NEW.kind"
_PAID = (
    f"SELECT 1 FROM {TABLE} WHERE kind = 'charge' AND charge = NEW.charge AND dataset = NEW.dataset "
    "AND method = NEW.method"
)
_DAYS = CLOCK.days
_WHEN = {
    "dpsr_no_update": ("UPDATE", "1", APPEND_ONLY),
    "dpsr_no_delete": ("DELETE", "1", APPEND_ONLY),
    # INSERT OR REPLACE would delete a row without asking the trigger above
    "dpsr_no_replace": ("INSERT", f"NEW.number <= coalesce(({_LAST}), 0) OR EXISTS ({_TWICE})", APPEND_ONLY),
    "dpsr_next_in_line": (
        "INSERT",
        f"NEW.number IS NOT coalesce(({_LAST}), 0) + 1 OR NEW.format IS NOT 2",
        OUT_OF_ORDER,
    ),
    "dpsr_paid_release": ("INSERT", f"NEW.kind = 'release' AND NOT EXISTS ({_PAID})", NO_CHARGE),
    "dpsr_time_is_now": (
        "INSERT",
        f"coalesce(abs(julianday(NEW.at) - julianday('now')) > {_DAYS}, 1) "
        f"OR julianday(NEW.at) < julianday(({_LATEST})) - {_DAYS}",
        WRONG_TIME,
    ),
}
_TRIGGERS = {
    name: f"CREATE TRIGGER {name} BEFORE {verb} ON {TABLE} WHEN {when} BEGIN SELECT RAISE(ABORT, '{words}'); END"
    for name, (verb, when, words) in _WHEN.items()
}
CREATE = (_TABLE, *_TRIGGERS.values())


def columns(session: Session) -> list[str]:
    """The names of all columns, hidden ones too; none if there is no such table, or a view in its place."""
    if not session.rows("SELECT 1 FROM sqlite_master WHERE name = :name AND type = 'table'", name=TABLE):
        return []
    return [str(row["name"]) for row in session.rows(f"SELECT name FROM pragma_table_xinfo('{TABLE}')")]


def rebuild(old: bool) -> list[str]:
    """A CHECK cannot be added to a table, so a new one takes its place."""
    names = OLD_COLUMNS if old else COLUMNS
    into, values = (["format"], ["1"]) if old else ([], [])
    return [
        *(f"DROP TRIGGER IF EXISTS {name}" for name in _TRIGGERS),
        f"ALTER TABLE {TABLE} RENAME TO {TABLE}_before",
        _TABLE,
        f"INSERT INTO {TABLE} ({', '.join([*names, *into])}) SELECT {', '.join([*names, *values])} FROM {TABLE}_before",
        f"DROP TABLE {TABLE}_before",
        *_TRIGGERS.values(),
    ]


def missing(session: Session) -> list[str]:
    """What is not in the file word for word as we write it, and triggers that are not ours."""
    rows = session.rows("SELECT type, name, sql FROM sqlite_master WHERE tbl_name = :name", name=TABLE)
    held = {row["name"]: row["sql"] for row in rows if row["type"] in ("table", "trigger")}
    ours = {TABLE: _TABLE, **_TRIGGERS}
    return [name for name in {**ours, **held} if held.get(name) != ours.get(name)]
