"""What somebody with the rights of a team (SELECT, INSERT), and then somebody with the whole database, can try by hand.

Rows are put in with plain SQL and with digests that fit: SHA-256 is no secret. The database refuses what it can say,
the reader refuses everything else that the writer would not write, and what is left of a budget never grows.
"""

import random
import sqlite3
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from functools import cache
from types import SimpleNamespace

import psycopg
import pytest
from certificates import certificate
from ledgers_by_hand import (
    REFUSALS,
    by_hand,
    copy_of,
    insert,
    is_sqlite,
    next_entry,
    put,
    rechained,
    remove_guards,
    remove_triggers,
    run,
)

from dpsr.errors import LedgerError, PrivacyError
from dpsr.privacy.ledger.event import COLUMNS, Event
from dpsr.privacy.ledger.ledger import Ledger


@pytest.fixture(scope="module")
def original(lasting_address):
    """Three of ten spent, and one charge of the two released. Tests have copies: making it takes longer."""
    ledger = Ledger.create(lasting_address, "films", "1", "1e-6")
    Ledger.create(lasting_address, "books", "1")
    paid = ledger.charge("films", "0.2", method="default", charge_id="a" * 32)
    ledger.record(paid, certificate(0.1, charge=paid.reference), manifest="0" * 64)
    ledger.charge("films", "0.1", method="paper", charge_id="b" * 32)
    return lasting_address


def copied(address, request, folder):
    return copy_of(address, None if is_sqlite(address) else request.getfixturevalue("postgres"), folder)


@pytest.fixture
def address(original, request, tmp_path):
    return copied(original, request, tmp_path)


@pytest.fixture
def ledger(address):
    return Ledger.open(address)


@pytest.fixture(scope="module")
def refusing(original, request, tmp_path_factory):
    """One copy for all rows that are refused: it stays as it was."""
    return copied(original, request, tmp_path_factory.mktemp("refusing"))


@pytest.fixture(scope="module")
def unguarded(original, request, tmp_path_factory):
    """A copy without anything that would refuse."""
    address = copied(original, request, tmp_path_factory.mktemp("unguarded"))
    remove_guards(address)
    return address


@pytest.fixture(scope="module")
def unguarded_films(lasting_address, request, tmp_path_factory):
    """A ledger of one set of data, all spent but for a third, and nothing that would refuse."""
    sqlite = str(tmp_path_factory.mktemp("films") / "l.db")
    address = sqlite if is_sqlite(lasting_address) else request.getfixturevalue("postgres").new_database()
    ledger = Ledger.create(address, "films", "3")
    for _ in range(2):
        ledger.charge("films", "1", method="default")
    remove_guards(address)
    return address


RELEASE = {"kind": "release", "charge": "b" * 32, "certificate": "c" * 64, "manifest": "d" * 64, "method": "paper"}
NEW_SET = {"dataset": "songs", "number": 1, "kind": "budget", "unit": "value", "charge": None}


def now(**shift):
    return (datetime.now(UTC) + timedelta(**shift)).isoformat(timespec="seconds")


