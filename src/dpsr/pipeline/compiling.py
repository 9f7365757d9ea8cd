"""The first run on a machine compiles the kernels: said once, done at once, so that no later stage seems to hang."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dpsr.data.synthetic import realistic
from dpsr.engine.raw import RawTable
from dpsr.pipeline.estimator import announce, listening
from dpsr.value import sweep

WORDS = "Compiling, once on this machine (some twenty seconds)"
_done = False


def compile_once(fit: Any) -> None:
    """Compile what `fit`, a pipeline with a seed, needs on made-up ratings, unless this machine has it in its cache."""
    global _done
    if _done:
        return
    _done = True
    if not _in_cache():
        announce(WORDS)
        with listening(lambda stage: None):  # its own stages are nobody's business
            fit(RawTable.of(realistic(0, n_users=40, n_items=30, n_ratings=400)))


def _in_cache() -> bool:
    """Whether the cache holds a kernel of the stage that is compiled last."""
    caches = [one._cache for one in vars(sweep).values() if hasattr(one, "_cache")]
    return any(any(Path(cache.cache_path).glob("sweep.*.nbi")) for cache in caches)
