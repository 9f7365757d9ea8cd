"""The first run on a machine compiles the kernels: said once, done at once, so that no later stage seems to hang."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

from dpsr.data.synthetic import realistic
from dpsr.engine.raw import RawTable
from dpsr.pipeline.estimator import announce, listening

WORDS = "Compiling, once on this machine (some twenty seconds)"
_done: set[str] = set()


def compile_once(fit: Any, last: ModuleType) -> None:
    """Compile what `fit`, a pipeline with a seed, needs on made-up ratings, unless this machine has it in its cache.

    `last` has kernels of the stage that is compiled last.
    """
    if last.__name__ in _done:
        return
    _done.add(last.__name__)
    if not _in_cache(last):
        announce(WORDS)
        with listening(lambda stage: None):  # its own stages are nobody's business
            fit(RawTable.of(realistic(0, n_users=40, n_items=30, n_ratings=400)))


def _in_cache(module: ModuleType) -> bool:
    """Whether the cache holds a kernel of this module."""
    name = module.__name__.rpartition(".")[2]
    caches = [one._cache for one in vars(module).values() if hasattr(one, "_cache")]
    return any(any(Path(cache.cache_path).glob(f"{name}.*.nbi")) for cache in caches)