REFUSED = {
    "a negative charge": {"epsilon": "-1/10"},
    "a negative delta": {"delta": "-1/1000000"},
    "a charge of nothing": {"epsilon": "0"},
    "a decimal": {"epsilon": "0.1"},
    "an exponent": {"epsilon": "1e-1"},
    "a sign": {"epsilon": "+1/10"},
    "a space": {"epsilon": " 1/10"},
    "a line break": {"epsilon": "1/10\n"},
    "an underscore": {"epsilon": "1_0/100"},
    "digits of another script": {"epsilon": "\u0661/\u0661\u0660"},
    "no number": {"epsilon": "nan"},
    "infinity": {"epsilon": "inf"},
    "nothing over something": {"epsilon": "/10"},
    "something over nothing": {"epsilon": "1/"},
    "over zero": {"epsilon": "1/0"},
    "over one": {"epsilon": "1/1"},
    "over over": {"epsilon": "1/10/10"},
    "zero over something": {"delta": "0/5"},
    "a leading zero": {"epsilon": "01/10"},
    "a leading zero below": {"epsilon": "1/010"},
    "an empty amount": {"delta": ""},
    "an endless amount": {"epsilon": "1/" + "9" * 1300},
    "a charge without an id": {"charge": None},
    "a short id": {"charge": "e" * 31},
    "an id in capitals": {"charge": "E" * 32},
    "an id that was used": {"charge": "b" * 32},
    "an id of another data set": {"dataset": "books", "charge": "b" * 32},
    "a charge with a certificate": {"certificate": "c" * 64},
    "a charge with a manifest": {"manifest": "c" * 64},
    "a charge with a unit": {"unit": "value"},
    "a fingerprint that is none": {"fingerprint": "x" * 64},
    "an unknown kind": {"kind": "refund"},
    "a kind in capitals": {"kind": "CHARGE"},
    "a second budget": {**NEW_SET, "dataset": "films", "number": 5, "epsilon": "9"},
    "a second first entry": {**NEW_SET, "dataset": "films", "epsilon": "9"},
    "a budget of nothing": {**NEW_SET, "epsilon": "0"},
    "a budget with delta 1": {**NEW_SET, "delta": "1"},
    "a budget with delta 11/10": {**NEW_SET, "delta": "11/10"},
    "a budget without a unit": {**NEW_SET, "unit": None},
    "a budget for another unit": {**NEW_SET, "unit": "household"},
    "a budget without a name": {**NEW_SET, "dataset": ""},
    "a charge first": {"dataset": "songs", "number": 1},
    "a charge to nothing": {"dataset": "songs", "number": 2},
    "a gap": {"number": 6},
    "a number that is there": {"number": 3},
    "no number at all": {"number": 0},
    "a number below": {"number": -1},
    "the format of old": {"format": 1},
    "a format to come": {"format": 3},
    "a release without a manifest": {**RELEASE, "manifest": None},
    "a release without a certificate": {**RELEASE, "certificate": None},
    "a release without a charge": {**RELEASE, "charge": None},
    "a release of old without a manifest": {**RELEASE, "manifest": None, "format": 1},
    "a release with a fingerprint": {**RELEASE, "fingerprint": "f" * 64},
    "a release of a charge that is not there": {**RELEASE, "charge": "9" * 32},
    "a second release of a charge": {**RELEASE, "charge": "a" * 32, "method": "default"},
    "a release in another data set": {**RELEASE, "dataset": "books", "number": 2},
    "a release by another method": {**RELEASE, "method": "default"},
    "a certificate in capitals": {**RELEASE, "certificate": "C" * 64},
    "a manifest that is none": {**RELEASE, "manifest": "manifest"},
    "a time without a zone": {"at": "2026-05-03T09:00:00"},
    "a time of another zone": {"at": now()[:-6] + "+02:00"},
    "a day that is none": {"at": "2026-02-30T09:00:00+00:00"},
    "a time in words": {"at": "now"},
    "a time long ago": {"at": now(days=-2)},
    "a time to come": {"at": now(days=2)},
    "a name with a line break": {"who": "eve\nada"},
    "a name that steers the terminal": {"who": "\x1b[2J"},
    "a note without end": {"note": "x" * 401},
    "a method without end": {"method": "x" * 61},
    "a digest in capitals": {"digest": "A" * 64},
    "a digest that is none": {"digest": "sha"},
    "no method": {"method": None},
}


@pytest.mark.parametrize("facts", REFUSED.values(), ids=REFUSED)
def test_the_database_refuses_a_row_that_dpsr_would_not_write(refusing, facts):
    ledger = Ledger.open(refusing)
    before = ledger.budgets()
    with pytest.raises(REFUSALS):
        insert(refusing, next_entry(ledger, **facts))
    assert ledger.budgets() == before


