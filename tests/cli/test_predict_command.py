"""`dpsr predict`: a prediction for every pair, and what it rests on."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

from dpsr import load_release
from dpsr.data.files import pairs as pairs_module

PAIRS = "user,item\n42,7\n42,9999\nnobody,7\nnobody,nothing\n1,2\n"


@pytest.fixture
def pairs(tmp_path):
    path = tmp_path / "pairs.csv"
    path.write_text(PAIRS)
    return path


def test_every_pair_is_predicted_in_order_and_says_what_it_rests_on(dpsr, folder, pairs):
    outcome = dpsr("predict", folder, pairs, "--json")
    assert outcome.code == 0, outcome.err
    rows = json.loads(outcome.out)
    model = load_release(folder).model
    assert [row["basis"] for row in rows] == ["model", "user mean", "item mean", "overall mean", "model"]
    assert rows[0]["prediction"] == load_release(folder).predict([42], [7])[0]
    assert rows[1]["prediction"] == pytest.approx(model.user_means[41])
    assert rows[2]["prediction"] == pytest.approx(model.item_means[6])
    assert rows[3]["prediction"] == pytest.approx(model.overall)
    assert [row["user"] for row in rows] == ["42", "42", "nobody", "nobody", "1"], "ids as they were spelt"


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_file_is_written_whole(dpsr, folder, pairs, tmp_path, suffix):
    outcome = dpsr("predict", folder, pairs, "--out", tmp_path / f"p.{suffix}")
    assert outcome.code == 0, outcome.err
    assert "5 predictions" in outcome.out
    table = (pacsv.read_csv if suffix == "csv" else pq.read_table)(tmp_path / f"p.{suffix}")
    assert table.column_names == ["user", "item", "prediction", "basis"]
    assert table["basis"].to_pylist()[2] == "item mean"


@pytest.mark.parametrize("kind", ["integers", "strings", "dictionary", "extra columns first"])
def test_parquet_pairs_of_any_kind_are_read(dpsr, folder, tmp_path, kind):
    users, items = pa.array([42, 1]), pa.array([7, 2])
    if kind != "integers":
        users, items = users.cast(pa.string()), items.cast(pa.string())
    if kind == "dictionary":
        users, items = users.dictionary_encode(), items.dictionary_encode()
    table = pa.table({"rating": [1.0, 2.0], "movieId": items, "userId": users})
    pq.write_table(table, tmp_path / "pairs.parquet")
    rows = json.loads(dpsr("predict", folder, tmp_path / "pairs.parquet", "--json").out)
    assert [row["prediction"] for row in rows] == load_release(folder).predict([42, 1], [7, 2]).tolist()


@pytest.mark.parametrize(
    "text", ["userId\titemId\n42\t7\n", "who;what\n42;7\n", '\ufeff"user","item","note"\n"42","7",""\n']
)
def test_text_layouts_are_recognised_and_columns_can_be_named(dpsr, folder, tmp_path, text):
    (tmp_path / "pairs.txt").write_text(text)
    names = ["--user", "who", "--item", "what"] if "who" in text else []
    outcome = dpsr("predict", folder, tmp_path / "pairs.txt", *names, "--json")
    assert outcome.code == 0, outcome.err
    assert json.loads(outcome.out)[0]["prediction"] == load_release(folder).predict([42], [7])[0]


def test_missing_ids_are_strangers(dpsr, folder, tmp_path):
    pq.write_table(pa.table({"user": pa.array([42, None]), "item": pa.array([7, 7])}), tmp_path / "p.parquet")
    rows = json.loads(dpsr("predict", folder, tmp_path / "p.parquet", "--json").out)
    assert [row["basis"] for row in rows] == ["model", "item mean"]


def test_many_pairs_are_read_piece_by_piece_and_none_is_lost(dpsr, folder, tmp_path, monkeypatch):
    monkeypatch.setattr(pairs_module, "BLOCK", 1_000)
    rng = np.random.default_rng(0)
    users, items = rng.integers(1, 61, 3_000), rng.integers(1, 41, 3_000)
    pacsv.write_csv(pa.table({"user": users, "item": items}), tmp_path / "many.csv")
    assert dpsr("predict", folder, tmp_path / "many.csv", "--out", tmp_path / "p.parquet").code == 0
    table = pq.read_table(tmp_path / "p.parquet")
    np.testing.assert_array_equal(table["prediction"].to_numpy(), load_release(folder).predict(users, items))


def test_a_long_table_is_cut_and_says_how_to_see_the_rest(dpsr, folder, tmp_path):
    (tmp_path / "many.csv").write_text("user,item\n" + "1,2\n" * 80)
    outcome = dpsr("predict", folder, tmp_path / "many.csv")
    assert "and 30 more rows" in outcome.out
    assert dpsr("predict", folder, tmp_path / "many.csv", "--format", "csv").out.count("\n") == 81


def test_no_pairs_give_no_rows(dpsr, folder, tmp_path):
    (tmp_path / "none.csv").write_text("user,item\n")
    assert json.loads(dpsr("predict", folder, tmp_path / "none.csv", "--json").out) == []


BROKEN = {
    "no such columns": (b"a,b\n1,2\n", "--user COLUMN"),
    "only users": (b"user,title\n1,2\n", "--item COLUMN"),
    "empty": (b"", "empty"),
    "ragged": (b"user,item\n1,2,3\n", "cannot be read as pairs"),
    "not UTF-8": (b"user,item\na\xff\xfe,x\n", "broken.csv"),
    "a cut Parquet file": (b"PAR1nothing", "broken.csv"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_file_is_one_sentence_and_leaves_nothing(dpsr, folder, tmp_path, name):
    content, word = BROKEN[name]
    (tmp_path / "broken.csv").write_bytes(content)
    outcome = dpsr("predict", folder, tmp_path / "broken.csv", "--out", tmp_path / "p.csv")
    assert outcome.code == 2
    assert word in outcome.err
    assert outcome.err.count("\n") == 1
    assert {path.name for path in tmp_path.iterdir()} == {"broken.csv"}


def test_a_missing_file_and_a_bad_target_are_refused(dpsr, folder, pairs, tmp_path):
    assert "does not exist" in dpsr("predict", folder, tmp_path / "nowhere.csv").err
    assert "extension" in dpsr("predict", folder, pairs, "--out", tmp_path / "p.xlsx").err
    pairs_before = pairs.read_text()
    refused = dpsr("predict", folder, pairs, "--out", pairs)
    assert refused.code == 2
    assert pairs.read_text() == pairs_before
