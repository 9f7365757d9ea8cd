"""Libraries that may be absent, asked for only when somebody wants their shape of the private ratings."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dpsr.errors import ParameterError

if TYPE_CHECKING:
    from dpsr.release.release import Release

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


def surprise_dataset(release: Release) -> Any:
    """A `surprise.Dataset`: `build_full_trainset()` makes a `Trainset` of it, `cross_validate` takes it as it is.

    Surprise clips its predictions to the scale of its reader, which is the declared one and not the range of the
    private ratings.
    """
    surprise = optional("surprise", "to_surprise")
    reader = surprise.Reader(rating_scale=(release.scale.low, release.scale.high))
    return surprise.Dataset.load_from_df(release.to_pandas()[["user", "item", "rating"]], reader)