def test_the_database_takes_the_row_that_dpsr_would_write(ledger, address):
    """Without this, the test above would pass on a table that takes nothing."""
    insert(address, next_entry(ledger))
    assert ledger.budget("films").left_epsilon == Fraction(6, 10)
    insert(address, next_entry(ledger, **RELEASE))
    assert ledger.history("films")[-1].manifest == "d" * 64
    insert(address, next_entry(ledger, charge="f" * 32, fingerprint="f" * 64, who="Zoë", note="naïve " * 60))
    assert ledger.fingerprints() == [("films", "f" * 64)]
    insert(address, next_entry(ledger, **NEW_SET))
    assert ledger.budget("songs").epsilon == Fraction(1, 10)


ODD_TYPES = {
    "a blob": {"epsilon": b"1/10"},
    "a blob as a name": {"dataset": b"films"},
    "a text with an end inside": {"epsilon": "1\x00/10"},
    "a digest with an end inside": {"digest": "a" * 64 + "\x00b"},
    "a note with an end inside": {"note": "a\x00b"},
    "half a number": {"number": 5.5},
    "a number in words": {"number": "five"},
    "a format in words": {"format": "two"},
    "a blob as a charge": {"charge": b"e" * 32},
    "a blob as a time": {"at": b"2026-05-03T09:00:00+00:00"},
}


@pytest.mark.parametrize("facts", ODD_TYPES.values(), ids=ODD_TYPES)
def test_sqlite_refuses_a_value_of_another_type(tmp_path, facts):
    ledger = Ledger.create(str(tmp_path / "l.db"), "films", "1")
    for _ in range(3):
        ledger.charge("films", "0.1", method="default")
    with pytest.raises(sqlite3.Error):
        insert(str(tmp_path / "l.db"), {**next_entry(ledger), "digest": "a" * 64, **facts})
    assert ledger.budget().charges == 3


CHANGES = [
    "update dpsr_events set epsilon = '0' where kind = 'charge'",
    "delete from dpsr_events where kind = 'charge'",
    "delete from dpsr_events",
]


def replacement(number):
    """The first charge again, cheaper."""
    cells = [f"{number}" if name == "number" else "'1/1000'" if name == "epsilon" else name for name in COLUMNS]
    return f"dpsr_events ({', '.join(COLUMNS)}) select {', '.join(cells)} from dpsr_events where number = 2"


@pytest.mark.parametrize(
    "statement",
    [
        *CHANGES,
        f"insert or replace into {replacement(2)}",
        f"insert or replace into {replacement(3)}",
        f"replace into {replacement(2)}",
        f"insert into {replacement(2)} and true on conflict (dataset, number) do update set epsilon = '1/1000'",
        "update or replace dpsr_events set number = 2 where number = 1",
    ],
)
def test_sqlite_itself_refuses_to_change_history(tmp_path, statement):
    Ledger.create(str(tmp_path / "l.db"), "films", "2").charge("films", "1", method="default")
    with pytest.raises(sqlite3.DatabaseError, match=r"append-only|the number after the last"):
        run(str(tmp_path / "l.db"), statement)
    assert Ledger.open(str(tmp_path / "l.db")).budget().left_epsilon == 1


@pytest.mark.parametrize(
    "statement",
    [
        *CHANGES,
        "truncate dpsr_events",
        f"insert into {replacement(2)} on conflict (dataset, number) do update set epsilon = '0'",
    ],
)
def test_postgresql_itself_refuses_to_change_history(postgres, statement):
    address = postgres.new_database()
    ledger = Ledger.create(address, "films", "2")
    ledger.charge("films", "1", method="default")
    with pytest.raises(psycopg.DatabaseError, match="append-only"):
        run(address, statement)
    assert ledger.budget().left_epsilon == 1


# -- PostgreSQL: a member of a team


