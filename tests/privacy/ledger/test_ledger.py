"""The ledger: exact, append-only, and never talked into more than its budget. On SQLite and on PostgreSQL."""

import hashlib
import sqlite3
from decimal import Decimal
from fractions import Fraction

import psycopg
import pytest
from certificates import certificate
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import text

from dpsr.certify.amounts import as_written, exact, float_below, written_down, written_up
from dpsr.database import Database
from dpsr.errors import LedgerError, PrivacyError
from dpsr.privacy.ledger.ledger import Charge, Ledger


def test_what_is_left_is_the_budget_less_all_charges(address):
    ledger = Ledger.create(address, "films", "3", note="the board")
    ledger.charge("films", "0.5", method="default")
    ledger.charge("films", "1", method="paper")
    budget = Ledger.open(address).budget("films")
    assert (budget.spent_epsilon, budget.left_epsilon, budget.charges) == (Fraction(3, 2), Fraction(3, 2), 2)


def test_ten_tenths_fit_into_one_and_nothing_after_them(address):
    """As floats ten times 0.1 is less than 1 or more than 1, depending on how one adds."""
    ledger = Ledger.create(address, "films", "1")
    for _ in range(10):
        ledger.charge("films", "0.1", method="default")
    with pytest.raises(PrivacyError, match=r"epsilon = 0 left of 1 .*exhausted"):
        ledger.charge("films", 1e-300, method="default")


def test_a_float_is_charged_as_the_binary_fraction_it_is(address):
    ledger = Ledger.create(address, "films", "0.1")
    with pytest.raises(PrivacyError, match=r"Nothing was spent"):
        ledger.charge("films", 0.1, method="default")  # the float is above one tenth
    assert ledger.budget().spent_epsilon == 0


def test_overspending_is_refused_with_what_is_left_and_spends_nothing(address):
    ledger = Ledger.create(address, "films", "1", "1e-6")
    ledger.charge("films", "0.75", "1e-7", method="default")
    with pytest.raises(PrivacyError, match=r"'films' has epsilon = 0.25, delta = 9e-07 left of 1 .*at most epsilon"):
        ledger.charge("films", "0.26", method="default")
    with pytest.raises(PrivacyError, match="delta = 1e-06 was asked for"):
        ledger.charge("films", "0.1", "1e-6", method="default")
    assert len(ledger.history()) == 2
    ledger.charge("films", "0.25", "9e-7", method="default")  # exactly what is left


def test_data_sets_have_budgets_of_their_own(address):
    Ledger.create(address, "films", "1")
    ledger = Ledger.create(address, "books", "2")
    ledger.charge("films", "1", method="default")
    assert [(b.dataset, b.left_epsilon) for b in ledger.budgets()] == [("books", 2), ("films", 0)]
    with pytest.raises(LedgerError, match=r"more than one data set; it has 'books', 'films'.*--dataset"):
        ledger.budget()
    with pytest.raises(LedgerError, match="no data set 'songs'"):
        ledger.budget("songs")
    with pytest.raises(LedgerError, match="ledger init"):
        ledger.charge("songs", "1", method="default")


def test_a_budget_is_set_once(address):
    Ledger.create(address, "films", "1")
    with pytest.raises(LedgerError, match="set once"):
        Ledger.create(address, "films", "10")
    assert Ledger.open(address).budget().epsilon == 1


def test_the_history_says_who_when_what_and_for_which_certificate(address):
    ledger = Ledger.create(address, "films", "2", who="officer", note="minutes of 3 May")
    paid = ledger.charge("films", "1", method="default", who="ada", note="for the website")
    promised = certificate(0.9)
    digest = ledger.record(paid, promised, who="ada")
    budget, charge, release = ledger.history("films")
    assert (budget.kind, budget.who, budget.note, budget.epsilon) == ("budget", "officer", "minutes of 3 May", 2)
    assert (charge.kind, charge.who, charge.method, charge.charge) == ("charge", "ada", "default", paid.id)
    assert charge.at.endswith("+00:00")
    assert (release.kind, release.charge, release.certificate) == ("release", paid.id, digest)
    assert release.epsilon == Fraction(0.9)
    assert digest == hashlib.sha256(promised.to_json().encode()).hexdigest()
    assert ledger.budget().spent_epsilon == 1, "what was charged is spent, although the certificate costs less"


