"""Ledgers of format 1: read as they are, charged only after a migration that loses nothing, whatever happens to it."""

import multiprocessing
import os
import signal
import sqlite3
import stat
from fractions import Fraction

import psycopg
import pytest
from certificates import certificate
from ledgers_by_hand import (
    MILLIONTH,
    OLD_ROWS,
    TENTH,
    by_hand,
    insert,
    is_sqlite,
    make_old,
    next_entry,
    old_rows,
    remove_guards,
    run,
)

from dpsr.errors import LedgerError
from dpsr.privacy.ledger.examination import examine
from dpsr.privacy.ledger.ledger import Ledger
from dpsr.privacy.ledger.migration import migrate
from dpsr.privacy.ledger.session import Session

PROCESSES = multiprocessing.get_context("fork")


@pytest.fixture
def old(address):
    make_old(address)
    return address


def test_a_ledger_of_format_1_can_be_read(old):
    ledger = Ledger.open(old)
    budget = ledger.budget("films")
    assert (budget.unit, budget.charges, budget.releases, budget.entries) == ("value", 2, 1, 4)
    assert budget.left_epsilon == 3 - Fraction(1, 10) - Fraction(TENTH)
    assert budget.left_delta == Fraction(1, 10**6) - Fraction(MILLIONTH)
    assert [event.format for event in ledger.history()] == [1] * len(OLD_ROWS)
    assert [event.note for event in ledger.history("films")][3] == "two\nlines"
    assert ledger.was_charged("films", "b2" * 16)
    assert not ledger.was_charged("films", "0" * 32)
    assert ledger.fingerprints() == []


def test_charging_it_is_refused_with_the_command_that_helps(old):
    ledger = Ledger.open(old)
    with pytest.raises(LedgerError, match=r"format 1.*Nothing was spent.*dpsr ledger migrate --ledger "):
        ledger.charge("films", "0.1", method="default")
    with pytest.raises(LedgerError, match="dpsr ledger migrate"):
        Ledger.create(old, "songs", "1")
    assert old_rows(old) == sorted(OLD_ROWS)


def test_a_migration_keeps_every_row_and_its_digest_and_the_chain_goes_on(old):
    before = Ledger.open(old).budgets()
    done = migrate(old)
    assert (done.done, done.datasets, done.entries) == (True, 3, len(OLD_ROWS))
    assert old_rows(old) == sorted(OLD_ROWS)
    ledger = Ledger.open(old)
    assert ledger.budgets() == before
    assert [event.format for event in ledger.history()] == [1] * len(OLD_ROWS)
    paid = ledger.charge("films", "0.5", method="default")
    ledger.record(paid, certificate(0.5, charge=paid.reference), manifest="d" * 64)
    assert [event.format for event in ledger.history("films")] == [1, 1, 1, 1, 2, 2]
    assert ledger.budget("films").left_epsilon == before[-1].left_epsilon - Fraction(1, 2)
    assert all(check.holds for check in examine(ledger))


def test_a_charge_from_before_can_still_pay_for_its_release(old):
    migrate(old)
    ledger = Ledger.open(old)
    event = ledger.history("films")[3]
    from dpsr.privacy.ledger.budget import Charge

    paid = Charge.of(event, "value")
    ledger.record(paid, certificate(0.1, charge=paid.reference), manifest="d" * 64)
    assert ledger.budget("films").releases == 2


def test_the_migrated_table_refuses_what_a_new_one_refuses(old, tmp_path, postgres):
    migrate(old)
    ledger = Ledger.open(old)
    for facts in ({"epsilon": "-1/10"}, {"format": 1}, {"number": 9}, {"manifest": "d" * 64}):
        with pytest.raises((sqlite3.Error, psycopg.Error)):
            insert(old, next_entry(ledger, **facts))
    new = str(tmp_path / "new.db") if is_sqlite(old) else postgres.new_database()
    Ledger.create(new, "films", "1")
    assert rules_of(old) == rules_of(new)