@pytest.fixture
def team(postgres):
    """A ledger of the owner's, and the same as somebody who may read and add."""
    address = postgres.new_database()
    database = address.split("@/")[1].split("?")[0]
    owner = Ledger.create(address, "films", "1", "1e-6")
    paid = owner.charge("films", "0.2", method="default", charge_id="a" * 32)
    owner.record(paid, certificate(0.1, charge=paid.reference), manifest="0" * 64)
    owner.charge("films", "0.1", method="paper", charge_id="b" * 32)
    postgres.run("grant select, insert on dpsr_events to ada", database)
    postgres.run("grant create on schema public to ada", database)  # as was usual before PostgreSQL 15
    return owner, postgres.address(database, user="ada")


def test_a_team_needs_no_right_but_to_read_and_to_add(team):
    owner, address = team
    ledger = Ledger.open(address)
    paid = ledger.charge("films", "0.5", method="default")
    ledger.record(paid, certificate(0.5, charge=paid.reference), manifest="1" * 64)
    assert owner.budget().left_epsilon == Fraction(2, 10)


DEARER = {
    "more than is left": {"epsilon": "7000001/10000000"},
    "more delta than is left": {"delta": "1/999999"},
    "delta where the budget has none left of it": {"delta": "1/2"},
    "not in lowest terms": {"epsilon": "2/20"},
    "a release dearer than its charge": {**RELEASE, "epsilon": "1000001/10000000"},
    "a release with more delta": {**RELEASE, "delta": "1/10000000"},
    "a digest of something else": {"digest": "0" * 64},
    "a budget of one's own": NEW_SET,
}


@pytest.mark.parametrize("facts", DEARER.values(), ids=DEARER)
def test_postgresql_refuses_what_takes_arithmetic_to_see(team, facts):
    owner, address = team
    with pytest.raises(psycopg.DatabaseError, match="ledger"):
        insert(address, next_entry(owner, **facts))
    assert owner.budget().entries == 4
    assert owner.budget().left_epsilon == Fraction(7, 10)


def test_postgresql_takes_exactly_what_is_left_and_exactly_what_was_charged(team):
    owner, address = team
    insert(address, next_entry(owner, **RELEASE))
    insert(address, next_entry(owner, epsilon="7/10", delta="1/1000000"))
    assert (owner.budget().left_epsilon, owner.budget().left_delta) == (0, 0)


def test_a_member_of_the_owner_sets_budgets_too(team, postgres):
    owner, address = team
    postgres.run("grant postgres to ada")
    try:
        Ledger.create(address, "songs", "1")
    finally:
        postgres.run("revoke postgres from ada")
    with pytest.raises(LedgerError, match="only the owner"):
        Ledger.create(address, "plays", "1")
    assert [budget.dataset for budget in owner.budgets()] == ["films", "songs"]


def test_nobody_puts_a_table_or_a_function_of_the_same_name_in_front(team):
    owner, address = team
    with by_hand(address) as connection:
        connection.execute("create temporary table dpsr_events (like public.dpsr_events)")
        for name, kind in (("sha256", "bytea"), ("encode", "bytea, text"), ("gcd", "numeric, numeric")):
            answer = {"sha256": "bytea", "encode": "text", "gcd": "numeric"}[name]
            value = {"sha256": "'\\x00'::bytea", "encode": f"'{'0' * 64}'::text", "gcd": "1::numeric"}[name]
            connection.execute(f"create function public.{name}({kind}) returns {answer} language sql as 'select {{}}'"
                               .replace("{}", value.replace("'", "''")))  # fmt: skip
        connection.execute("set search_path = pg_temp, public, pg_catalog")
        row = next_entry(owner, digest="0" * 64)
        mark = ", ".join(["%s"] * len(row))
        with pytest.raises(psycopg.DatabaseError, match="digest"):
            connection.execute(
                f"insert into public.dpsr_events ({', '.join(row)}) values ({mark})", tuple(row.values())
            )
    assert owner.budget().entries == 4


