"""Ratings from a database: the same table as from a file, read only, and never a password in what is said."""

import sqlite3
import sys
import traceback
from datetime import UTC, datetime
from decimal import Decimal
from uuid import UUID

import forked
import numpy as np
import psycopg
import pytest
from postgres_server import PASSWORD
from sqlalchemy import URL

from dpsr import Ratings, Scale, load_release
from dpsr.data import sql
from dpsr.errors import DataError, DpsrError, ParameterError
from dpsr.privacy.ledger.ledger import Ledger

SCALE = Scale(1, 5)
QUERY = "select user_id, item_id, stars as rating from ratings"


def rows(n=200):
    rng = np.random.default_rng(0)
    cells = rng.choice(30 * 20, n, replace=False)
    return [(f"u{c // 20}", int(c % 20), int(rng.integers(1, 6))) for c in cells]


@pytest.fixture
def stocked(address):
    """A database of either kind with a table of ratings, as an address."""
    make = "create table ratings (user_id text, item_id integer, stars integer)"
    if address.startswith("postgresql"):
        with psycopg.connect(address) as connection:
            connection.execute(make)
            connection.cursor().executemany("insert into ratings values (%s, %s, %s)", rows())
        return address
    with sqlite3.connect(address) as connection:
        connection.execute(make)
        connection.executemany("insert into ratings values (?, ?, ?)", rows())
    return f"sqlite:///{address}"


def same(one, other):
    assert one.to_arrow().equals(other.to_arrow())


@pytest.mark.parametrize("chunk", [7, 200, 1 << 16])
def test_a_query_gives_the_table_that_arrays_give(stocked, monkeypatch, chunk):
    monkeypatch.setattr(sql, "CHUNK", chunk)
    users, items, values = zip(*rows(), strict=True)
    same(Ratings.from_sql(stocked, QUERY, scale=SCALE), Ratings.from_arrays(users, items, values, scale=SCALE))


def test_columns_are_found_by_name_or_named(stocked):
    query = "select stars, item_id as thing, user_id as who from ratings;"
    with pytest.raises(DataError, match=r"no column looks like the user.*--user"):
        Ratings.from_sql(stocked, query, scale=SCALE)
    named = Ratings.from_sql(stocked, query, scale=SCALE, user="who", item="thing", rating="stars")
    same(named, Ratings.from_sql(stocked, QUERY, scale=SCALE))


def test_signs_that_drivers_treat_specially_reach_the_database_as_written(stocked):
    query = QUERY + " where user_id like 'u1%' and item_id % 2 = 0 and ':name' <> '%s'"
    found = Ratings.from_sql(stocked, query, scale=SCALE)
    assert len(found) == sum(user.startswith("u1") and item % 2 == 0 for user, item, _ in rows())


@pytest.mark.parametrize(
    ("query", "word"),
    [
        ("delete from ratings", "."),
        ("drop table ratings", "."),
        ("insert into ratings values ('x', 1, 1) returning user_id, item_id, stars", "."),
        ("select 1; delete from ratings", "."),
        ("selec user_id", "is not a SELECT"),
        ("select user_id frm ratings where", "syntax error"),
        ("select user_id, item_id, stars from nowhere", "nowhere"),
        ("", "empty"),
        (QUERY + " where stars = 9", "no ratings"),
        ("select user_id, item_id, null as rating from ratings", "rating"),
        ("select user_id, item_id, 'good' as rating from ratings", "the rating is not a number"),
        ("select user_id, item_id, stars * 3 as rating from ratings", "not on the scale"),
    ],
)
def test_what_is_not_a_query_of_ratings_is_refused_in_a_sentence_and_changes_nothing(stocked, query, word):
    with pytest.raises(DataError) as refused:
        Ratings.from_sql(stocked, query, scale=SCALE)
    assert word in str(refused.value)
    assert str(refused.value).isprintable()
    assert len(Ratings.from_sql(stocked, QUERY, scale=SCALE)) == 200


@pytest.mark.parametrize(
    "query",
    [
        "attach '{path}' as other",
        "select 1; attach '{path}' as other",
        "vacuum into '{path}'",
        "/* a remark */ -- and another\n pragma journal_mode = wal",
        "explain select user_id, item_id, stars as rating from ratings",
        "select 1; commit; delete from ratings",
        "with gone as (delete from ratings returning *) select user_id, item_id, stars as rating from gone",
        "copy ratings to '{path}'",
        "select user_id, item_id, stars as rating into other from ratings",
        "begin",
    ],
)
def test_whatever_is_not_one_select_makes_no_file_and_changes_nothing(stocked, tmp_path, query):
    before, made = sorted(tmp_path.iterdir()), tmp_path / "made.db"
    with pytest.raises(DataError, match="SELECT"):
        Ratings.from_sql(stocked, query.format(path=made), scale=SCALE)
    assert sorted(tmp_path.iterdir()) == before
    assert len(Ratings.from_sql(stocked, QUERY, scale=SCALE)) == 200


def test_a_select_may_begin_with_remarks_brackets_or_its_own_tables(stocked):
    for query in (f"-- all of it\n/* yes */ {QUERY}", f"with all_of_it as ({QUERY}) select * from all_of_it"):
        assert len(Ratings.from_sql(stocked, query, scale=SCALE)) == 200


