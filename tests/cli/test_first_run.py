"""The first run on a machine says that it compiles, once; a second one does not. A sample is there to try things on."""

import os
import subprocess
import sys

import pytest

import dpsr as package
from dpsr import load_release


def run(place, cache, *words):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    return subprocess.run(
        [sys.executable, "-m", "dpsr", *words], capture_output=True, text=True, cwd=place, env=environment, check=True
    )


def test_compiling_is_said_once_with_how_long(tmp_path):
    run(tmp_path, tmp_path / "cache", "demo", "--sample", ".")
    words = ["release", "ratings.csv", "--scale", "1:5:1", "--epsilon", "0.5", "--yes", "--out"]
    first = run(tmp_path, tmp_path / "cache", *words, "a").stderr
    assert first.count("Compiling, once on this machine (some twenty seconds)") == 1
    assert first.count("Reading the public mask") == 1
    assert "Compiling" not in run(tmp_path, tmp_path / "cache", *words, "b").stderr


def test_the_sample_s_files_are_the_same_everywhere_and_never_replaced(dpsr, tmp_path):
    assert dpsr("demo", "--sample", tmp_path / "one").code == 0
    assert dpsr("demo", "--sample", tmp_path / "two").code == 0
    for name in ("ratings.csv", "items.csv", "pairs.csv"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    again = dpsr("demo", "--sample", tmp_path / "one")
    assert again.code == 2
    assert "exists already" in again.err


def test_every_item_of_the_sample_has_a_title_of_its_own(dpsr, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert dpsr("demo", "--sample", ".").code == 0
    words = ["release", "ratings.csv", "--scale", "1:5:1", "--epsilon", "0.1", "--out", "r", "--yes"]
    assert dpsr(*words, "--items", "items.csv").code == 0
    titles = load_release("r").titles
    assert None not in titles
    assert len(set(titles)) == 500


def test_the_version_is_known():
    assert package.__version__ == "0.1.0"
    with pytest.raises(AttributeError):
        package.nothing  # noqa: B018
