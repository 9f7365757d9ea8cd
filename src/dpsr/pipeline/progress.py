"""What a fit says while it works: the name of every stage as it begins, to whoever listens.

A terminal and a notebook listen; a notebook shows one line below the cell, which changes and stays when all is done.
The first run on a machine compiles the kernels: said once, done at once, so that no later stage seems to hang; where
two pipelines are to run, another process compiles for the second one meanwhile. Names of stages are fixed: no message
depends on a rating.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from html import escape
from importlib import import_module
from pathlib import Path
from subprocess import DEVNULL, Popen
from time import perf_counter
from types import ModuleType
from typing import Any

from dpsr.data.ratings import Ratings
from dpsr.data.synthetic import realistic
from dpsr.engine.raw import RawTable
from dpsr.linalg.compiled import is_kept

COMPILING = "Compiling, once on this machine (about half a minute)"
COMPILING_AGAIN = "Compiling, in every process: set NUMBA_CACHE_DIR to a folder to do it once"

Listener = Callable[[str], None]

_listener: ContextVar[Listener | None] = ContextVar("dpsr_progress", default=None)
_compiled: set[str] = set()


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """While this is open, `listener` hears the name of every stage as it begins."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def announce(stage: str) -> None:
    """A stage begins."""
    listener = _listener.get()
    if listener is not None:
        listener(stage)


@contextmanager
def shown_in_notebook() -> Iterator[None]:
    """While this is open, a notebook shows every stage that is announced; elsewhere nothing happens."""
    if not _is_notebook():
        yield
        return
    show: Any = import_module("IPython.display")  # it is there: this is its notebook
    start, line = perf_counter(), show.display(show.HTML("dpsr …"), display_id=True)

    def begin(stage: str) -> None:
        line.update(show.HTML(f"dpsr: {escape(stage)} … ({perf_counter() - start:.0f} s)"))

    with listening(begin):
        yield
    line.update(show.HTML(f"dpsr: done in {perf_counter() - start:.1f} s"))


def _is_notebook() -> bool:
    """Not a terminal or a script."""
    module = sys.modules.get("IPython")
    shell = None if module is None else module.get_ipython()
    return getattr(shell, "kernel", None) is not None


def compile_once(fit: Any, last: ModuleType) -> None:
    """Compile what `fit`, a pipeline with a seed, needs on made-up ratings, unless this machine has it in its cache.

    `last` has kernels of the stage that is compiled last.
    """
    if last.__name__ in _compiled:
        return
    _compiled.add(last.__name__)
    if say_compiling(last):
        with listening(lambda stage: None):  # its own stages are nobody's business
            fit(RawTable.of(made_up_ratings()))


def compiled_elsewhere(last: ModuleType) -> None:
    """Another process compiles that stage: `compile_once` leaves it alone."""
    _compiled.add(last.__name__)


def made_up_ratings() -> Ratings:
    """Just enough for every kernel to be used."""
    return realistic(0, n_users=40, n_items=30, n_ratings=400)


def say_compiling(module: ModuleType) -> bool:
    """Say that the first use of this module compiles, unless this machine has it in its cache; whether it was said."""
    found = in_cache(module)
    if not found:
        announce(COMPILING if any(map(is_kept, _kernels(module))) else COMPILING_AGAIN)
    return not found


@contextmanager
def another_process(program: str) -> Iterator[None]:
    """A second process runs `program`, which compiles into the same cache; leaving waits until it is done.

    Whatever becomes of it, a kernel that is missing is compiled where it is used.
    """
    child = Popen([sys.executable, "-P", "-c", program], stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL)
    try:
        yield
        child.wait()
    finally:
        child.kill()
        child.wait()


def in_cache(module: ModuleType) -> bool:
    """Whether the cache holds a kernel of this module."""
    name = module.__name__.rpartition(".")[2]
    places = {Path(one._cache.cache_path) for one in _kernels(module) if is_kept(one)}
    return any(any(place.glob(f"{name}.*.nbi")) for place in places)


def _kernels(module: ModuleType) -> list[Any]:
    return [one for one in vars(module).values() if hasattr(one, "_cache")]
