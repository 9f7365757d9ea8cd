"""`dpsr recommend`: one user, somebody new, everybody; for people and for scripts."""

import csv
import io
import json

import pyarrow.parquet as pq
import pytest

from dpsr import DPSR, Ratings, Scale, load_release
from dpsr.release.lists import batch as everyone


def test_a_user_gets_the_list_of_the_python_call(dpsr, folder):
    outcome = dpsr("recommend", folder, "--user", "42", "-n", "4", "--json")
    assert outcome.code == 0, outcome.err
    rows = json.loads(outcome.out)
    expected = load_release(folder).recommend(42, 4)
    assert [row["item"] for row in rows] == expected.items
    assert [row["score"] for row in rows] == expected.scores.tolist()
    assert [row["rank"] for row in rows] == [1, 2, 3, 4]
    assert {row["user"] for row in rows} == {42}


def test_csv_and_json_say_the_same(dpsr, folder):
    text = dpsr("recommend", folder, "--user", "3", "--format", "csv").out
    rows = list(csv.DictReader(io.StringIO(text)))
    same = json.loads(dpsr("recommend", folder, "--user", "3", "--format", "json").out)
    assert [int(row["item"]) for row in rows] == [row["item"] for row in same]
    assert [float(row["score"]) for row in rows] == pytest.approx([row["score"] for row in same])


def test_the_table_explains_its_order(dpsr, folder):
    outcome = dpsr("recommend", folder, "--user", "42")
    assert "For user 42" in outcome.out
    assert "how likely the user is to meet an item" in outcome.out


def test_an_unknown_number_is_told_the_range_of_ids(dpsr, folder):
    outcome = dpsr("recommend", folder, "--user", "4711")
    assert outcome.code == 2
    assert outcome.err.count("\n") == 1
    assert "'4711' is not in this release" in outcome.err
    assert "from 1 to 60" in outcome.err
    assert "--rated" in outcome.err


def test_an_unknown_name_is_told_similar_ones(dpsr, named):
    outcome = dpsr("recommend", named, "--user", "anna 12")
    assert outcome.code == 2
    assert "Did you mean 'ann 12'" in outcome.err
    assert "are called" in dpsr("recommend", named, "--user", "zzzzzzzzz").err


def test_an_id_from_a_stranger_cannot_steer_the_terminal(dpsr, named):
    evil = "\x1b[31mred[bold]"
    table = dpsr("recommend", named, "--user", evil)
    assert table.code == 0
    assert "\x1b" not in table.out
    assert "red[bold]" in table.out
    assert "\x1b" not in dpsr("recommend", named, "--user", "\x1b[2Jx").err
    assert json.loads(dpsr("recommend", named, "--user", evil, "--json").out)[0]["user"] == evil


def test_somebody_new_gets_the_list_of_fold_in(dpsr, named):
    outcome = dpsr("recommend", named, "--rated", "film 3=5", "--rated", "film 9=1", "-n", "3", "--json")
    assert outcome.code == 0, outcome.err
    assert [row["item"] for row in json.loads(outcome.out)] == load_release(named).fold_in(
        ["film 3", "film 9"], [5, 1], n=3
    ).items


def test_a_rating_may_have_a_decimal_comma_as_a_scale_may(dpsr, small_ratings, tmp_path):
    """It was refused with the very form that it had."""
    table, scale = small_ratings.to_arrow(), Scale(0.5, 5, step=0.5)
    halves = Ratings.from_arrays(table["user"], table["item"], table["rating"].to_numpy() - 0.5, scale=scale)
    folder = DPSR(1.0).fit(halves).save(tmp_path / "halves")
    lists = [dpsr("recommend", folder, "--rated", f"3={value}", "--json").out for value in ("4,5", "4.5")]
    assert lists[0] == lists[1] != ""


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ([], "say for whom"),
        (["--user", "1", "--rated", "1=5"], "say for whom"),
        (["--user", "1", "--out", "x.csv"], "belong together"),
        (["--all"], "belong together"),
        (["--rated", "film 3"], "ITEM=RATING"),
        (["--rated", "3=good"], "ITEM=RATING"),
        (["--rated", "3=9"], "not on this release's scale"),
        (["--rated", "nothing=5"], "this item is not in this release, so there is nothing to learn from"),
        (["--rated", "3=1,000,5"], "ITEM=RATING, such as 42=5"),
        (["--user", "1", "-n", "0"], "n must be at least 1"),
        (["--user", "1", "--format", "xml"], "xml"),
        (["--all", "--out", "lists.txt"], "extension"),
    ],
)
def test_what_cannot_be_asked_is_refused(dpsr, folder, options, word):
    outcome = dpsr("recommend", folder, *options)
    assert outcome.code == 2
    assert word in outcome.err
    assert "Traceback" not in outcome.err


