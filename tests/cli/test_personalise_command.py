"""`dpsr personalise`: everybody's list from their own ratings, and for whom it is."""

import sqlite3

import numpy as np
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

from dpsr import load_release


@pytest.fixture
def raw(small_ratings, tmp_path):
    path = tmp_path / "ratings.csv"
    pacsv.write_csv(small_ratings.to_arrow(), path)
    return path


def test_lists_are_those_of_the_python_call_and_the_words_are_on_screen(dpsr, folder, raw, small_ratings, tmp_path):
    outcome = dpsr("personalise", folder, raw, "--out", tmp_path / "lists.parquet", "--n", "4")
    assert outcome.code == 0, outcome.err
    assert "Columns: user = " in outcome.out
    assert "Lists of 60 people written to" in outcome.out
    assert "Each list may be shown to its own person, and to nobody else." in outcome.out
    assert "joint differential privacy at epsilon = 1" in outcome.out
    expected = load_release(folder).personalise(small_ratings).table(4)
    found = pq.read_table(tmp_path / "lists.parquet")
    assert found.equals(expected)
    assert found.schema.metadata[b"dpsr.promise"] == b"joint differential privacy"


def test_ratings_of_a_database_begin_with_no_empty_line(dpsr, folder, tmp_path):
    with sqlite3.connect(tmp_path / "r.db") as database:
        database.execute("create table r (user, item, rating)")
        database.execute("insert into r values (1, 1, 5)")
    source = (f"sqlite:///{tmp_path}/r.db", "--query", "select * from r")
    assert dpsr("personalise", folder, *source, "--out", tmp_path / "x.parquet").out.startswith("Lists of 1 ")


def test_the_block_changes_no_list(dpsr, folder, raw, tmp_path):
    for name, block in (("a.parquet", []), ("b.parquet", ["--block", "7"])):
        assert dpsr("personalise", folder, raw, "--out", tmp_path / name, *block).code == 0
    assert pq.read_table(tmp_path / "a.parquet").equals(pq.read_table(tmp_path / "b.parquet"))


def test_pairs_are_predicted_with_what_each_prediction_rests_on(dpsr, folder, raw, small_ratings, tmp_path):
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("user,item\n1,1\n1,nowhere\nnobody,1\n")
    outcome = dpsr("personalise", folder, raw, "--predict", pairs, "--out", tmp_path / "predicted.parquet")
    assert outcome.code == 0, outcome.err
    found = pq.read_table(tmp_path / "predicted.parquet")
    assert found["basis"].to_pylist() == ["own ratings", "own mean", "item mean"]
    expected = load_release(folder).personalise(small_ratings).predict([1], [1])
    np.testing.assert_array_equal(found["prediction"].to_numpy()[:1], expected)
    assert b"dpsr.for" in found.schema.metadata


@pytest.mark.parametrize("header", ["who,wine", "user,item", "user_id,wine"])
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_pairs_may_be_called_as_the_ratings_call_theirs(dpsr, folder, small_ratings, tmp_path, header, suffix):
    """The refusal advised the very `--item` that had been given."""
    table = small_ratings.to_arrow().select(["user", "item", "rating"])
    pacsv.write_csv(table.rename_columns(["who", "wine", "rating"]), tmp_path / "ratings.csv")
    pairs = tmp_path / f"pairs{suffix}"
    rows = table.select(["user", "item"]).slice(0, 3).rename_columns(header.split(","))
    (pq.write_table if suffix == ".parquet" else pacsv.write_csv)(rows, pairs)
    named = ("--user", "who", "--item", "wine", "--predict", pairs, "--out", tmp_path / "p.parquet")
    outcome = dpsr("personalise", folder, tmp_path / "ratings.csv", *named)
    assert outcome.code == 0, outcome.err
    assert pq.read_table(tmp_path / "p.parquet")["basis"].to_pylist() == ["own ratings"] * 3


def test_a_file_of_one_persons_ratings_is_enough_for_their_list(dpsr, folder, tmp_path):
    raw = tmp_path / "mine.csv"
    raw.write_text("user,item,rating\n1,1,5\n")
    outcome = dpsr("personalise", folder, raw, "--out", tmp_path / "lists.parquet", "--n", "4")
    assert outcome.code == 0, outcome.err
    assert pq.read_table(tmp_path / "lists.parquet")["user"].to_pylist() == [1] * 4


def test_a_value_off_the_releases_scale_is_one_sentence_and_no_file(dpsr, folder, tmp_path):
    raw = tmp_path / "ratings.csv"
    raw.write_text("user,item,rating\n1,1,9\n")
    outcome = dpsr("personalise", folder, raw, "--out", tmp_path / "lists.parquet")
    assert outcome.code == 2
    assert outcome.err.count("\n") == 1
    assert "Here the scale is the release's, 1:5:1" in outcome.err
    assert not (tmp_path / "lists.parquet").exists()


def test_values_between_levels_are_put_on_the_releases_scale_where_that_is_asked_for(dpsr, folder, tmp_path):
    lists = {}
    for value, extra in (("4.3", []), ("4.3", ["--snap"]), ("4", [])):
        raw, target = tmp_path / "ratings.csv", tmp_path / f"{value}{extra}.parquet"
        raw.write_text(f"user,item,rating\n1,1,{value}\n1,2,1\n")
        outcome = dpsr("personalise", folder, raw, "--out", target, *extra)
        if value != "4" and not extra:
            assert outcome.code == 2
            assert "--snap" in outcome.err
        else:
            assert outcome.code == 0, outcome.err
            lists[value] = pq.read_table(target)
    assert lists["4.3"].equals(lists["4"])


def test_other_formats_and_existing_files_are_refused_before_anything_is_read(dpsr, tmp_path):
    outcome = dpsr("personalise", "nowhere", "nothing.csv", "--out", tmp_path / "lists.csv")
    assert outcome.code == 2
    assert "written as .parquet" in outcome.err
    (tmp_path / "lists.parquet").touch()
    outcome = dpsr("personalise", "nowhere", "nothing.csv", "--out", tmp_path / "lists.parquet")
    assert "exists already" in outcome.err


def test_a_release_that_is_not_private_is_announced(dpsr, small_ratings, raw, tmp_path):
    from dpsr import DPSR

    seeded = DPSR(1.0, random_state=0).fit(small_ratings).save(tmp_path / "seeded")
    outcome = dpsr("personalise", seeded, raw, "--out", tmp_path / "lists.parquet")
    assert outcome.code == 0
    assert "NOT PRIVATE" in outcome.err
    assert "NOT PRIVATE" in outcome.out
    assert pq.read_schema(tmp_path / "lists.parquet").metadata[b"dpsr.promise"] == b"NOT PRIVATE"