def rules_of(address):
    if is_sqlite(address):
        return sorted(run(address, "select type, name, sql from sqlite_master"))
    constraints = run(
        address,
        "select conname, pg_get_constraintdef(oid) from pg_constraint where conrelid = 'dpsr_events'::regclass "
        "order by 1",
    )
    triggers = run(
        address,
        "select tgname, pg_get_triggerdef(pg_trigger.oid), prosrc from pg_trigger join pg_proc on pg_proc.oid = tgfoid "
        "where tgrelid = 'dpsr_events'::regclass order by 1",
    )
    columns = run(
        address,
        "select column_name, data_type, character_maximum_length, is_nullable, column_default "
        "from information_schema.columns where table_name = 'dpsr_events' order by 1",
    )
    return constraints, triggers, columns


def test_names_from_before_are_found_as_they_were_written_and_are_pointed_out(old):
    """Two spellings that were two data sets stay two: their charges are spent, and nobody can say on what."""
    done = migrate(old)
    assert [sorted(pair) for pair in done.look_alikes] == [sorted(["caf\u00e9", "cafe\u0301"])]
    ledger = Ledger.open(old)
    for name, left in (("caf\u00e9", 2), ("cafe\u0301", Fraction(3, 4))):
        assert ledger.budget(name).left_epsilon == left
        ledger.charge(name, "0.25", method="default")
        assert ledger.budget(name).left_epsilon == left - Fraction(1, 4)
    with pytest.raises(LedgerError, match="set once"):
        Ledger.create(old, "caf\u00e9", "1")


def test_a_second_migration_has_nothing_to_do(old, tmp_path):
    migrate(old)
    rules, files = rules_of(old), sorted(tmp_path.iterdir())
    assert not migrate(old).done
    assert rules_of(old) == rules
    assert sorted(tmp_path.iterdir()) == files


def test_guards_that_somebody_dropped_are_put_back(address):
    ledger = Ledger.create(address, "films", "1")
    ledger.charge("films", "0.1", method="default")
    rules, before = rules_of(address), ledger.history()
    remove_guards(address)
    assert [check.holds for check in examine(ledger)] == [True, False]
    assert migrate(address).done
    assert all(check.holds for check in examine(ledger))
    assert ledger.history() == before
    assert rules_of(address) == rules


def test_sqlite_keeps_the_ledger_as_it_was_beside_it(tmp_path):
    address = str(tmp_path / "l.db")
    make_old(address)
    (tmp_path / "l.db").chmod(0o640)
    done = migrate(address)
    assert done.copy == tmp_path / "l.db.before-migration"
    assert old_rows(str(done.copy)) == sorted(OLD_ROWS)
    assert Ledger.open(str(done.copy)).history()[0].format == 1
    assert stat.S_IMODE(done.copy.stat().st_mode) == 0o640
    assert sorted(path.name for path in tmp_path.iterdir()) == ["l.db", "l.db.before-migration"]
    os.replace(done.copy, tmp_path / "l.db")  # somebody goes back, and an older copy is never overwritten
    (tmp_path / "l.db.before-migration").write_text("precious")
    assert migrate(address).copy == tmp_path / "l.db.before-migration-2"
    assert (tmp_path / "l.db.before-migration").read_text() == "precious"


def test_on_postgresql_the_rights_of_a_team_stay_and_only_the_owner_migrates(postgres):
    address = postgres.new_database()
    database = address.split("@/")[1].split("?")[0]
    make_old(address)
    postgres.run("grant select, insert on dpsr_events to ada", database)
    member = postgres.address(database, user="ada")
    with pytest.raises(LedgerError, match="permission denied"):
        migrate(member)
    assert old_rows(address) == sorted(OLD_ROWS)
    migrate(address)
    Ledger.open(member).charge("films", "0.1", method="default")


