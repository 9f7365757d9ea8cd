"""The first run on a machine says that it compiles, once; a second one does not. A sample is there to try things on."""

import importlib.util

import numpy as np
import pytest
from small_ratings import options, write_csv

import dpsr as package
from dpsr import load_release
from dpsr.pipeline import progress
from dpsr.value import sweep

KERNEL = """
from dpsr.linalg.compiled import kernel

@kernel
def doubled(x):
    return 2 * x
"""


@pytest.fixture
def not_yet(monkeypatch):
    """A process that has fitted nothing yet."""
    monkeypatch.setattr(progress, "_compiled", set())


def test_compiling_is_said_once_with_how_long(dpsr, tmp_path, monkeypatch, not_yet):
    """On a machine whose cache is said to be empty: compiling it all again would take the twenty seconds."""
    monkeypatch.setattr(progress, "_in_cache", lambda module: False)
    csv = write_csv(tmp_path / "ratings.csv")
    first, second = (dpsr("release", csv, *options(tmp_path / name)).err for name in "ab")
    assert first.count("Compiling, once on this machine (some twenty seconds)") == 1
    assert first.count("Reading the public mask") == 1, "of what is fitted in order to compile nothing is said"
    assert "Compiling" not in second


def test_a_machine_that_has_compiled_says_nothing(dpsr, tmp_path, not_yet):
    assert progress._in_cache(sweep), "tests before this one, or this one's own first run, have compiled"
    csv = write_csv(tmp_path / "ratings.csv")
    assert "Compiling" not in dpsr("release", csv, *options(tmp_path / "r")).err


def test_the_cache_is_known_to_be_empty_until_a_kernel_was_compiled(tmp_path):
    """A kernel of its own, with a cache of its own beside it."""
    (tmp_path / "doubling.py").write_text(KERNEL)
    spec = importlib.util.spec_from_file_location("doubling", tmp_path / "doubling.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert not progress._in_cache(module)
    assert module.doubled(np.float64(21)) == 42
    assert progress._in_cache(module)


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
