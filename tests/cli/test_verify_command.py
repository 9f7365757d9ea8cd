"""`dpsr verify`: exit code 0 if everything holds, 1 if not, 2 if there is nothing to verify."""

import json
import shutil

import pytest

from dpsr import DPSR
from dpsr.data import realistic


@pytest.fixture(scope="module")
def ratings():
    return realistic(3, n_users=40, n_items=30, n_ratings=500)


@pytest.fixture(scope="module")
def sound(ratings, tmp_path_factory):
    return DPSR(1.0).fit(ratings).save(tmp_path_factory.mktemp("sound") / "r")


def test_a_sound_release_is_said_to_hold(dpsr, sound):
    outcome = dpsr("verify", sound)
    assert outcome.code == 0, outcome.out
    assert "Verified, private: exact epsilon = " in outcome.out
    assert "FAILS" not in outcome.out
    assert "not somebody who rewrote every file" in outcome.out
    record = json.loads(dpsr("verify", sound, "--json").out)
    assert record["accepted"]
    assert record["unit"] == "value", "an epsilon says nothing without it"
    assert record["fails"] == []


def test_a_changed_release_is_refused_with_the_list(dpsr, sound, tmp_path):
    folder = shutil.copytree(sound, tmp_path / "r")
    (folder / "ratings.parquet").write_bytes((folder / "ratings.parquet").read_bytes() + b"x")
    outcome = dpsr("verify", folder)
    assert outcome.code == 1
    assert "FAILS  ratings.parquet has" in outcome.out
    assert "Do not use this folder" in outcome.out
    record = dpsr("verify", folder, "--json")
    assert record.code == 1
    assert any("ratings.parquet" in words for words in json.loads(record.out)["fails"])


def test_a_release_that_is_not_private_is_refused_unless_allowed(dpsr, ratings, tmp_path):
    folder = DPSR(1.0, random_state=0).fit(ratings).save(tmp_path / "r")
    outcome = dpsr("verify", folder)
    assert outcome.code == 1
    assert "NOT PRIVATE" in outcome.out
    assert dpsr("verify", folder, "--allow-not-private").code == 0


def test_a_folder_that_is_not_there_is_not_said_to_be_empty(dpsr, tmp_path):
    (tmp_path / "ratings.csv").write_text("user,item,rating\n")
    for command in (["verify"], ["explain", "--release"]):
        for name, words in (("relase", "it does not exist"), ("ratings.csv", "it is a file")):
            outcome = dpsr(*command, tmp_path / name)
            assert outcome.code == 2
            assert words in outcome.err
            assert "dpsr release --out" in outcome.err
            assert "dpsr verify" not in outcome.err, "there is nothing to verify"


def test_no_release_is_one_sentence(dpsr, tmp_path):
    outcome = dpsr("verify", tmp_path)
    assert outcome.code == 2
    assert "dpsr release --out" in outcome.err
