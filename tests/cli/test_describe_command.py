"""`dpsr describe`: the shape of the data, and nothing that depends on a value."""

import json
import sqlite3

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest


@pytest.fixture
def csv(small_ratings, tmp_path):
    small_ratings.to_frame().to_csv(tmp_path / "ratings.csv", index=False)
    return tmp_path / "ratings.csv"


def test_the_counts_are_those_of_the_file(dpsr, small_ratings, csv):
    outcome = dpsr("describe", csv, "--json")
    assert outcome.code == 0, outcome.err
    shape = json.loads(outcome.out)
    mask = small_ratings.mask
    assert shape["n_ratings"] == shape["n_rows"] == mask.n_ratings
    assert (shape["n_users"], shape["n_items"]) == mask.shape
    assert shape["density"] == pytest.approx(mask.n_ratings / (60 * 40))
    assert shape["per_user"]["least"] == mask.user_counts.min()
    assert shape["per_user"]["most"] == mask.user_counts.max()
    assert shape["per_item"]["median"] == np.sort(mask.item_counts)[19]
    assert shape["first"] < shape["last"]


def test_nothing_it_prints_depends_on_a_value(dpsr, small_ratings, csv, tmp_path):
    (tmp_path / "other").mkdir()
    frame = small_ratings.to_frame()
    frame["rating"] = 6 - frame["rating"]
    other = tmp_path / "other" / "ratings.csv"
    frame.to_csv(other, index=False)
    assert dpsr("describe", csv).out == dpsr("describe", other).out
    frame["rating"] = "secret"
    frame.to_csv(other, index=False)
    assert dpsr("describe", csv, "--json").out == dpsr("describe", other, "--json").out, "it does not even read them"


def test_repeated_pairs_are_counted_once_and_reported(dpsr, tmp_path):
    (tmp_path / "twice.csv").write_text("user,item,rating\na,x,1\nb,y,2\na,x,3\na,x,4\n")
    shape = json.loads(dpsr("describe", tmp_path / "twice.csv", "--json").out)
    assert (shape["n_rows"], shape["n_ratings"], shape["duplicates"]) == (4, 2, 2)
    assert shape["per_user"]["most"] == 1
    assert shape["first"] is None
    assert "--duplicates" in dpsr("describe", tmp_path / "twice.csv").out


def test_people_get_a_table_and_are_told_what_it_does_not_say(dpsr, csv):
    outcome = dpsr("describe", csv)
    assert "No rating was looked at" in outcome.out
    assert "1,200" in outcome.out
    assert "(UTC)" in outcome.out
    words = " ".join(outcome.out.split())
    assert "for your eyes only until it is decided what is protected" in words, "at other units nothing of it is public"
    assert "times with --timestamps" in words


def test_parquet_and_named_columns_are_read(dpsr, tmp_path):
    pq.write_table(pa.table({"who": ["a", "b"], "what": [1, 2], "stars": [1, 2]}), tmp_path / "r.parquet")
    shape = json.loads(dpsr("describe", tmp_path / "r.parquet", "--user", "who", "--item", "what", "--json").out)
    assert shape["ids"] == {"user": "string", "item": "int64"}


def test_times_that_no_calendar_has_are_shown_as_numbers(dpsr, tmp_path):
    (tmp_path / "far.csv").write_text(f"user,item,rating,timestamp\na,x,1,{10**14}\nb,y,2,5\n")
    assert json.loads(dpsr("describe", tmp_path / "far.csv", "--json").out)["last"] == str(10**14)


@pytest.mark.parametrize(
    ("content", "word"),
    [(None, "does not exist"), (b"", "empty"), (b"user,item,rating\n", "no ratings"), (b"a,b,c\nd,e,f\n", "--user")],
)
def test_what_is_no_rating_file_is_one_sentence(dpsr, tmp_path, content, word):
    path = tmp_path / "broken.csv"
    if content is not None:
        path.write_bytes(content)
    outcome = dpsr("describe", path)
    assert outcome.code == 2
    assert word in outcome.err
    assert outcome.err.count("\n") == 1


def test_a_database_is_described_like_a_file(dpsr, small_ratings, csv, tmp_path):
    with sqlite3.connect(tmp_path / "shop.db") as database:
        small_ratings.to_frame().to_sql("ratings", database, index=False)
    database.close()
    url, query = f"sqlite:///{tmp_path / 'shop.db'}", "select * from ratings"
    outcome = dpsr("describe", url, "--query", query, "--json")
    assert outcome.code == 0, outcome.err
    ours, theirs = json.loads(outcome.out), json.loads(dpsr("describe", csv, "--json").out)
    assert {**ours, "source": ""} == {**theirs, "source": ""}
    refused = dpsr("describe", url)
    assert refused.code == 2
    assert "--query" in refused.err


def test_the_columns_alone_are_named_with_what_each_is_taken_for(dpsr, tmp_path):
    file = tmp_path / "r.csv"
    file.write_text("userId,what,stars,when\nsecret-user,b,4.0625,1\n")
    outcome = dpsr("describe", file, "--columns")
    assert outcome.out.splitlines() == ["userId: user", "what", "stars: rating", "when"]
    found = json.loads(dpsr("describe", file, "--columns", "--json").out)
    assert found["taken"] == {"user": "userId", "item": None, "rating": "stars", "timestamp": None, "weight": None}
    assert found["header"] is True


def test_a_file_without_a_header_names_its_columns_by_place_and_numbers_are_not_repeated(dpsr, tmp_path):
    file = tmp_path / "r.csv"
    file.write_text("1,2,3\n")
    found = json.loads(dpsr("describe", file, "--columns", "--json").out)
    assert (found["names"], found["header"]) == (["user", "item", "rating"], False)
    file.write_text("1,2,3,4,5\n1,2,3,4,5\n")
    outcome = dpsr("describe", file, "--columns")
    assert outcome.code == 2
    assert "add one: user,item,rating" in " ".join(outcome.err.split())
    assert dpsr("describe", "sqlite:///x.db", "--query", "select 1", "--columns").code == 2
