"""Errors planted in the library's own source: one line of a real function replaced while a test looks on."""

import importlib.util
import inspect
import textwrap
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FunctionType

import pytest

TESTS = Path(__file__).parents[1]


@contextmanager
def planted(*edits):
    """While this is open each function runs with `old` replaced by `new` in its source.

    The code of the function is exchanged and not the function, so that whoever imported it has the error too.
    """
    with ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        for function in {function for function, _, _ in edits}:
            changes = [(old, new) for where, old, new in edits if where is function]
            patch.setattr(function, "__code__", edited(function, changes))
        yield


def edited(function, changes):
    """The code of a function with pieces of its source replaced, each of which must be there exactly once."""
    source = textwrap.dedent(inspect.getsource(function))
    for old, new in changes:
        assert source.count(old) == 1, f"{old!r} occurs {source.count(old)} times in {function.__qualname__}"
        source = source.replace(old, new)
    lines = source.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("def "))  # without decorators
    names = {}
    exec("from __future__ import annotations\n" + "\n".join(lines[start:]), dict(function.__globals__), names)
    made = names[function.__name__]
    assert isinstance(made, FunctionType)
    return made.__code__


def module_of_tests(path):
    """A module of tests, by its place under `tests/`, so that one of its tests can be called."""
    spec = importlib.util.spec_from_file_location(f"called_{Path(path).stem}", TESTS / path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
