"""`dpsr synthesise` and `dpsr release --people`: people who do not exist."""

import pyarrow.parquet as pq
import pytest
from small_ratings import options, write_csv


@pytest.fixture
def folder(dpsr, tmp_path):
    csv, unit = write_csv(tmp_path / "ratings.csv"), ("--unit", "user", "--delta", "1e-4", "--people", "12")
    assert dpsr("release", csv, *options(tmp_path / "r", epsilon="8"), *unit).code == 0
    return tmp_path / "r"


def test_a_release_holds_as_many_as_asked_and_the_command_makes_more(dpsr, folder, tmp_path):
    assert pq.read_table(folder / "synthetic.parquet")["user"].to_numpy().max() == 12
    ended = dpsr("synthesise", folder, "--people", "50", "--out", tmp_path / "more.parquet")
    assert ended.code == 0
    assert "Nobody in it exists" in ended.out
    assert "are called by their cell, such as cell:7" in ended.out
    assert pq.read_table(tmp_path / "more.parquet")["user"].to_numpy().max() == 50
    assert dpsr("synthesise", folder, "--people", "3", "--out", tmp_path / "more.csv").code == 0
    assert (tmp_path / "more.csv").read_text().startswith('"user","item","rating"')


def test_an_existing_file_stays_unless_told(dpsr, folder, tmp_path):
    (tmp_path / "kept.csv").write_text("mine")
    ended = dpsr("synthesise", folder, "--out", tmp_path / "kept.csv")
    assert ended.code == 2
    assert (tmp_path / "kept.csv").read_text() == "mine"


def test_values_have_rows_of_their_own(dpsr, tmp_path):
    csv = write_csv(tmp_path / "ratings.csv")
    ended = dpsr("release", csv, *options(tmp_path / "r"), "--unit", "value", "--people", "5")
    assert ended.code == 2
    assert "row for every rating" in ended.err
    assert not (tmp_path / "r").exists()
