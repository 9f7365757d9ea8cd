"""Interactions: who did what, from anywhere ratings come from, added up, without a scale, and split by people."""

import sqlite3

import numpy as np
import pandas as pd
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpsr import Interactions, Ratings
from dpsr.engine import MemoryTable
from dpsr.errors import DataError, ParameterError

USERS = ["bob", "ann", "bob", "cid", "bob", "ann"]
ITEMS = [3, 3, 1, 2, 3, 1]
WEIGHTS = [2.0, 1.0, 0.5, 4.0, 1.5, 3.0]
TIMES = [50, 40, 30, 20, 90, 10]
ADDED_UP = {("ann", 1): 3.0, ("ann", 3): 1.0, ("bob", 1): 0.5, ("bob", 3): 3.5, ("cid", 2): 4.0}


def pairs(likes):
    rows = likes.to_arrow().to_pydict()
    return dict(zip(zip(rows["user"], rows["item"], strict=True), rows["weight"], strict=True))


@pytest.fixture(scope="module")
def crowd():
    rng = np.random.default_rng(3)
    cells = np.unique(rng.integers(0, 200 * 60, 2_000))
    return Interactions.from_arrays(cells // 60, cells % 60)


def test_interactions_of_one_pair_are_added_up_and_it_is_said_how_many():
    likes = Interactions.from_arrays(USERS, ITEMS, WEIGHTS, TIMES)
    assert pairs(likes) == ADDED_UP
    assert (likes.n_users, likes.n_items, likes.n_interactions) == (3, 3, 5)
    assert likes.user_ids.to_pylist() == ["ann", "bob", "cid"]
    assert likes.item_ids.to_pylist() == [1, 2, 3]
    assert likes.notes == (
        "1 interaction repeats an earlier one of the same user and item: their weights were added up.",
    )


def test_a_pairs_time_is_that_of_its_latest_interaction():
    likes = Interactions.from_arrays(USERS, ITEMS, WEIGHTS, TIMES)
    assert likes.mask.timestamps.tolist() == [10, 40, 30, 90, 20]


def test_without_weights_every_row_weighs_one_and_repeats_are_counted():
    likes = Interactions.from_arrays(USERS, ITEMS)
    assert pairs(likes) == {pair: 2.0 if pair == ("bob", 3) else 1.0 for pair in ADDED_UP}


def test_the_order_of_the_input_does_not_matter():
    order = np.random.default_rng(0).permutation(len(USERS))
    shuffled = Interactions.from_arrays(
        np.array(USERS)[order], np.array(ITEMS)[order], np.array(WEIGHTS)[order], np.array(TIMES)[order]
    )
    assert shuffled.to_arrow().equals(Interactions.from_arrays(USERS, ITEMS, WEIGHTS, TIMES).to_arrow())


@pytest.mark.parametrize("frame", [pd.DataFrame, polars.DataFrame, pa.table])
def test_frames_of_every_kind_give_the_same_table(frame):
    columns = {"customerId": USERS, "product_id": ITEMS, "Quantity": WEIGHTS, "timestamp": TIMES}
    likes = Interactions.from_frame(frame(columns))
    assert likes.to_arrow().equals(Interactions.from_arrays(USERS, ITEMS, WEIGHTS, TIMES).to_arrow())


@pytest.mark.parametrize("suffix", ["csv", "tsv", "parquet", "jsonl", "csv.gz"])
def test_files_of_every_kind_give_the_same_table(tmp_path, suffix):
    frame = pd.DataFrame({"user": USERS, "item": ITEMS, "weight": WEIGHTS, "timestamp": TIMES})
    path = tmp_path / f"likes.{suffix}"
    if suffix == "parquet":
        frame.to_parquet(path)
    elif suffix == "jsonl":
        frame.to_json(path, orient="records", lines=True)
    else:
        frame.to_csv(path, index=False, sep="\t" if suffix == "tsv" else ",")
    assert Interactions.read(path).to_arrow().equals(Interactions.from_arrays(USERS, ITEMS, WEIGHTS, TIMES).to_arrow())


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pairs.csv", "user,item\n1,10\n2,10\n2,20\n"),
        ("pairs.csv", "1,10\n2,10\n2,20\n"),
        ("pairs.tsv", "1\t10\n2\t10\n2\t20\n"),
        ("pairs.csv", "user;item\n1;10\n2;10\n2;20\n"),
    ],
)
def test_two_columns_are_enough(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    assert set(pairs(Interactions.read(tmp_path / name))) == {(1, 10), (2, 10), (2, 20)}


def test_a_database_gives_the_same_table(tmp_path):
    with sqlite3.connect(tmp_path / "shop.db") as base:
        base.execute("create table log (who text, what integer, n real)")
        base.executemany("insert into log values (?, ?, ?)", zip(USERS, ITEMS, WEIGHTS, strict=True))
    url = f"sqlite:///{tmp_path / 'shop.db'}"
    likes = Interactions.from_sql(url, "select who, what, n from log", user="who", item="what", weight="n")
    assert pairs(likes) == ADDED_UP


def test_a_rating_column_that_was_not_asked_for_is_named_with_the_other_readings(tmp_path):
    path = tmp_path / "u.csv"
    path.write_text("user,item,rating\n1,10,5\n2,10,1\n2,20,3\n")
    likes = Interactions.read(path)
    assert set(likes.weights) == {1.0}
    (note,) = likes.notes
    assert "'rating' looks like a rating and was not read" in note
    assert "liked(at_least=...)" in note
    assert "weight='rating'" in note
    assert Interactions.read(path, weight="rating").notes == ()
    assert sorted(Interactions.read(path, weight="rating").weights) == [1.0, 3.0, 5.0]


def test_a_rating_column_of_a_file_without_header_is_named_by_its_place(tmp_path):
    (tmp_path / "u.data").write_text("1\t10\t5\t99\n2\t10\t1\t98\n2\t20\t3\t97\n")
    likes = Interactions.read(tmp_path / "u.data")
    assert "'column 3' looks like a rating" in likes.notes[0]
    assert likes.mask.timestamps.tolist() == [99, 98, 97]


@pytest.mark.parametrize("bad", [-3.25, 0.0, np.inf, -np.inf])
def test_a_weight_that_is_not_above_zero_and_finite_is_refused_and_not_quoted(bad):
    with pytest.raises(
        DataError, match=r"position 1: the weight is not a finite number above zero.*weight=\"\" \(or --weight \"\"\)"
    ) as it:
        Interactions.from_arrays([1, 2, 2], [1, 1, 2], [1, bad, 1])
    assert str(bad) not in str(it.value)


@pytest.mark.parametrize("missing", [None, float("nan")])
def test_missing_weights_and_ids_are_refused(missing):
    with pytest.raises(DataError, match="position 1: the weight is"):
        Interactions.from_arrays([1, 2, 2], [1, 1, 2], [1, missing, 1])
    with pytest.raises(DataError, match="position 2: the user is missing"):
        Interactions.from_arrays([1, 2, missing], [1, 1, 2])
    with pytest.raises(DataError, match="position 0: the item is missing"):
        Interactions.from_arrays([1, 2, 2], [missing, 1, 2])


def test_weights_written_as_words_are_refused_without_the_word(tmp_path):
    (tmp_path / "log.csv").write_text("user,item,count\n1,10,secret\n2,20,3\n")
    with pytest.raises(DataError, match="row 2: the weight is not a number") as it:
        Interactions.read(tmp_path / "log.csv")
    assert "secret" not in str(it.value)
    assert len(Interactions.read(tmp_path / "log.csv", weight="")) == 2


def test_weights_that_add_up_to_infinity_are_refused():
    with pytest.raises(DataError, match="add up to more than a number can hold"):
        Interactions.from_arrays([1, 1, 2], [1, 1, 2], [1e308, 1e308, 1])


def test_no_rows_and_columns_of_different_lengths_are_refused():
    with pytest.raises(DataError, match="there are no interactions"):
        Interactions.from_arrays([], [])
    with pytest.raises(DataError, match="one entry per interaction"):
        Interactions.from_arrays([1, 1], [1, 2, 3])


def test_its_words_show_no_weight():
    likes = Interactions.from_arrays(USERS, ITEMS, [7.75] * 6)
    assert repr(likes) == "Interactions(5 interactions, 3 users, 3 items)"
    assert not likes.weights.flags.writeable


def test_a_person_with_a_hundred_thousand_interactions_is_taken():
    n = 100_000
    likes = Interactions.from_arrays(np.r_[np.zeros(n, int), 1], np.r_[np.arange(n), 0])
    assert likes.mask.user_counts.tolist() == [n, 1]


def test_ratings_of_at_least_so_much_become_interactions():
    ratings = Ratings.from_arrays(["a", "a", "b", "b", "c"], [1, 2, 2, 3, 9], [5, 3, 4, 4.5, 1], scale="0.5:5:0.5")
    likes = ratings.liked(at_least=4)
    assert set(pairs(likes)) == {("a", 1), ("b", 2), ("b", 3)}
    assert likes.user_ids.to_pylist() == ["a", "b"]
    assert likes.item_ids.to_pylist() == [1, 2, 3]
    assert set(ratings.liked(at_least=0.5).weights) == {1.0}
    assert len(ratings.liked(at_least=0.5)) == len(ratings)


def test_a_threshold_off_the_scale_and_one_that_nobody_reaches_are_refused():
    ratings = Ratings.from_arrays(["a", "a", "b"], [1, 2, 2], [1, 2, 1], scale=(1, 5))
    with pytest.raises(ParameterError, match="from 1 to 5, the ends of the scale"):
        ratings.liked(at_least=6)
    with pytest.raises(DataError, match="Choose another threshold"):
        ratings.liked(at_least=5)


def test_the_blocks_of_the_engine_take_interactions_as_they_are():
    likes = Interactions.from_arrays(USERS, ITEMS, WEIGHTS)
    table = MemoryTable(likes.mask, {"weight": likes.weights}, block_ratings=2)
    assert np.concatenate([block.columns["weight"] for block in table.scan(["weight"])]).tolist() == list(likes.weights)


def test_a_random_split_keeps_codes_and_parts_the_interactions(crowd):
    train, test = crowd.split(0.2, seed=1)
    assert len(train) + len(test) == len(crowd)
    assert not set(pairs(train)) & set(pairs(test))
    assert train.item_ids.equals(crowd.item_ids)
    assert type(train) is Interactions


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_held_out_people_are_a_fifth_with_a_fifth_of_their_items_hidden_and_at_least_one(crowd, seed):
    train, shown, hidden = crowd.hold_out_people(seed=seed)
    able = (crowd.mask.user_counts >= 2).sum()
    assert shown.n_users == round(able / 5)
    assert train.n_users == crowd.n_users - shown.n_users
    assert not set(train.user_ids.to_pylist()) & set(shown.user_ids.to_pylist())
    counts = shown.mask.user_counts + hidden.mask.user_counts
    assert np.array_equal(hidden.mask.user_counts, np.maximum(1, np.rint(counts / 5)))
    assert (shown.mask.user_counts >= 1).all()
    assert pairs(train) | pairs(shown) | pairs(hidden) == pairs(crowd)
    assert len(train) + len(shown) + len(hidden) == len(crowd)
    assert shown.item_ids.equals(crowd.item_ids)
    assert hidden.user_ids.equals(shown.user_ids)


def test_the_same_seed_holds_out_the_same_people_and_another_does_not(crowd):
    first, again, other = (crowd.hold_out_people(seed=seed) for seed in (5, 5, 6))
    assert first.hidden.to_arrow().equals(again.hidden.to_arrow())
    assert not first.hidden.to_arrow().equals(other.hidden.to_arrow())


def test_people_with_one_item_stay_where_they_can_teach_something():
    likes = Interactions.from_arrays([1, 2, 2, 3, 3, 4], [1, 1, 2, 2, 3, 3])
    for seed in range(5):
        parts = likes.hold_out_people(0.5, 0.5, seed=seed)
        assert set(parts.shown.user_ids.to_pylist()) <= {2, 3}
    with pytest.raises(DataError, match="two interactions each"):
        Interactions.from_arrays([1, 2, 3], [1, 2, 3]).hold_out_people()
    with pytest.raises(ParameterError, match="items is a share"):
        likes.hold_out_people(items=1.5)


def test_own_rows_are_the_persons_own(crowd):
    rows = crowd.own_rows(3, 5)  # the door through which a person's own list is made
    assert rows.user_ids.to_pylist() == crowd.user_ids[3:5].to_pylist()
    assert rows.items.tolist() == crowd.mask.items[crowd.mask.indptr[3] : crowd.mask.indptr[5]].tolist()


def test_a_parquet_file_with_a_rating_beside_a_count_uses_the_count(tmp_path):
    pq.write_table(
        pa.table({"user": [1, 2], "item": [1, 2], "rating": [5, 4], "count": [3, 7]}), tmp_path / "log.parquet"
    )
    likes = Interactions.read(tmp_path / "log.parquet")
    assert likes.weights.tolist() == [3.0, 7.0]
    assert "'rating' looks like a rating" in likes.notes[0]
