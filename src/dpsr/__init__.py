"""Differentially private sparse reconstruction for recommender systems.

    from dpsr import DPSR, Interactions, Ratings, Scale, load_release

The names are imported on first use, so that `dpsr --help` does not wait for numerical libraries. `__version__` is
there, too.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpsr.data import Interactions, Ratings
    from dpsr.pipeline import DPSR
    from dpsr.release import load_release
    from dpsr.types import Scale

__all__ = ["DPSR", "Interactions", "Ratings", "Scale", "load_release"]

_ROOMS = {
    "DPSR": "dpsr.pipeline",
    "Interactions": "dpsr.data",
    "Ratings": "dpsr.data",
    "Scale": "dpsr.types",
    "load_release": "dpsr.release",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return import_module("importlib.metadata").version("dpsr")
    if name not in _ROOMS:
        raise AttributeError(f"module 'dpsr' has no attribute {name!r}")
    return getattr(import_module(_ROOMS[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
