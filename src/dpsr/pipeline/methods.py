"""The pipelines by name, for commands."""

from __future__ import annotations

from dpsr.pipeline.dpsr import DPSR
from dpsr.pipeline.paper import PaperDPSR
from dpsr.types import Catalogue


def build(
    method: str,
    epsilon: float,
    *,
    unit: str = "value",
    delta: float | None = None,
    items: Catalogue | None = None,
) -> DPSR | PaperDPSR:
    """The pipeline a command names: `default`, `paper` or `as-published`.

    A catalogue is a declaration where people or ratings are protected; at the unit `value` it only holds titles.
    """
    if method == "default":
        return DPSR(epsilon, unit=unit, delta=delta, items=None if unit == "value" else items)
    return DPSR.paper(epsilon, as_published=method == "as-published")
