"""`dpsr ledger` as an officer uses it, on SQLite and PostgreSQL: init, show, history, check, migrate."""

import json
import re
import sqlite3

import psycopg
import pytest
from small_ratings import options, write_csv

from dpsr.cli import terminal


@pytest.fixture
def book(dpsr, address, tmp_path):
    """A ledger of either kind with one release paid from it."""
    made = dpsr("ledger", "init", "--ledger", address, "--dataset", "films", "--epsilon", "3", "--note", "the board")
    assert made.code == 0, made.err
    csv = write_csv(tmp_path / "ratings.csv")
    assert dpsr("release", csv, *options(tmp_path / "r", epsilon="1"), "--ledger", address).code == 0
    return address


def head_of(dpsr, book):
    return json.loads(dpsr("ledger", "show", "--ledger", book, "--json").out)[0]["head"]


def test_init_says_how_much_delta_may_be_spent_where_some_may(dpsr, address):
    budget = ["--dataset", "people", "--epsilon", "3", "--delta", "1e-5", "--unit", "user"]
    said = " ".join(dpsr("ledger", "init", "--ledger", address, *budget).out.split())
    assert "people may cost epsilon = 3, delta = 1e-5 in all, for one person" in said


def test_init_says_what_may_be_spent_and_how_and_is_done_once(dpsr, address):
    arguments = ["ledger", "init", "--ledger", address, "--dataset", "films", "--epsilon", "0.30", "--unit", "value"]
    assert "films may cost epsilon = 0.30 in all, for the value of one rating" in " ".join(dpsr(*arguments).out.split())
    again = dpsr(*arguments)
    assert (again.code, "set once" in again.err) == (2, True)
    record = json.loads(dpsr("ledger", "show", "--ledger", address, "--json").out)[0]
    assert (record["exact"]["epsilon"], record["entries"], record["charges"]) == ("3/10", 1, 0)


@pytest.mark.parametrize("unit", ["rating", "user"])
def test_a_budget_that_no_release_could_be_charged_to_is_refused(dpsr, address, unit):
    arguments = ["ledger", "init", "--ledger", address, "--dataset", "films", "--epsilon", "3", "--unit", unit]
    refused = dpsr(*arguments)
    assert (refused.code, f"a budget for unit '{unit}' needs a delta" in refused.err) == (2, True)
    assert "no ledger" in dpsr("ledger", "show", "--ledger", address).err
    assert "may cost epsilon = 3, delta = 1e-5 in all" in dpsr(*arguments, "--delta", "1e-5").out


def test_show_and_history_fit_eighty_columns_and_cut_nothing(dpsr, book, monkeypatch):
    for command in ("show", "history"):
        told = dpsr("ledger", command, "--ledger", book, "--json").out
        monkeypatch.setattr(terminal.out, "_width", 80)
        shown = dpsr("ledger", command, "--ledger", book).out
        assert "…" not in shown
        for digest in re.findall(r"[0-9a-f]{64}", told):
            assert digest in shown, "a digest is whole, on one line, to be copied"
        assert all(len(line) <= 90 for line in shown.splitlines())


def test_the_head_that_show_prints_is_taken_by_check_as_it_is(dpsr, book):
    (line,) = [line for line in dpsr("ledger", "show", "--ledger", book).out.splitlines() if line.startswith("films=")]
    outcome = dpsr("ledger", "check", "--ledger", book, "--head", line.split()[0])
    assert outcome.code == 0
    assert "the head that was noted is entry 3 of 3" in outcome.out


def test_a_head_noted_before_is_still_found_after_more_was_spent(dpsr, book, tmp_path):
    noted = head_of(dpsr, book)
    assert dpsr("release", tmp_path / "ratings.csv", *options(tmp_path / "s", epsilon="1"), "--ledger", book).code == 0
    outcome = dpsr("ledger", "check", "--ledger", book, "--head", f"films={noted}", "--release", tmp_path / "r")
    assert outcome.code == 0, outcome.out
    assert "is entry 3 of 5" in outcome.out


@pytest.mark.parametrize(
    ("head", "code", "words"),
    [
        ("films=" + "0" * 64, 1, "the history was rewritten, cut off or replaced after that"),
        ("songs=" + "0" * 64, 1, "songs"),
        ("films", 2, "DATASET=DIGEST"),
        ("films=abc", 2, "64 hexadecimal digits"),
    ],
)
def test_a_head_that_does_not_occur_is_exit_code_one_and_one_that_is_none_two(dpsr, book, head, code, words):
    outcome = dpsr("ledger", "check", "--ledger", book, "--head", head)
    assert outcome.code == code
    assert words in outcome.out + outcome.err
    assert "Traceback" not in outcome.err


def rewrite(address):
    """As its owner could: without the guards, the release's note is another."""
    change = "update dpsr_events set note = 'another board' where number = 1"
    if address.startswith("postgresql"):
        with psycopg.connect(address) as connection:
            connection.execute("alter table dpsr_events disable trigger user")
            connection.execute(change)
        return
    with sqlite3.connect(address) as connection:
        for (name,) in connection.execute("select name from sqlite_master where type = 'trigger'").fetchall():
            connection.execute(f'drop trigger "{name}"')
        connection.execute(change)


def test_an_edited_row_is_a_line_of_check_and_nothing_more_is_charged(dpsr, book, tmp_path):
    rewrite(book)
    outcome = dpsr("ledger", "check", "--ledger", book, "--json")
    assert outcome.code == 1
    assert json.loads(outcome.out)["fails"]
    refused = dpsr("release", tmp_path / "ratings.csv", *options(tmp_path / "s"), "--ledger", book)
    assert refused.code == 2
    assert not (tmp_path / "s").exists()


def test_a_ledger_that_is_up_to_date_has_nothing_to_migrate(dpsr, book):
    before = head_of(dpsr, book)
    assert "Nothing to do: 3 entries, up to date." in dpsr("ledger", "migrate", "--ledger", book).out
    assert head_of(dpsr, book) == before


def test_where_there_is_no_ledger_every_command_says_so_and_makes_none(dpsr, tmp_path):
    for command in ("show", "history", "check", "migrate"):
        outcome = dpsr("ledger", command, "--ledger", tmp_path / "none.db")
        assert outcome.code == 2, command
        assert "Traceback" not in outcome.err
    assert list(tmp_path.iterdir()) == []
