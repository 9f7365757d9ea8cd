"""Interactions on the command line: which reading was taken is said, and what makes no sense is one sentence."""

import json
import re
import sqlite3

import numpy as np
import pyarrow.parquet as pq
import pytest

from dpsr import load_release
from dpsr.privacy.ledger.ledger import Ledger
from dpsr.release.likes import LikesRelease


def log(path, header="user,item", extra=(), n=150):
    rng = np.random.default_rng(0)
    lines = [header]
    for user in range(n):
        for item in rng.choice(30, 5, replace=False):
            lines.append(",".join([f"u{user}", f"i{item}", *extra]))
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="module")
def purchases(tmp_path_factory):
    return log(tmp_path_factory.mktemp("log") / "log.csv")


@pytest.fixture(scope="module")
def catalogue(tmp_path_factory):
    path = tmp_path_factory.mktemp("items") / "items.csv"
    path.write_text("item,title\n" + "".join(f"i{j},Film {j}\n" for j in range(30)))
    return path


def arguments(file, out, *more):
    return ["release", file, "--epsilon", "4", "--delta", "1e-4", "--out", out, "--yes", *more]


def test_a_log_without_ratings_is_released_served_and_explained(dpsr, purchases, catalogue, tmp_path):
    done = dpsr(*arguments(purchases, tmp_path / "r", "--items", catalogue))
    assert done.code == 0, done.err
    assert "There is no rating column, so every row is read as an interaction (--likes)." in done.out
    assert "every person, with everything they did" in done.out
    assert "that one interaction exists" in done.out
    assert isinstance(load_release(tmp_path / "r"), LikesRelease)
    assert dpsr("verify", tmp_path / "r").code == 0
    assert "it protects that an interaction exists" in dpsr("verify", tmp_path / "r", "--unit", "rating").out
    one = dpsr("recommend", tmp_path / "r", "--liked", "i1", "--liked", "i2", "-n", "3", "--format", "json")
    assert len(json.loads(one.out)) == 3
    lists = dpsr("personalise", tmp_path / "r", purchases, "--out", tmp_path / "lists.parquet", "-n", "4")
    assert "own interactions" in lists.out
    assert pq.read_table(tmp_path / "lists.parquet").num_rows == 4 * 150
    explained = dpsr("explain", "--release", tmp_path / "r").out
    assert "what they rated or did" in explained
    assert "that one interaction exists" in explained
    assert "one rating" not in explained
    assert dpsr("card", tmp_path / "r", "--out", tmp_path / "card.html").code == 0
    made = dpsr("synthesise", tmp_path / "r", "--people", "30", "--out", tmp_path / "people.parquet")
    assert "made-up interactions written" in made.out
    assert pq.read_table(tmp_path / "people.parquet").column_names == ["user", "item"]


def test_a_rating_column_that_is_not_asked_for_is_named_with_both_readings(dpsr, catalogue, tmp_path):
    file = log(tmp_path / "ratings.csv", "user,item,rating", ["4"])
    both = dpsr(*arguments(file, tmp_path / "r", "--items", catalogue, "--likes"))
    assert both.code == 0
    assert "The column 'rating' looks like a rating and was not read" in both.out
    assert "leave out --likes and name their --scale" in both.out
    neither = dpsr(*arguments(file, tmp_path / "s"))
    assert neither.code == 2
    assert "--scale 1:5:1" in neither.err
    assert "--likes" in neither.err
    assert not (tmp_path / "s").exists()


def test_repeated_interactions_are_added_up_and_said_in_memory_and_on_disk(dpsr, purchases, catalogue, tmp_path):
    file = tmp_path / "twice.csv"
    file.write_text(purchases.read_text() + "u1,i1\nu1,i1\n")
    for engine in ("memory", "disk"):
        done = dpsr(*arguments(file, tmp_path / engine, "--items", catalogue, "--engine", engine))
        assert done.code == 0, done.err
        assert "of the same user and item: their weights were added up" in done.out


@pytest.mark.parametrize(
    ("more", "advice"),
    [
        (["--likes", "--unit", "value"], "unit='user'"),
        (["--likes", "--scale", "1:5:1"], "leave out --scale"),
        (["--likes", "--method", "paper"], "--method default"),
        (["--likes", "--weight", "price"], "price"),
        (["--scale", "1:5:1", "--unit", "user", "--weight", "count"], "--likes"),
    ],
)
def test_what_makes_no_sense_is_one_sentence_and_nothing_is_charged(dpsr, purchases, tmp_path, more, advice):
    ledger = tmp_path / "ledger.db"
    settings = ["--dataset", "shop", "--epsilon", "9", "--delta", "0.01", "--unit", "user"]
    assert dpsr("ledger", "init", "--ledger", ledger, *settings).code == 0
    done = dpsr(*arguments(purchases, tmp_path / "r", "--ledger", ledger, *more))
    assert done.code == 2
    assert advice in done.err
    assert not (tmp_path / "r").exists()
    assert Ledger.open(str(ledger)).budget("shop").left_epsilon == 9


@pytest.mark.parametrize(
    ("weight", "what"), [("-2", "above zero"), ("inf", "finite"), ("0", "above zero"), ("much", "not a number")]
)
def test_weights_that_are_none_are_refused_with_their_place(dpsr, purchases, tmp_path, weight, what):
    file = tmp_path / "log.csv"
    file.write_text(f"user,item,weight\nann,heat,1\nbob,heat,2\nbob,alien,{weight}\n")
    done = dpsr(*arguments(file, tmp_path / "r"))
    assert done.code == 2
    assert what in done.err
    assert "row 4" in done.err


