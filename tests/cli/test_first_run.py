"""The first run on a machine says that it compiles, once; a second one does not. A sample is there to try things on."""

import importlib.util
import time
from contextlib import nullcontext

import numpy as np
import pytest
from small_ratings import options, write_csv

import dpsr as package
from dpsr import load_release
from dpsr.cli import demo
from dpsr.linalg import compiled
from dpsr.pipeline import dpsr as pipeline
from dpsr.pipeline.estimator import announce, listening
from dpsr.value import sweep

KERNEL = """
from dpsr.linalg.compiled import kernel

@kernel
def doubled(x):
    return 2 * x
"""


def empty_cache(monkeypatch):
    """A machine whose cache is said to be empty."""
    for module in (compiled, pipeline):
        monkeypatch.setattr(module, "in_cache", lambda module: False)


@pytest.fixture
def not_yet(monkeypatch):
    """A process that has fitted nothing yet."""
    monkeypatch.setattr(pipeline, "_compiled", set())


def test_compiling_is_said_once_with_how_long(dpsr, tmp_path, monkeypatch, not_yet):
    """On a machine whose cache is said to be empty: compiling it all again would take that long."""
    empty_cache(monkeypatch)
    csv = write_csv(tmp_path / "ratings.csv")
    first, second = (dpsr("release", csv, *options(tmp_path / name)).err for name in "ab")
    assert first.count("Compiling, once on this machine (about half a minute)") == 1
    assert first.count("Reading the public mask") == 1, "of what is fitted in order to compile nothing is said"
    assert "Compiling" not in second


def test_a_machine_that_has_compiled_says_nothing(dpsr, tmp_path, not_yet):
    assert compiled.in_cache(sweep), "tests before this one, or this one's own first run, have compiled"
    csv = write_csv(tmp_path / "ratings.csv")
    assert "Compiling" not in dpsr("release", csv, *options(tmp_path / "r")).err


def test_the_cache_is_known_to_be_empty_until_a_kernel_was_compiled(tmp_path):
    """A kernel of its own, with a cache of its own beside it."""
    (tmp_path / "doubling.py").write_text(KERNEL)
    spec = importlib.util.spec_from_file_location("doubling", tmp_path / "doubling.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert not compiled.in_cache(module)
    assert module.doubled(np.float64(21)) == 42
    assert compiled.in_cache(module)


def test_lists_say_that_their_first_use_compiles_too(monkeypatch):
    heard = []
    with listening(heard.append):
        pipeline.say_compiling(sweep)
        empty_cache(monkeypatch)
        pipeline.say_compiling(sweep)
    assert heard == [pipeline.COMPILING]


def test_the_demo_says_once_that_it_compiles_and_lets_another_process_compile_for_people(monkeypatch):
    """Two pipelines on a cache that is said to be empty: one announcement, one rehearsal in each process."""
    programs, rehearsed, heard = [], [], []
    empty_cache(monkeypatch)
    monkeypatch.setattr(demo, "another_process", lambda program: programs.append(program) or nullcontext())
    monkeypatch.setattr(demo, "rehearse_values", lambda: announce("a stage") or rehearsed.append("values"))
    with listening(heard.append):
        demo.compile_both()
    assert heard == [pipeline.COMPILING], "of the rehearsal's own stages nothing is said"
    assert rehearsed == ["values"]
    assert programs == ["from dpsr.cli.demo import rehearse_rest; rehearse_rest()"]


def test_another_process_is_waited_for_and_none_is_left_behind(tmp_path):
    with demo.another_process(f"open({str(tmp_path / 'done')!r}, 'w')"):
        pass
    assert (tmp_path / "done").exists()
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt), demo.another_process("import time; time.sleep(600)"):
        raise KeyboardInterrupt
    assert time.monotonic() - begun < 300, "interrupted: the other one is ended, not waited for"


def test_rehearsals_do_what_the_demo_does_and_values_are_left_to_the_other_process(not_yet):
    demo.rehearse_rest()
    assert sweep.__name__ in pipeline._compiled
    demo.rehearse_values()


def test_the_sample_s_files_are_the_same_everywhere_and_never_replaced(dpsr, tmp_path):
    assert dpsr("demo", "--sample", tmp_path / "one").code == 0
    assert dpsr("demo", "--sample", tmp_path / "two").code == 0
    for name in ("ratings.csv", "items.csv", "pairs.csv"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    again = dpsr("demo", "--sample", tmp_path / "one")
    assert again.code == 2
    assert "ratings.csv, items.csv, pairs.csv already" in again.err


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
