"""Bringing a ledger up to date in one transaction: all of it or nothing, and not a charge lost.

    1. lock, so that nobody charges meanwhile
    2. read every history by the rules; a broken one is not migrated
    3. SQLite: copy the file as it is to `ledger.db.before-migration`
    4. give the table today's columns, constraints and triggers; rows of format 1 are marked and keep every cell
    5. read again, compare cell by cell, commit

The digests of old entries still check, and new entries go on from them. A ledger whose guards were dropped gets them
back in the same way.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from dpsr.database import Database
from dpsr.errors import LedgerError
from dpsr.privacy.ledger.event import COLUMNS, FORMAT, OLD_COLUMNS, TABLE
from dpsr.privacy.ledger.ledger import Ledger
from dpsr.privacy.ledger.log import history_of
from dpsr.privacy.ledger.names import look_alikes
from dpsr.privacy.ledger.schema import bring_up_to_date, format_of, keep_others_out, missing_guards
from dpsr.privacy.ledger.session import Session, copy_of, writing
from dpsr.quoting import quoted_list

SUFFIX = ".before-migration"


@dataclass(frozen=True)
class Migration:
    """What was done: how many entries of how many data sets, where the copy is, and which names look alike."""

    done: bool
    datasets: int
    entries: int
    copy: Path | None
    look_alikes: list[tuple[str, str]]


def migrate(url: str) -> Migration:
    """Bring the ledger at `url` to the format that this version writes. Only its owner can."""
    ledger = Ledger.open(url)
    database = ledger.database
    with ledger.speaking(), writing(database) as session:
        keep_others_out(session)
        found = format_of(session)
        names = OLD_COLUMNS if found == 1 else COLUMNS
        rows = _rows(session, names)
        datasets = _believed(rows)
        if found == FORMAT and not missing_guards(session):
            return Migration(False, len(datasets), len(rows), None, look_alikes(datasets))
        copy = _copied(database) if database.is_file else None
        bring_up_to_date(session)
        missing = missing_guards(session)
        if _rows(session, names) != rows or _believed(_rows(session, COLUMNS)) != datasets or missing:
            raise LedgerError(
                f"{database} could not be brought up to date and was left as it is, because "
                f"{quoted_list(missing) or 'its rows'} would not be as dpsr makes them. Let its owner remove "
                "what is not dpsr's, and try again."
            )
    return Migration(True, len(datasets), len(rows), copy, look_alikes(datasets))


def _rows(session: Session, names: tuple[str, ...]) -> list[dict[str, Any]]:
    return session.rows(f"SELECT {', '.join(names)} FROM {TABLE} ORDER BY dataset, number")


def _believed(rows: list[dict[str, Any]]) -> list[str]:
    """The names of all data sets, if every history is lawful."""
    names = list(dict.fromkeys(row["dataset"] for row in rows))
    for name in names:
        history_of(str(name), (row for row in rows if row["dataset"] == name))
    return names


def _copied(database: Database) -> Path:
    """A copy beside the ledger, whole or not there, under a name that is free."""
    path = database.path
    target = next(
        one for one in (Path(f"{path}{SUFFIX}{f'-{k}' if k > 1 else ''}") for k in count(1)) if not one.exists()
    )
    draft = Path(f"{target}.partial")
    draft.unlink(missing_ok=True)
    copy_of(database, str(draft))
    shutil.copymode(path, draft)
    with draft.open("rb") as stream:
        os.fsync(stream.fileno())
    draft.rename(target)
    return target
