"""Rating sets: named, found, read on a declared scale, and never guessed at."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from dpsr.data import realistic
from dpsr.errors import DataError, ScaleError
from dpsr.evaluate.sets import KNOWN, RatingSet, find_sets, parse_scales, sets_in_folder, without_scale
from dpsr.types import Scale


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a known set, one that a caller declares and one that nobody did."""
    path, table = tmp_path_factory.mktemp("data"), realistic(0, n_users=30, n_items=20, n_ratings=200).to_arrow()
    for name in ("ml-latest-small", "tiny", "stranger"):
        pq.write_table(table, path / f"{name}.parquet")
    return path


def test_sets_are_files_folders_and_generators(folder):
    tiny = str(folder / "tiny.parquet")
    found = find_sets(["paper", tiny, str(folder), "realistic"], {"tiny": "1:5:1"})
    assert [one.name for one in found] == ["paper", "tiny", "ml-latest-small", "realistic"]
    assert [one.made_up for one in found] == [True, False, False, True]
    assert found[1].read().scale == Scale(1, 5)
    assert str(found[2].scale) == str(KNOWN["ml-latest-small"])
    assert parse_scales(["a=1:5:1"]) == {"a": "1:5:1"}


def test_a_generator_draws_other_people_for_every_seed_and_a_file_does_not(folder):
    paper, tiny = find_sets(["paper", str(folder / "tiny.parquet")], {"": "1:5:1"})
    assert (paper.read(0).values != paper.read(1).values).any()
    assert (tiny.read(0).values == tiny.read(1).values).all()


@pytest.mark.parametrize(
    ("names", "error", "advice"),
    [
        (["tiny.parquet"], ScaleError, "--scale tiny=LOW:HIGH:STEP"),
        (["nowhere"], DataError, "Check the path"),
        (["paper", "paper"], DataError, "twice"),
        ([], DataError, "found none"),
    ],
)
def test_what_cannot_be_found_or_read_is_refused_with_a_remedy(folder, names, error, advice):
    with pytest.raises(error, match=advice):
        find_sets([str(folder / name) if name.endswith("parquet") else name for name in names], {})


def test_a_folder_must_hold_every_set_that_was_declared_or_a_known_one(folder, tmp_path):
    assert [one.name for one in sets_in_folder(folder)] == ["ml-latest-small"]
    assert [one.name for one in sets_in_folder(folder, {"tiny": Scale(1, 5)})] == ["tiny"]
    with pytest.raises(DataError, match=r"not a folder of rating sets.*ml-latest-small\.parquet"):
        sets_in_folder(tmp_path / "nowhere")
    with pytest.raises(DataError, match=r"has no ml-latest-small\.parquet and no movietweetings.*--data"):
        sets_in_folder(tmp_path)
    with pytest.raises(DataError, match=r"has no other\.parquet"):
        sets_in_folder(folder, {"tiny": Scale(1, 5), "other": Scale(1, 5)})


def test_a_file_whose_scale_nobody_declared_is_named(folder):
    assert without_scale(folder, sets_in_folder(folder, {"tiny": Scale(1, 5)})) == ["stranger.parquet"]


def test_the_digest_follows_content_and_scale_and_not_the_place(folder, tmp_path):
    path, moved = folder / "tiny.parquet", tmp_path / "moved.parquet"
    moved.write_bytes(Path(path).read_bytes())
    tiny = RatingSet("tiny", str(path), "1:5:1")
    assert RatingSet("tiny", str(moved), "1:5:1").digest == tiny.digest
    assert RatingSet("tiny", str(path), "1:6:1").digest != tiny.digest
    pq.write_table(realistic(1, n_users=30, n_items=20, n_ratings=200).to_arrow(), tmp_path / "other.parquet")
    assert RatingSet("tiny", str(tmp_path / "other.parquet"), "1:5:1").digest != tiny.digest