def test_a_value_the_database_itself_refuses_is_not_quoted(postgres):
    address = postgres.new_database()
    with psycopg.connect(address) as connection:
        connection.execute("create table r (user_id int, item_id int, stars text)")
        connection.execute("insert into r values (1, 1, '4'), (2, 2, '4,75')")
    with pytest.raises(DataError, match="invalid input syntax for type integer") as refused:
        Ratings.from_sql(address, "select user_id, item_id, stars::int as rating from r", scale=SCALE)
    assert "4,75" not in str(refused.value)


def test_types_of_postgresql_become_what_a_rating_table_knows(postgres):
    address = postgres.new_database()
    with psycopg.connect(address) as connection:
        connection.execute("create table r (user_id uuid, item_id bigint, rating numeric(3, 1), timestamp timestamptz)")
        when = datetime(2024, 5, 3, 12, tzinfo=UTC)
        for user, item, value in ((1, 2**40, "4.5"), (2, 2**40 + 1, "0.5"), (1, 2**40 + 1, "3")):
            connection.execute("insert into r values (%s, %s, %s, %s)", (UUID(int=user), item, Decimal(value), when))
    found = Ratings.from_sql(address, "select * from r", scale=Scale(0.5, 5, step=0.5))
    assert found.values.tolist() == [4.5, 3.0, 0.5]
    assert found.mask.user_ids.to_pylist() == [str(UUID(int=1)), str(UUID(int=2))]
    assert found.mask.item_ids.to_pylist() == [2**40, 2**40 + 1]
    assert set(found.mask.timestamps) == {int(when.timestamp())}


def test_a_column_of_many_types_is_refused_with_the_cast_to_use(tmp_path, monkeypatch):
    with sqlite3.connect(tmp_path / "r.db") as connection:
        connection.execute("create table r (user_id, item_id, rating)")
        connection.executemany("insert into r values (?, ?, ?)", [(1, 1, 1), (2, 2, 2.0), ("x", 1, 3), (2, 1, None)])
    address = f"sqlite:///{tmp_path}/r.db"
    with pytest.raises(DataError, match=r"'user_id' has more than one type.*cast"):
        Ratings.from_sql(address, "select * from r where rating is not null", scale=SCALE)
    with pytest.raises(DataError, match="row 2: the rating is missing"):
        Ratings.from_sql(address, "select * from r where user_id = 2", scale=SCALE)
    monkeypatch.setattr(sql, "CHUNK", 1)  # whole numbers in one chunk, a fraction in the next
    found = Ratings.from_sql(address, "select * from r where user_id in (1, 2) and rating > 0", scale=SCALE)
    assert found.values.tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://ada:{}@127.0.0.1:1/db",
        "postgresql://ada:{}@no-such-host.invalid/db",
        "postgresql://127.0.0.1:1/db?user=ada&password={}",
        "postgresql://ada:{}@127.0.0.1:port/db",
        "postgresql://ada:{}@x@127.0.0.1/db",
        "oracle://ada:{}@127.0.0.1/db",
        "sqlite://ada:{}@host/db",
    ],
)
def test_a_password_is_never_said(address):
    secret = "hunter2-hunter2"
    for act in (
        lambda: Ratings.from_sql(address.format(secret), QUERY, scale=SCALE),
        lambda: Ledger.open(address.format(secret)),
    ):
        with pytest.raises(DpsrError) as refused:
            act()
        assert secret not in "".join(traceback.format_exception(refused.value))


def test_a_refused_password_is_not_said_either_and_the_right_one_works(postgres):
    name = postgres.new_database().split("@/")[1].split("?")[0]
    wrong = postgres.with_password("hunter2-hunter2", name)
    with pytest.raises(DataError, match="password authentication failed") as refused:
        Ratings.from_sql(wrong, QUERY, scale=SCALE)
    assert "hunter2" not in str(refused.value)
    right = URL.create("postgresql", "ada", PASSWORD, "127.0.0.1", postgres.port, name).render_as_string(False)
    with pytest.raises(DataError, match="does not exist"):
        Ratings.from_sql(right, QUERY, scale=SCALE)


def test_a_missing_file_and_an_address_without_one_are_said(tmp_path):
    with pytest.raises(DataError, match=r"nothing\.db does not exist"):
        Ratings.from_sql(f"sqlite:///{tmp_path}/nothing.db", QUERY, scale=SCALE)
    assert not list(tmp_path.iterdir())
    with pytest.raises(ParameterError, match="three slashes"):
        Ratings.from_sql("sqlite://", QUERY, scale=SCALE)


def test_a_path_is_an_address_and_a_connection_is_none(tmp_path):
    """Both ended in `object has no attribute 'strip'`."""
    with sqlite3.connect(tmp_path / "r.db") as database:
        database.execute("create table r (user, item, rating)")
        database.execute("insert into r values (1, 1, 5)")
    assert len(Ratings.from_sql(tmp_path / "r.db", "select * from r", scale="1:5:1")) == 1
    with pytest.raises(ParameterError, match="given by its address, found Connection"):
        Ratings.from_sql(database, "select * from r", scale="1:5:1")


def test_a_release_from_postgresql_charged_to_a_ledger_in_it(stocked, tmp_path):
    """Both in one database, as a team would have it; the command never shows where it lives in full."""
    Ledger.create(stocked, "ratings", "1")
    options = ["--scale", "1:5:1", "--epsilon", "0.1", "--out", "r", "--ledger", stocked, "--yes"]
    run = forked.run([sys.executable, "-m", "dpsr", "release", stocked, "--query", QUERY, *options], cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    assert len(load_release(tmp_path / "r").ratings) == 200
    assert Ledger.open(stocked).budget().releases == 1