def test_many_rows_in_one_statement_are_judged_one_by_one(team):
    """Each follows from the one before; together they would overspend."""
    owner, address = team
    first = next_entry(owner, epsilon="1/2", charge="1" * 32)
    chain = [*owner.history(), Event.of_row(first)]
    second = rechained([*chain, Event.of_row({**first, "number": 6, "charge": "2" * 32})])[-1].row()
    marks = ", ".join("(" + ", ".join(["%s"] * len(COLUMNS)) + ")" for _ in range(2))
    values = [row[name] for row in (first, second) for name in COLUMNS]
    with by_hand(address) as connection, pytest.raises(psycopg.DatabaseError, match="at most what its budget has left"):
        connection.execute(f"insert into dpsr_events ({', '.join(COLUMNS)}) values {marks}", values)
    assert owner.budget().entries == 4


# -- whatever is put in: refused, or read; and nothing comes back


CELLS = {
    "number": [1, 2, 4, 5, 6, 0, -1],
    "kind": ["budget", "charge", "release", "refund"],
    "epsilon": ["1/10", "-1/10", "0", "7/10", "3/4", "2/20", "1/1", "01", "1e5", "\u0661"],
    "delta": ["0", "1/1000000", "1/2", "-1", "1"],
    "at": [now(), now(hours=-20), now(hours=20), now(days=-3), "2026-02-30T09:00:00+00:00"],
    "who": ["eve", "", "x" * 120, "x" * 121, "\u202eeve", "a\u0085b", "\ue000"],
    "method": ["default", "paper", "", "x" * 60, "\u200b"],
    "note": ["", "\U0001f600" * 400, "x" * 401, "\t"],
    "charge": ["a" * 32, "b" * 32, "e" * 32, None, "E" * 32],
    "certificate": [None, "c" * 64, "c" * 63],
    "manifest": [None, "d" * 64],
    "unit": [None, "value", "user"],
    "fingerprint": [None, "f" * 64],
    "format": [1, 2, 3],
    "dataset": ["films", "books", "songs"],
}
START = [{}, RELEASE, NEW_SET]


def random_rows(rng, ledger, n):
    for _ in range(n):
        changed = rng.sample(sorted(CELLS), rng.randrange(3))
        facts = {**rng.choice(START), **{name: rng.choice(CELLS[name]) for name in changed}}
        if rng.random() < 0.1:
            facts["digest"] = rng.choice(["0" * 64, "A" * 64, ""])
        yield next_entry(ledger, **{"dataset": "films", **facts})


def test_a_member_can_put_in_nothing_that_others_cannot_read_or_that_gives_budget_back(team):
    """On PostgreSQL nobody with the rights of a team can stop the others: what is taken can be read."""
    owner, address = team
    taken, before = 0, owner.budget()
    known = SimpleNamespace(history=cache(owner.history))  # until a row is taken: every reading is a connection
    with by_hand(address) as connection:
        for row in random_rows(random.Random(0), known, 400):
            try:
                put(connection, row)
            except psycopg.Error:
                continue
            known.history.cache_clear()
            taken, now_left = taken + 1, owner.budget()
            assert now_left.left_epsilon <= before.left_epsilon
            before = now_left
    assert owner.budget() == before, "what is refused changes nothing"
    assert taken >= 2


def test_whatever_sqlite_takes_is_refused_or_read_and_gives_no_budget_back(tmp_path):
    """Overspending and digests are beyond SQLite: there the reader stops, for everybody."""
    rng, read, refused = random.Random(0), 0, 0
    for case in range(25):
        address = str(tmp_path / f"{case}.db")
        ledger = Ledger.create(address, "films", "1", "1e-6")
        ledger.charge("films", "0.2", method="default", charge_id="a" * 32)
        ledger.charge("films", "0.1", method="paper", charge_id="b" * 32)
        known, left = SimpleNamespace(history=cache(ledger.history)), ledger.budget("films").left_epsilon
        for row in random_rows(rng, known, 25):
            try:
                insert(address, row)
            except sqlite3.Error:
                continue
            known.history.cache_clear()
            try:
                before, left = left, ledger.budget("films").left_epsilon
            except LedgerError:
                refused += 1
                break
            assert left <= before
            read += 1
    assert read > 5
    assert refused > 5