@pytest.mark.parametrize("rows", ["ann,heat\nann,alien", "ann,heat\nbob,heat"])
def test_one_person_or_one_item_is_a_sentence(dpsr, tmp_path, rows):
    file = tmp_path / "log.csv"
    file.write_text(f"user,item\n{rows}\n")
    done = dpsr(*arguments(file, tmp_path / "r"))
    assert done.code == 2
    assert "at least 2 users and 2 items" in done.err


def test_a_release_of_ratings_and_one_of_interactions_each_say_how_to_ask_them(dpsr, purchases, catalogue, tmp_path):
    assert dpsr(*arguments(purchases, tmp_path / "r", "--items", catalogue)).code == 0
    asked = dpsr("recommend", tmp_path / "r", "--rated", "i1=5")
    assert asked.code == 2
    assert "--liked ITEM" in asked.err
    assert "--liked ITEM" in dpsr("predict", tmp_path / "r", purchases).err
    assert "knows nobody" in dpsr("recommend", tmp_path / "r", "--user", "u1").err


def test_describe_takes_a_file_without_ratings_and_says_that_its_shape_is_secret(dpsr, purchases, tmp_path):
    found = dpsr("describe", purchases)
    assert found.code == 0, found.err
    for words in ("There is no rating column", "interactions per", "not private, for your eyes only", "750"):
        assert words in found.out
    shape = json.loads(dpsr("describe", purchases, "--json").out)
    assert (shape["n_users"], shape["n_items"], shape["n_ratings"]) == (150, 30, 750)
    rated = log(tmp_path / "ratings.csv", "user,item,rating", ["4"])
    assert "No rating was looked at" in dpsr("describe", rated).out
    assert "Who did what is their secret" in dpsr("describe", rated, "--likes").out
    bottles = log(tmp_path / "bottles.csv", "user,item,bottles", ["2"])
    assert "weight = 'bottles'" in dpsr("describe", bottles, "--weight", "bottles").out


def test_a_log_in_a_database_is_described_too(dpsr, tmp_path):
    with sqlite3.connect(tmp_path / "shop.db") as database:
        database.execute("create table sales (customer, article)")
        database.executemany("insert into sales values (?, ?)", [(1, "milk"), (1, "bread"), (2, "milk")])
    found = dpsr("describe", f"sqlite:///{tmp_path}/shop.db", "--query", "select * from sales", "--likes")
    assert found.code == 0, found.err
    assert "interactions per" in found.out


def test_a_log_whose_columns_nobody_could_guess_is_one_of_interactions_once_they_are_named(dpsr, tmp_path):
    two, dated = log(tmp_path / "two.csv", "customer,wine"), log(tmp_path / "dated.csv", "customer,wine,note", ["x"])
    for file in (two, dated):
        asked = dpsr(*arguments(file, tmp_path / "r", "--item", "wine", "--unit", "value"))
        assert "the secret of interactions" in asked.err
        assert "There is no rating column" in dpsr("describe", file, "--item", "wine").out
    for command in (arguments(two, tmp_path / "r"), ["describe", two], ["plan", two, "--delta", "1e-4"]):
        refused = dpsr(*command)
        assert refused.code == 2
        assert "no column looks like the item; the columns are 'customer', 'wine'" in refused.err
        assert "--item COLUMN" in refused.err
    assert dpsr("describe", two, "--columns").out == "customer: user\nwine\n"


def test_a_catalogue_may_call_its_items_as_the_log_does(dpsr, tmp_path):
    file, wines = log(tmp_path / "log.csv", "customer,wine"), tmp_path / "wines.csv"
    wines.write_text("wine,colour\n" + "".join(f"i{j},red\n" for j in range(30)))
    done = dpsr(*arguments(file, tmp_path / "r", "--item", "wine", "--items", wines))
    assert "Items that have a name, and may be on lists: 30." in done.out, done.err
    assert load_release(tmp_path / "r").popular(1).titles is None


def test_memory_that_does_not_hold_the_products_of_frequent_cells_is_refused_with_the_least_that_would(dpsr, tmp_path):
    file = log(tmp_path / "log.csv")
    done = dpsr(*arguments(file, tmp_path / "r", "--engine", "disk", "--memory", "500MB"))
    assert done.code == 2
    least, allowed = (int(one) for one in re.search(r"at least (\d+) MB, --memory allows (\d+) MB", done.err).groups())
    assert allowed == 500
    assert 750 <= least <= 800, "the interpreter's 350 MB and 400 for the products"
    assert not (tmp_path / "r").exists()


def test_a_plan_of_a_log_says_what_lists_would_be_worth_and_that_it_is_not_private(dpsr, purchases):
    shown = dpsr("plan", purchases, "--delta", "1e-4", "--epsilon", "1")
    assert shown.code == 0, shown.err
    assert "There is no rating column, so every row is read as an interaction (--likes)." in shown.out
    heads = ("epsilon", "lists", "popularity", "taste", "items asked", "no list")
    titles = next(line for line in shown.out.splitlines() if line.startswith("┃"))
    assert tuple(head.strip() for head in titles.split("┃")[1:-1]) == heads
    assert "not private, for your eyes only" in " ".join(shown.out.split())
    least, much = json.loads(dpsr("plan", purchases, "--likes", "--delta", "1e-4", "--epsilon", "1,20", "--json").out)[
        "forecasts"
    ]
    assert 0 < least["lists"] < much["lists"]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--likes"], "needs a delta"),
        (["--likes", "--delta", "1e-4"], "needs totals"),
        ([], "needs --likes"),
        (["--likes", "--unit", "value", "--users", "9"], "would publish every row"),
    ],
)
def test_a_plan_without_a_file_needs_totals_and_a_word_on_what_is_planned(dpsr, more, words):
    refused = dpsr("plan", *more)
    assert refused.code == 2
    assert words in refused.err