def test_each_charge_pays_for_one_release(address):
    ledger = Ledger.create(address, "films", "2")
    paid = ledger.charge("films", "1", method="default")
    ledger.record(paid, certificate(1.0))
    with pytest.raises(LedgerError, match="paid for a release already"):
        ledger.record(paid, certificate(1.0))
    with pytest.raises(LedgerError, match="Charge first"):
        ledger.record(Charge("films", Fraction(1), Fraction(0), "0" * 32), certificate(1.0))


def test_a_seeded_certificate_and_one_dearer_than_its_charge_are_refused(address):
    ledger = Ledger.create(address, "films", "9")
    paid = ledger.charge("films", "1", method="default")
    with pytest.raises(PrivacyError, match="NOT PRIVATE"):
        ledger.record(paid, certificate(1.0, private=False))
    with pytest.raises(PrivacyError, match="Charge before releasing"):
        ledger.record(paid, certificate(1.0000000000000002))
    with pytest.raises(PrivacyError, match="Charge before releasing"):
        ledger.record(paid, certificate(1.0, delta=1e-300))
    generous = Charge(paid.dataset, Fraction(9), Fraction(0), paid.id)  # the ledger believes its own book
    with pytest.raises(PrivacyError, match="Charge before releasing"):
        ledger.record(generous, certificate(2.0))
    assert [event.kind for event in ledger.history()] == ["budget", "charge"]


CHANGES = [
    "update dpsr_events set epsilon = '0' where kind = 'charge'",
    "delete from dpsr_events where kind = 'charge'",
    "delete from dpsr_events",
]
REPLACEMENT = (
    "select dataset, {number}, kind, at, who, '0', delta, method, note, charge, certificate, digest "
    "from dpsr_events where number = 2"
)


@pytest.mark.parametrize(
    "statement",
    [
        *CHANGES,
        f"insert or replace into dpsr_events {REPLACEMENT.format(number=2)}",
        f"insert or replace into dpsr_events {REPLACEMENT.format(number=3)}",
    ],
)
def test_sqlite_itself_refuses_to_change_history(tmp_path, statement):
    Ledger.create(str(tmp_path / "l.db"), "films", "2").charge("films", "1", method="default")
    with sqlite3.connect(tmp_path / "l.db") as connection, pytest.raises(sqlite3.DatabaseError, match="append-only"):
        connection.execute(statement)
    assert Ledger.open(str(tmp_path / "l.db")).budget().left_epsilon == 1


@pytest.mark.parametrize(
    "statement",
    [
        *CHANGES,
        "truncate dpsr_events",
        f"insert into dpsr_events {REPLACEMENT.format(number=2)} "
        "on conflict (dataset, number) do update set epsilon = '0'",
    ],
)
def test_postgresql_itself_refuses_to_change_history(postgres, statement):
    address = postgres.new_database()
    ledger = Ledger.create(address, "films", "2")
    ledger.charge("films", "1", method="default")
    with psycopg.connect(address) as connection, pytest.raises(psycopg.DatabaseError, match="append-only"):
        connection.execute(statement)
    assert ledger.budget().left_epsilon == 1


@pytest.mark.parametrize("change", ["set epsilon = '1/1000' where number = 2", "set number = 7 where number = 3"])
def test_a_history_changed_by_somebody_who_removed_the_triggers_is_found_and_charges_stop(address, change):
    ledger = Ledger.create(address, "films", "3")
    for _ in range(2):
        ledger.charge("films", "1", method="default")
    with Database.parse(address).engine("rw").begin() as connection:
        if connection.dialect.name == "sqlite":
            connection.execute(text("drop trigger dpsr_no_update"))
        else:
            connection.execute(text("alter table dpsr_events disable trigger all"))
        connection.execute(text(f"update dpsr_events {change}"))
    for act in (ledger.budgets, ledger.history, lambda: ledger.charge("films", "1", method="default")):
        with pytest.raises(LedgerError, match="changed by other hands"):
            act()


