"""Examples in docstrings are true. Modules are imported once, as programs do: a collector of pytest makes copies."""

import doctest
import pkgutil
from importlib import import_module
from pathlib import Path

import pytest

import dpsr

MODULES = [
    found.name
    for found in pkgutil.walk_packages(dpsr.__path__, "dpsr.")
    if not found.ispkg
    and ">>> " in Path(dpsr.__path__[0], *found.name.split(".")[1:]).with_suffix(".py").read_text("utf-8")
]


@pytest.mark.parametrize("module", MODULES)
def test_the_examples_of_a_module_print_what_they_say(module):
    result = doctest.testmod(import_module(module), optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    assert result.failed == 0


def test_there_are_examples():
    assert len(MODULES) > 10
