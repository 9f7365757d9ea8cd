"""The pipelines by name, for commands."""

from __future__ import annotations

from dpsr.pipeline.paper import PaperDPSR
from dpsr.pipeline.value import DPSR


def build(method: str, epsilon: float) -> DPSR | PaperDPSR:
    """The pipeline a command names: `default`, `paper` or `as-published`."""
    if method == "default":
        return DPSR(epsilon)
    return DPSR.paper(epsilon, as_published=method == "as-published")