def test_everybody_is_written_to_one_file_that_equals_single_lists(dpsr, folder, tmp_path):
    outcome = dpsr("recommend", folder, "--all", "-n", "3", "--out", tmp_path / "recs.parquet")
    assert outcome.code == 0, outcome.err
    assert "60 users" in outcome.out
    table = pq.read_table(tmp_path / "recs.parquet")
    release = load_release(folder)
    for user in (1, 30, 60):
        mine = table.filter([x == user for x in table["user"].to_pylist()])
        assert mine["item"].to_pylist() == release.recommend(user, 3).items


def test_an_existing_file_needs_force(dpsr, folder, tmp_path):
    path = tmp_path / "recs.csv"
    path.write_text("mine")
    refused = dpsr("recommend", folder, "--all", "--out", path)
    assert refused.code == 2
    assert "--force" in refused.err
    assert path.read_text() == "mine"
    assert dpsr("recommend", folder, "--all", "--out", path, "--force").code == 0
    assert path.read_text().startswith('"user","rank","item","score"')


def test_a_place_that_cannot_be_written_is_one_sentence(dpsr, folder, tmp_path):
    (tmp_path / "file").write_text("")
    outcome = dpsr("recommend", folder, "--all", "--out", tmp_path / "file" / "recs.csv")
    assert outcome.code == 2
    assert "could not be written" in outcome.err
    assert outcome.err.count("\n") == 1


def test_a_release_that_is_not_private_says_so_on_stderr_and_keeps_stdout_clean(dpsr, small_ratings, tmp_path):
    from dpsr import DPSR

    DPSR(1.0, random_state=0).fit(small_ratings).save(tmp_path / "seeded")
    outcome = dpsr("recommend", tmp_path / "seeded", "--user", "1", "--json")
    assert outcome.code == 0
    assert "NOT PRIVATE" in outcome.err
    json.loads(outcome.out)


def test_an_interruption_is_exit_code_130_and_leaves_nothing(dpsr, folder, tmp_path, monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(everyone, "_lists_of", stop)
    outcome = dpsr("recommend", folder, "--all", "--out", tmp_path / "recs.parquet")
    assert outcome.code == 130
    assert list(tmp_path.iterdir()) == []


def test_an_item_that_the_release_does_not_know_is_said_and_the_rest_is_used(dpsr, folder):
    outcome = dpsr("recommend", folder, "--rated", "1=5", "--rated", "nix[bold]=4", "-n", "2", "--json")
    assert outcome.err == "Not in this release, and without a part in the list: 'nix[bold]'.\n"
    assert json.loads(outcome.out) == json.loads(dpsr("recommend", folder, "--rated", "1=5", "-n", "2", "--json").out)


@pytest.mark.parametrize("likes", [False, True])
def test_items_that_are_all_unknown_are_refused_whatever_is_protected(dpsr, small_ratings, tmp_path, likes):
    rows = small_ratings.liked(at_least=1) if likes else small_ratings
    model = DPSR(5.0, unit="user", delta=1e-4, items=range(1, 41)).fit(rows)
    folder = model.save(tmp_path / "r")
    outcome = dpsr("recommend", folder, *(["--liked", "nix"] if likes else ["--rated", "nix=4"]))
    assert outcome.code == 2
    assert "this item is not in this release" in outcome.err


def test_an_empty_list_is_a_sentence(dpsr, tmp_path):
    full = Ratings.from_arrays([1, 1, 2, 2], [1, 2, 1, 2], [1, 2, 3, 4], scale="1:5:1")
    everything = DPSR(5.0).fit(full).save(tmp_path / "full")
    assert dpsr("recommend", everything, "--user", "1").out.startswith("Nothing is left to recommend")
    assert json.loads(dpsr("recommend", everything, "--user", "1", "--json").out) == []
    nameless = DPSR(1.0, unit="user", delta=1e-6).fit(full).save(tmp_path / "nameless")
    assert "No item of this release may be named" in dpsr("recommend", nameless, "--rated", "1=5").out
    (tmp_path / "full.csv").write_text("user,item,rating\n1,1,1\n1,2,2\n")
    lists = dpsr("personalise", nameless, tmp_path / "full.csv", "--out", tmp_path / "lists.parquet")
    assert "No item of this release may be named" in lists.out


def test_an_item_without_a_title_has_none_in_the_table(dpsr, folder, tmp_path):
    (tmp_path / "items.csv").write_text("item,title\n999,Heat\n")
    assert "None" not in dpsr("recommend", folder, "--user", "42", "--items", tmp_path / "items.csv").out
