"""Against the ledger: rows by hand with a team's rights, rewritten histories, names that look alike, races."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import ledgers_by_hand
from certificates import certificate
from racers import race

from benchmarks.attack.attempt import Attempt, World
from dpsr import DPSR
from dpsr.data import realistic
from dpsr.errors import DpsrError
from dpsr.pipeline.account import Account
from dpsr.pipeline.publish import publish
from dpsr.pipeline.verification import verify_release
from dpsr.privacy.ledger.event import COLUMNS
from dpsr.privacy.ledger.examination import examine
from dpsr.privacy.ledger.ledger import Ledger

ROWS: dict[str, dict[str, Any]] = {
    "a negative charge": {"epsilon": "-1/2"},
    "a negative delta": {"delta": "-1/2"},
    "a charge of nothing": {"epsilon": "0"},
    "minus nothing": {"epsilon": "-0"},
    "no number": {"epsilon": "nan"},
    "a fraction over nothing": {"epsilon": "1/0"},
    "a negative denominator": {"epsilon": "1/-2"},
    "a real number": {"epsilon": "-0.5"},
    "digits of another alphabet": {"epsilon": "\u0661/\u0662"},
    "a space before": {"epsilon": " -1"},
    "a refund": {"kind": "refund"},
    "a second budget": {"kind": "budget", "epsilon": "100", "charge": None, "unit": "value"},
    "a gap": {"number": 99},
    "an earlier place": {"number": 2},
    "another's charge": {"charge": "a" * 32},
    "a release dearer than its charge": {
        "kind": "release",
        "charge": "a" * 32,
        "epsilon": "3",
        "certificate": "0" * 64,
    },
    "a digest of something else": {"digest": "0" * 64},
    "a unit of one's own": {"unit": "nothing"},
    "an old format": {"format": 1},
    "a format to come": {"format": 9},
}

STATEMENTS = (
    "update dpsr_events set epsilon = '0' where kind = 'charge'",
    "update dpsr_events set epsilon = '1000' where kind = 'budget'",
    "delete from dpsr_events where kind = 'charge'",
    "delete from dpsr_events",
    "insert into dpsr_events select * from dpsr_events where kind = 'charge'",
)

SPELLINGS = (
    "cafe\u0301",
    "café ",
    " café",
    "ca\u200bfé",
    "CAFÉ",
    "ｃａｆé",
    "c\u0430fé",
    "café\u00a0",
    "caf\u00e9\u034f",
)
"""Other spellings of café: composed otherwise, with spaces and marks, wide letters, a Cyrillic a."""


def attacks(world: World) -> Iterator[Attempt]:
    """On SQLite, and on PostgreSQL with the rights that the guide gives a team."""
    places: list[tuple[str, Callable[[], str]]] = [("SQLite", _sqlite(world))]
    if world.postgres is not None:
        places.append(("PostgreSQL", world.postgres.new_database))
    elif not world.quick:
        yield Attempt("ledger on PostgreSQL", "everything below", not_tried="no server could be started")
    for name, new in places:
        yield rows(name, new, world)
        yield statements(name, new(), world)
        yield from rewritten(name, new, world)
        yield names(name, new())
        yield races(name, new(), 2 if world.quick else 6)


def _sqlite(world: World) -> Callable[[], str]:
    place, numbers = world.place("ledgers"), iter(range(100))
    return lambda: str(place / f"{next(numbers)}.db")


def _book(address: str) -> Ledger:
    ledger = Ledger.create(address, "films", "2")
    charge = ledger.charge("films", "0.5", method="default", charge_id="a" * 32)
    ledger.record(charge, certificate(0.5, charge=charge.reference), manifest="1" * 64)
    ledger.charge("films", "0.25", method="paper", charge_id="b" * 32)
    return ledger


def _as_team(address: str, world: World) -> str:
    """The address with the rights of a team: to read and to add."""
    if ledgers_by_hand.is_sqlite(address):
        return address
    database = address.split("@/")[1].split("?")[0]
    world.postgres.run("grant select, insert on dpsr_events to ada", database)
    return str(world.postgres.address(database, user="ada"))


def _left(ledger: Ledger) -> Fraction:
    """What somebody could spend; nothing where the history is refused."""
    try:
        return ledger.budget("films").left_epsilon
    except DpsrError:
        return Fraction(0)


def rows(where: str, new: Callable[[], str], world: World) -> Attempt:
    """Rows put in by hand, with digests that fit.

    SQLite cannot compute a digest and lets some in: then the reader refuses the whole history, and nothing is refunded.
    PostgreSQL must refuse them itself, since one member of a team could stop all others.
    """
    attempt = Attempt(
        f"rows by hand, {where}", "negative, unreadable, doubled and misplaced entries; no budget comes back"
    )
    address, before = "", Fraction(0)
    for name, facts in ROWS.items():
        if before == 0:
            address = new()
            ledger = _book(address)
            team, before = _as_team(address, world), _left(ledger)
        with suppress(*ledgers_by_hand.REFUSALS, DpsrError, ValueError):
            ledgers_by_hand.insert(team, ledgers_by_hand.next_entry(ledger, **facts))
        left = _left(ledger)
        attempt.note(name, left > before)
        attempt.note(f"{name} makes the ledger unreadable", left == 0 and where == "PostgreSQL")
        before = left
    return attempt


def statements(where: str, address: str, world: World) -> Attempt:
    """What an append-only table must refuse."""
    attempt = Attempt(f"history changed, {where}", "updates and deletions with a team's rights")
    ledger = _book(address)
    team, before = _as_team(address, world), _left(ledger)
    more = ("truncate dpsr_events", "drop table dpsr_events") if where == "PostgreSQL" else ()
    for statement in (*STATEMENTS, *more):
        with suppress(*ledgers_by_hand.REFUSALS):
            ledgers_by_hand.run(team, statement)
        attempt.note(statement, _left(ledger) != before)
    return attempt


def rewritten(where: str, new: Callable[[], str], world: World) -> Iterator[Attempt]:
    """The owner removes every guard and computes all digests anew; a noted head or a folder gives it away."""
    ratings = realistic(3, n_users=20, n_items=15, n_ratings=120)
    for name, change in (
        ("rewritten history", lambda events: [events[0], replace(events[1], epsilon=Fraction(1, 1000)), *events[2:]]),
        ("deleted tail", lambda events: events[:1]),
    ):
        attempt = Attempt(
            f"{name}, {where}", "by the owner, digests recomputed; compared with a noted head and a folder"
        )
        address = new()
        ledger = Ledger.create(address, "films", "2")
        folder = world.folder / f"{name}-{where}"
        publish(ratings, DPSR(0.5), folder, account=Account.open(address, None, 0.5))
        head = ledger.budget("films").head
        events = ledgers_by_hand.rechained(change(ledger.history("films")))
        ledgers_by_hand.remove_guards(address)
        ledgers_by_hand.run(address, "delete from dpsr_events")
        for event in events:
            ledgers_by_hand.insert(address, {column: event.row()[column] for column in COLUMNS})
        checks = examine(ledger, [("films", head)], [folder])
        by_head, by_folder = (not check.holds for check in checks[-2:])
        attempt.note("the noted head still fits", not by_head)
        attempt.note("the folder still fits", not by_folder)
        attempt.note("verify --ledger accepts the folder", _accepted(folder, address))
        yield attempt


def _accepted(folder: Path, ledger: str) -> bool:
    try:
        return verify_release(folder, ledger=ledger).intact
    except DpsrError:  # the history is refused as a whole
        return False


def names(where: str, address: str) -> Attempt:
    """A second budget for the same ratings, under a name that looks the same."""
    attempt = Attempt(f"names that look alike, {where}", "other spellings of one name, in Unicode")
    ledger = Ledger.create(address, "café", "1")
    for name in SPELLINGS:
        before = len(ledger.budgets())
        with suppress(DpsrError):
            Ledger.create(address, name, "1")
        attempt.note(f"{name!a} has a budget of its own", len(ledger.budgets()) > before)
    return attempt


def races(where: str, address: str, writers: int) -> Attempt:
    """Several writers spend the last epsilon at once."""
    attempt = Attempt(f"races, {where}", f"{writers} processes spend one budget at once")
    Ledger.create(address, "films", "1")
    fresh = multiprocessing.get_context("spawn")
    barrier, answers = fresh.Barrier(writers), fresh.Queue()
    racing = [fresh.Process(target=race, args=(address, barrier, "0.05", answers)) for _ in range(writers)]
    for one in racing:
        one.start()
    won = sum(answers.get(timeout=300)[0] for _ in racing)
    for one in racing:
        one.join()
    attempt.note(f"{won} charges of 1/20 fitted into 1", won > 20)
    attempt.note("the history has another number of charges", len(Ledger.open(address).history("films")) != 1 + won)
    return attempt