# -- the whole database


FORCED = {
    "a negative charge": {"epsilon": "-1/10"},
    "a charge of nothing": {"epsilon": "0"},
    "a fraction not in lowest terms": {"epsilon": "2/20"},
    "a decimal": {"epsilon": "0.1"},
    "digits of another script": {"epsilon": "\u0661"},
    "an underscore": {"epsilon": "1_0"},
    "a number of ten thousand digits": {"epsilon": "1/" + "9" * 10_000},
    "more than is left": {"epsilon": "8/10"},
    "more delta than is left": {"delta": "1/2"},
    "an unknown kind": {"kind": "refund"},
    "a second budget": {"kind": "budget", "epsilon": "9", "charge": None, "unit": "value"},
    "the format of old after the new": {"format": 1},
    "a format to come": {"format": 3},
    "an id that was used": {"charge": "a" * 32},
    "an id in capitals": {"charge": "E" * 32},
    "no id": {"charge": None},
    "a unit at a charge": {"unit": "value"},
    "a release without a charge": {**RELEASE, "charge": "9" * 32},
    "a second release": {**RELEASE, "charge": "a" * 32, "method": "default", "epsilon": "1/100"},
    "a release dearer than its charge": {**RELEASE, "epsilon": "2/10"},
    "a release of more delta than its charge": {**RELEASE, "delta": "1/2"},
    "a release by another method": {**RELEASE, "method": "default"},
    "a release without a manifest": {**RELEASE, "manifest": None},
    "a day that is none": {"at": "2026-02-30T09:00:00+00:00"},
    "a year that is none": {"at": "0000-01-01T00:00:00+00:00"},
    "a time of another zone": {"at": "2026-05-03T09:00:00+02:00"},
    "a time long ago": {"at": now(days=-2)},
    "a gap": {"number": 6},
    "a digest of something else": {"digest": "0" * 64},
    "two lines for a name": {"who": "eve\nada"},
    "a note without end": {"note": "x" * 401},
}


@pytest.mark.parametrize("facts", FORCED.values(), ids=FORCED)
def test_the_reader_refuses_in_a_sentence_what_was_forced_in(unguarded, request, tmp_path, facts):
    address = copied(unguarded, request, tmp_path)
    ledger = Ledger.open(address)
    insert(address, next_entry(ledger, **facts))
    for act in (ledger.budgets, ledger.history, lambda: ledger.charge("films", "0.1", method="default")):
        with pytest.raises(LedgerError, match=r"'films' was changed by other hands.*Restore it from a copy"):
            act()
    assert ledger.charge("books", "1", method="default"), "other data sets go on"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ("set epsilon = '1/1000' where number = 2", "entry 2 does not follow"),
        ("set number = 7 where number = 3", "entry 3 is missing"),
        ("set note = 'other' where number = 1", "entry 1 does not follow"),
        ("set digest = '%s' where number = 2" % ("0" * 64), "entry 2 does not follow"),
        ("set unit = 'user' where number = 1", "entry 1 does not follow"),
        ("set dataset = 'Films'", "entry 1 does not follow"),
    ],
)
def test_a_careless_edit_is_found_and_charges_stop(unguarded_films, request, tmp_path, change, why):
    address = copied(unguarded_films, request, tmp_path)
    ledger = Ledger.open(address)
    run(address, f"update dpsr_events {change}")
    for act in (ledger.budgets, ledger.history, lambda: ledger.charge(ledger.budget().dataset, "1", method="default")):
        with pytest.raises(LedgerError, match=why):
            act()