@pytest.mark.parametrize(
    "change",
    [
        "set epsilon = '-1/10' where dataset = 'films' and number = 2",
        "set epsilon = '1/1000' where dataset = 'films' and number = 2",
        "set number = 9 where dataset = 'films' and number = 4",
    ],
)
def test_a_broken_history_is_not_migrated(old, tmp_path, change):
    if is_sqlite(old):
        run(old, "drop trigger dpsr_no_update")
    else:
        run(old, "alter table dpsr_events disable trigger all")
    run(old, f"update dpsr_events {change}")
    before, files = old_rows(old), sorted(tmp_path.iterdir())
    with pytest.raises(LedgerError, match="changed by other hands"):
        migrate(old)
    assert old_rows(old) == before
    assert sorted(tmp_path.iterdir()) == files


def test_the_hole_of_format_1_is_seen_by_the_reader(old):
    """A negative charge put in with the rights of a team: format 1 let it in, and it gives nothing back any more."""
    ledger = Ledger.open(old)
    row = next_entry(ledger, "films", epsilon="-2", format=1)
    insert(
        old, {name: value for name, value in row.items() if name not in ("format", "unit", "manifest", "fingerprint")}
    )
    with pytest.raises(LedgerError, match=r"entry 5 has an amount"):
        ledger.budgets()
    with pytest.raises(LedgerError, match=r"entry 5 has an amount"):
        migrate(old)


def test_what_is_no_ledger_is_not_migrated(tmp_path, postgres):
    for address in (str(tmp_path / "l.db"), postgres.new_database()):
        with pytest.raises(LedgerError, match="no ledger at"):
            migrate(address)
    assert not list(tmp_path.iterdir())


# -- killed at every step


def die_after(address, steps):
    """Migrate, and be killed in the middle of it, before the statement of that number."""
    count = iter(range(steps + 1))

    def run_or_die(session, statement, **values):
        if next(count) == steps:
            os.kill(os.getpid(), signal.SIGKILL)
        session._execute(statement, values)

    Session.run = run_or_die
    migrate(address)


def statements(address, monkeypatch):
    seen = []
    monkeypatch.setattr(
        Session, "run", lambda session, statement, **v: seen.append(statement) or session._execute(statement, v)
    )
    migrate(address)
    return seen


def test_a_migration_that_is_killed_leaves_the_ledger_as_it_was(address, tmp_path, postgres, monkeypatch):
    make_old(address)
    other = str(tmp_path / "other.db") if is_sqlite(address) else postgres.new_database()
    make_old(other)
    with monkeypatch.context() as patch:
        steps = statements(other, patch)
    assert steps[-1] == "COMMIT"
    assert len(steps) > 10
    rules = rules_of(address)
    for step in range(len(steps)):
        process = PROCESSES.Process(target=die_after, args=(address, step))
        process.start()
        process.join(60)
        assert process.exitcode == -signal.SIGKILL
        assert rules_of(address) == rules
        assert old_rows(address) == sorted(OLD_ROWS)
        assert Ledger.open(address).budget("films").charges == 2
    migrate(address)
    assert rules_of(address) == rules_of(other)
    assert old_rows(address) == sorted(OLD_ROWS)


def race_to_migrate(address, barrier, answers):
    barrier.wait()
    answers.put(migrate(address).done)


def test_of_two_that_migrate_at_once_one_does_and_one_has_nothing_to_do(old):
    barrier, answers = PROCESSES.Barrier(2), PROCESSES.Queue()
    racers = [PROCESSES.Process(target=race_to_migrate, args=(old, barrier, answers)) for _ in range(2)]
    for racer in racers:
        racer.start()
    assert sorted(answers.get(timeout=300) for _ in racers) == [False, True]
    for racer in racers:
        racer.join()
    assert old_rows(old) == sorted(OLD_ROWS)


def test_the_version_before_cannot_charge_a_migrated_ledger_and_this_one_can(old):
    ledger = Ledger.open(old)
    with by_hand(old) as waiting:
        migrate(old)
        with pytest.raises((sqlite3.Error, psycopg.Error)):
            waiting.execute(
                "insert into dpsr_events (dataset, number, kind, at, who, epsilon, delta, method, note, charge, "
                "digest) values ('films', 5, 'charge', '2026-05-03T09:00:00+00:00', 'ada', '1', '0', 'm', '', 'd', 'd')"
            )
    ledger.charge("films", "0.1", method="default")  # one that was opened before goes on afterwards
