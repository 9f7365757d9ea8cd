"""Libraries that are asked for only when somebody wants their shape of the table."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from dpsr.errors import ParameterError

EXTRAS = {
    "pandas": ("pandas", "dpsr[frames]"),
    "polars": ("polars", "dpsr[frames]"),
    "surprise": ("scikit-surprise", "dpsr[peers]"),
    "torch": ("PyTorch", "dpsr[torch]"),
}
"""Module, what people call it, and what to install."""


def optional(module: str, asked_by: str) -> Any:
    """The library, or one sentence saying what to install."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        name, extra = EXTRAS[module.partition(".")[0]]
        raise ParameterError(
            f"{asked_by} needs {name}, which is not installed. Install {extra}, or use to_arrow or to_scipy."
        ) from error
