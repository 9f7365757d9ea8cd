"""`dpsr release`: one command from a file to a folder; every refusal is one sentence and leaves nothing behind."""

import sys

import forked
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpsr import load_release


@pytest.fixture
def csv(tmp_path):
    rng = np.random.default_rng(0)
    cells = rng.choice(30 * 20, 300, replace=False)
    rows = [f"u{c // 20},i{c % 20},{rng.integers(1, 6)}" for c in cells]
    path = tmp_path / "ratings.csv"
    path.write_text("\n".join(["userId,movieId,rating", *rows]) + "\n")
    return path


def test_one_command_turns_a_csv_into_a_release(dpsr, csv, tmp_path):
    outcome = dpsr("release", csv, "--scale", "1:5:1", "--epsilon", "1", "--out", tmp_path / "r", "--yes")
    assert outcome.code == 0, outcome.err
    assert "a 50 % guess becomes at most 73.11 %" in outcome.out
    assert "Does not hide who rated what" in outcome.out
    assert "private: exact epsilon = 1" in outcome.out
    release = load_release(tmp_path / "r")
    assert release.certificate.private
    assert len(release.recommend("u3", n=5).items) == 5


def test_as_published_is_written_with_its_warning(dpsr, csv, tmp_path):
    outcome = dpsr(
        "release",
        csv,
        "--scale",
        "1:5:1",
        "--epsilon",
        "0.1",
        "--out",
        tmp_path / "r",
        "--yes",
        "--method",
        "as-published",
    )
    assert outcome.code == 0
    assert "NOT PRIVATE" in outcome.out
    assert "0.939" in outcome.out


def test_without_yes_it_asks_and_no_means_nothing_happens(csv, tmp_path):
    command = [
        sys.executable,
        "-m",
        "dpsr",
        "release",
        csv,
        "--scale",
        "1:5:1",
        "--epsilon",
        "1",
        "--out",
        tmp_path / "r",
    ]
    run = forked.run(command, "n\n")
    assert run.returncode == 1
    assert "Spend this budget" in run.stdout
    assert not (tmp_path / "r").exists()


BROKEN = {
    "missing column": (b"user,item\nu,i\n", "rating"),
    "empty file": (b"", "empty"),
    "header only": (b"user,item,rating\n", "no ratings"),
    "non-numeric": (b"user,item,rating\na,x,1\nb,y,good\n", "row 3"),
    "not a number": (b"user,item,rating\na,x,1\nb,y,nan\n", "row 3"),
    "infinite": (b"user,item,rating\na,x,1\nb,y,inf\n", "row 3"),
    "off the scale": (b"user,item,rating\na,x,1\nb,y,7\n", "row 3"),
    "between levels": (b"user,item,rating\na,x,1\nb,y,2.5\n", "row 3"),
    "duplicate": (b"user,item,rating\na,x,1\nb,y,2\na,x,3\n", "--duplicates"),
    "colons": (b"user:item:rating\na:x:1\nb:y:2\n", "delimiter"),
    "not UTF-8": (b"user,item,rating\na\xff\xfe,x,1\nb,y,2\n", "UTF-8"),
    "endless id": (b"user,item,rating\n" + b"a" * 1_000_000 + b",x,1\nb,y,2\n", "characters"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_bad_input_gets_one_sentence_and_leaves_nothing(dpsr, tmp_path, name):
    content, word = BROKEN[name]
    path = tmp_path / "broken.csv"
    path.write_bytes(content)
    outcome = dpsr("release", path, "--scale", "1:5:1", "--epsilon", "1", "--out", tmp_path / "r", "--yes")
    assert outcome.code == 2
    assert outcome.err.startswith("error: ")
    assert "broken.csv" in outcome.err
    assert word in outcome.err
    assert len(outcome.err) < 700
    assert "Traceback" not in outcome.err
    assert {p.name for p in tmp_path.iterdir()} == {"broken.csv"}


@pytest.mark.parametrize(("rows", "found"), [("a,x,1\na,y,2", "1 and 2"), ("a,x,1\nb,x,2", "2 and 1")])
def test_one_user_or_one_item_is_refused_and_leaves_nothing(dpsr, tmp_path, rows, found):
    path = tmp_path / "alone.csv"
    path.write_text(f"user,item,rating\n{rows}\n")
    outcome = dpsr("release", path, "--scale", "1:5:1", "--epsilon", "1", "--out", tmp_path / "r", "--yes")
    assert outcome.code == 2
    assert f"at least 2 users and 2 items are needed to learn from, found {found}" in outcome.err
    assert [p.name for p in tmp_path.iterdir()] == ["alone.csv"]


def test_a_truncated_parquet_file_is_refused(dpsr, tmp_path):
    path = tmp_path / "cut.parquet"
    pq.write_table(pa.table({"user": [1, 2], "item": [1, 2], "rating": [1, 2]}), path)
    path.write_bytes(path.read_bytes()[:-20])
    outcome = dpsr("release", path, "--scale", "1:5:1", "--epsilon", "1", "--out", tmp_path / "r", "--yes")
    assert outcome.code == 2
    assert "cut.parquet" in outcome.err
    assert not (tmp_path / "r").exists()


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (["--scale", "5:1:1"], "lowest to its highest"),
        (["--scale", "one:five"], "LOW:HIGH:STEP"),
        (["--scale", "1:5:0.3"], "must divide"),
        (["--epsilon", "0"], "epsilon must be"),
        (["--epsilon", "inf"], "epsilon must be"),
        (["--epsilon", "nan"], "epsilon must be"),
    ],
)
def test_bad_options_are_refused_before_anything_is_read(dpsr, csv, tmp_path, change, word):
    options = ["--scale", "1:5:1", "--epsilon", "1", "--out", tmp_path / "r", "--yes", *change]
    outcome = dpsr("release", csv, *options)
    assert outcome.code == 2
    assert word in outcome.err
    assert not (tmp_path / "r").exists()


def test_an_existing_release_needs_force(dpsr, csv, tmp_path):
    options = ["--scale", "1:5:1", "--epsilon", "1", "--out", tmp_path / "r", "--yes"]
    assert dpsr("release", csv, *options).code == 0
    refused = dpsr("release", csv, *options)
    assert refused.code == 2
    assert "--force" in refused.err
    assert dpsr("release", csv, *options, "--force").code == 0


def test_duplicates_can_be_settled_by_policy(dpsr, tmp_path):
    path = tmp_path / "twice.csv"
    path.write_text("user,item,rating\na,x,1\nb,y,2\na,x,3\n")
    options = ["--scale", "1:5:1", "--epsilon", "1", "--out", tmp_path / "r", "--yes", "--duplicates", "last"]
    assert dpsr("release", path, *options).code == 0
    assert load_release(tmp_path / "r").mask.n_ratings == 2