@pytest.mark.parametrize(
    ("column", "value"),
    [("epsilon", "x'312f3130'"), ("number", "2.5"), ("number", "'two'"), ("dataset", "x'66'"), ("who", "null"),
     ("note", "x'ff'"), ("note", "cast(x'ff' as text)"), ("format", "'two'"), ("charge", "17")],
)  # fmt: skip
def test_what_no_column_should_hold_is_refused_by_the_reader_too(tmp_path, column, value):
    address = str(tmp_path / "l.db")
    ledger = Ledger.create(address, "films", "1")
    ledger.charge("films", "0.1", method="default")
    remove_guards(address)
    run(address, f"update dpsr_events set {column} = {value} where number = 2")
    with pytest.raises(LedgerError, match=r"other hands|cannot be used"):
        ledger.budgets()


def test_unknown_columns_are_refused_and_named(ledger, address):
    run(address, "alter table dpsr_events add column refund text")
    for act in (ledger.budgets, lambda: Ledger.open(address), lambda: ledger.charge("films", "0.1", method="default")):
        with pytest.raises(LedgerError, match=r"other columns than this version knows: refund\."):
            act()


def test_a_view_in_place_of_the_table_is_no_ledger(ledger, address):
    run(address, "alter table dpsr_events rename to hidden")
    run(address, "create view dpsr_events as select * from hidden where kind <> 'charge'")
    with pytest.raises(LedgerError, match="no ledger at"):
        ledger.budgets()


def test_a_trigger_that_swallows_charges_does_not_make_them_free(ledger, address):
    if is_sqlite(address):
        run(address, "create trigger quiet before insert on dpsr_events begin select raise(ignore); end")
    else:
        run(address, "create rule quiet as on insert to dpsr_events do instead nothing")
    with pytest.raises(LedgerError, match=r"did not keep.*Nothing was spent"):
        ledger.charge("films", "0.1", method="default")


def test_the_writer_refuses_what_its_reader_would_and_says_so(ledger):
    for facts in ({"charge_id": "mine"}, {"charge_id": "b" * 32}, {"fingerprint": "none"}):
        with pytest.raises(LedgerError, match="nothing was spent"):
            ledger.charge("films", "0.1", method="default", **facts)
    with pytest.raises(LedgerError, match="cannot be used"):
        ledger.charge("books", "0.1", method="default", charge_id="b" * 32)
    with pytest.raises(PrivacyError):
        ledger.charge("films", "0.1", method="default", unit="user")
    assert ledger.budget("films").entries == 4


def test_a_clock_that_goes_back_a_day_stops_the_writer_and_an_hour_does_not(ledger, monkeypatch):
    from dpsr.privacy.ledger import log

    def clock(**shift):
        class Shifted(datetime):
            @classmethod
            def now(cls, zone):
                return datetime.now(zone) + timedelta(**shift)

        monkeypatch.setattr(log, "datetime", Shifted)

    clock(hours=-1)
    ledger.charge("films", "0.1", method="default")
    clock(hours=-25)
    with pytest.raises(LedgerError, match=r"older.*the clock of this machine"):
        ledger.charge("films", "0.1", method="default")
    clock(hours=25)
    with pytest.raises(LedgerError, match="check the clock"):
        ledger.charge("films", "0.1", method="default")
    assert [event.number for event in ledger.history("films")] == [1, 2, 3, 4, 5], "in their order, not by the clock"


def test_every_constraint_of_either_database_is_the_reason_of_some_refusal(ledger, address):
    """A constraint that no row meets would be there for show. Triggers are put aside, so that constraints speak."""
    from dpsr.privacy.ledger import postgresql_rules, sqlite_rules

    rules = sqlite_rules if is_sqlite(address) else postgresql_rules
    remove_triggers(address)
    cases = [*REFUSED.values(), *(ODD_TYPES.values() if is_sqlite(address) else ())]
    said, plain = set(), next_entry(ledger)
    with by_hand(address) as connection:
        for facts in cases:
            try:
                put(connection, {**plain, "digest": "a" * 64, **facts})
            except REFUSALS as error:
                said |= {name for name in rules.CHECKS if name in str(error)}
            else:
                connection.execute("delete from dpsr_events where number > 4 or dataset = 'songs'")
    assert set(rules.CHECKS) - said == set()