def test_a_team_needs_no_right_but_to_read_and_to_add(postgres):
    address = postgres.new_database()
    database = address.split("@/")[1].split("?")[0]
    Ledger.create(address, "films", "2")
    postgres.run("grant select, insert on dpsr_events to ada", database)
    ledger = Ledger.open(postgres.address(database, user="ada"))
    ledger.record(ledger.charge("films", "1", method="default"), certificate(1.0))
    assert ledger.budget().left_epsilon == 1


def test_a_charge_is_found_by_its_id_and_only_if_it_went_through(address):
    ledger = Ledger.create(address, "films", "1")
    ledger.charge("films", "1", method="default", charge_id="a" * 32)
    with pytest.raises(PrivacyError):
        ledger.charge("films", "1", method="default", charge_id="b" * 32)
    assert ledger.was_charged("films", "a" * 32)
    assert not ledger.was_charged("films", "b" * 32)


@pytest.mark.parametrize(
    ("epsilon", "delta"),
    [
        *(("0", "0"), ("-1", "0"), ("nan", "0"), ("inf", "0"), ("1e999999999", "0"), ("one", "0")),
        *((float("inf"), 0), ("1", "1"), ("1", "-1")),
    ],
)
def test_a_budget_that_means_nothing_is_refused_and_no_file_appears(tmp_path, epsilon, delta):
    with pytest.raises(PrivacyError):
        Ledger.create(str(tmp_path / "l.db"), "films", epsilon, delta)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["", " films", "a\nb", "x" * 121, "\x1b[31m"])
def test_a_name_is_one_short_printable_line(tmp_path, name):
    with pytest.raises(LedgerError, match="printable"):
        Ledger.create(str(tmp_path / "l.db"), name, "1")


def test_what_is_no_ledger_is_said_to_be_none(tmp_path, postgres):
    (tmp_path / "text.db").write_text("not a database " * 100)
    sqlite3.connect(tmp_path / "other.db").execute("create table t (x)")
    with pytest.raises(LedgerError, match=r"no ledger at missing.db.*ledger init"):
        Ledger.open(str(tmp_path / "missing.db"))
    with pytest.raises(LedgerError, match="not a database"):
        Ledger.open(str(tmp_path / "text.db"))
    with pytest.raises(LedgerError, match=r"no ledger at other\.db"):
        Ledger.open(f"sqlite:///{tmp_path}/other.db")
    with pytest.raises(LedgerError, match="no ledger at"):
        Ledger.open(postgres.new_database())
    with pytest.raises(LedgerError, match="cannot be used"):
        Ledger.create(str(tmp_path / "nowhere" / "l.db"), "films", "1")


# -- exact amounts


@settings(max_examples=200, deadline=None)
@given(st.lists(st.floats(1e-9, 50), min_size=1, max_size=12))
def test_sums_of_prices_are_exact_and_are_shown_on_the_safe_side(prices):
    total = sum((exact(price, "epsilon") for price in prices), Fraction(0))
    assert total == sum(Decimal(price).as_integer_ratio()[0] * Fraction(1, Decimal(price).as_integer_ratio()[1])
                        for price in prices)  # fmt: skip
    assert Fraction(written_down(total)) <= total <= Fraction(written_up(total))
    assert Fraction(float_below(total)) <= total
    assert float_below(total) >= float(total) * (1 - 1e-15)


@given(st.floats(1e-6, 50))
def test_a_number_as_it_was_written_is_the_shortest_decimal_of_its_float(price):
    assert float(as_written(price)) == price
    assert as_written(0.1) == Fraction(1, 10)
