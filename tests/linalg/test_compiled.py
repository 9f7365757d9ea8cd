"""Kernels in other processes: they are found there by name, and come from a cache no older than its source."""

import ast
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numba import njit
from pyspark import cloudpickle

import dpsr
from dpsr.pipeline.dpsr import COMPILING_AGAIN
from dpsr.value.kernels import add_normal_equations


def nested():
    """A function as a pass over blocks has them: inside another, with a kernel of its module."""

    def task(*arguments):
        return add_normal_equations(*arguments)

    return task


@pytest.mark.parametrize("dumps", [pickle.dumps, cloudpickle.dumps], ids=["pickle", "as Spark does it"])
def test_a_kernel_is_sent_by_its_name_and_is_the_same_there(dumps):
    """By its source it would be another one, without a cache, compiled by every process of a cluster."""
    assert pickle.loads(dumps(add_normal_equations)) is add_normal_equations
    assert len(dumps(add_normal_equations)) < 200


def test_a_function_that_uses_a_kernel_takes_its_name_along():
    there = pickle.loads(cloudpickle.dumps(nested()))
    assert there.__globals__["add_normal_equations"] is add_normal_equations


def test_a_kernel_that_no_module_names_is_sent_as_numba_does_it():
    twice = njit(lambda x: 2 * x)
    assert pickle.loads(cloudpickle.dumps(twice))(np.float64(21)) == 42


PARTS = """
from typing import NamedTuple
from dpsr.linalg.compiled import kernel

BOUND = {bound}

class {argument}(NamedTuple):
    x: float

@kernel
def enforced(x):
    return min(x, {written})
"""

SUM = """
from dpsr.linalg.compiled import kernel
from parts import BOUND, enforced

@kernel
def contribution(given):
    return 1000 * BOUND + enforced(given.x)
"""

ASK = """
import parts, sums
given = next(kind for kind in vars(parts).values() if isinstance(kind, type) and kind.__module__ == "parts")
print(sums.contribution(given(9.0)), sum(sums.contribution.stats.cache_hits.values()))
"""


def asked(folder):
    """What the kernel gives in a fresh process, and how often its cache served."""
    command = [sys.executable, "-B", "-c", ASK]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    value, served = done.stdout.split()
    return float(value), int(served)


def write_parts(folder, bound=1, written=5, argument="Given"):
    (folder / "parts.py").write_text(PARTS.format(bound=bound, written=written, argument=argument))


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """A kernel that was compiled once; what it uses is in another file."""
    folder = tmp_path_factory.mktemp("compiled")
    (folder / "sums.py").write_text(SUM)
    write_parts(folder)
    assert asked(folder) == (1005, 0)
    return folder


@pytest.fixture
def contribution(compiled, tmp_path):
    """The same for a test of its own, cache and times of files included, and what it gives after a change."""
    shutil.copytree(compiled, tmp_path, dirs_exist_ok=True)

    def run(**change):
        if change:
            write_parts(tmp_path, **change)
        return asked(tmp_path)

    return run


def test_a_kernel_is_compiled_again_when_a_kernel_or_a_constant_of_another_file_changes(contribution):
    """numba's own cache would answer 1005 each time: the bound in force would be the old one."""
    assert contribution(written=6) == (1006, 0)
    assert contribution(written=6, bound=2) == (2006, 0)


def test_a_cache_that_speaks_of_a_type_that_is_gone_is_compiled_again(contribution):
    assert contribution(argument="Taken") == (1005, 0)


def test_what_did_not_change_comes_from_the_cache(contribution):
    """Which would have served the other tests too."""
    assert contribution() == (1005, 1)


NOWHERE = """
from numba.core.caching import CacheImpl
CacheImpl._locator_classes = []  # numba's own list of folders to try: as if none of them could be written
from dpsr.doctor.machine import check_cache
from dpsr.linalg.compiled import in_cache
from dpsr.pipeline.dpsr import say_compiling
from dpsr.pipeline.estimator import listening
import summing
with listening(print):
    assert say_compiling(summing) and not in_cache(summing)
print(summing.total(1.0), check_cache().status.value)
"""

TOTAL = """
from dpsr.linalg.compiled import kernel

@kernel
def enforced(x):
    return min(x, 0.5)

@kernel
def total(x):
    return enforced(x) + enforced(x)
"""


def test_where_no_folder_may_be_written_every_process_compiles_and_says_what_to_do(tmp_path):
    """A container without a home of its own: the import ended in numba's traceback."""
    (tmp_path / "summing.py").write_text(TOTAL)
    ran = subprocess.run([sys.executable, "-c", NOWHERE], cwd=tmp_path, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines() == [COMPILING_AGAIN, "1.0 warning"]


def is_compiled(function):
    return any(isinstance(one, ast.Name) and one.id.endswith("kernel") for one in function.decorator_list)


def python_calls(node):
    """Names of what is called, but by kernels: a kernel calls another one without Python."""
    for inside in ast.iter_child_nodes(node):
        if isinstance(inside, ast.FunctionDef) and is_compiled(inside):
            continue
        if isinstance(inside, ast.Call) and isinstance(inside.func, ast.Name):
            yield inside.func.id
        yield from python_calls(inside)


def test_no_kernel_that_python_calls_returns_a_named_tuple():
    """Ctrl-C while one ran was raised where numba made the tuple, and ended the process with a segmentation fault."""
    texts = [path.read_text("utf-8") for path in Path(dpsr.__file__).parent.rglob("*.py")]
    trees = [ast.parse(text) for text in texts]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    classes = [node for node in nodes if isinstance(node, ast.ClassDef)]
    named = {one.name for one in classes if any(ast.unparse(base) == "NamedTuple" for base in one.bases)}
    kernels = [node for node in nodes if isinstance(node, ast.FunctionDef) and is_compiled(node) and node.returns]
    returning = {
        one.name for one in kernels if named & {name.id for name in ast.walk(one.returns) if isinstance(name, ast.Name)}
    }
    assert "expected_error" in returning, "those that only kernels call may"
    assert not returning & {name for tree in trees for name in python_calls(tree)}
