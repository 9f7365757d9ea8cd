"""Progress in notebooks: one line below the cell that changes as stages begin, and stays when all is done."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from importlib import import_module
from time import perf_counter
from typing import Any


@contextmanager
def shown_in_notebook(listening: Any) -> Iterator[None]:
    """While this is open, a notebook shows every stage that is announced; elsewhere nothing happens.

    `listening` is the function that tells a listener of stages, given by whoever announces them.
    """
    shell = _shell()
    if shell is None:
        yield
        return
    show: Any = import_module("IPython.display")  # it is there: this is its notebook
    start, line = perf_counter(), show.display(show.HTML("dpsr …"), display_id=True)

    def begin(stage: str) -> None:
        line.update(show.HTML(f"dpsr: {escape(stage)} … ({perf_counter() - start:.0f} s)"))

    with listening(begin):
        yield
    line.update(show.HTML(f"dpsr: done in {perf_counter() - start:.1f} s"))


def _shell() -> Any | None:
    """The notebook's shell; None in a terminal or a script."""
    module = sys.modules.get("IPython")
    shell = None if module is None else module.get_ipython()
    return shell if shell is not None and getattr(shell, "kernel", None) is not None else None
