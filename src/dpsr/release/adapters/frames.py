"""The private ratings as a table: user, item, rating and perhaps timestamp, one row each, in canonical order.

Libraries that may be absent are asked for only when somebody wants their shape of the table.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import pyarrow as pa

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


def arrow_table(release: Release) -> pa.Table:
    """What `ratings.parquet` holds, as an Arrow table."""
    return release.mask.to_arrow(rating=release.ratings)


def pandas_frame(release: Release) -> Any:
    """A pandas DataFrame; integer ids stay integers, strings stay strings."""
    optional("pandas", "to_pandas")
    return arrow_table(release).to_pandas()


def polars_frame(release: Release) -> Any:
    """A polars DataFrame that shares its memory with Arrow where it can."""
    return optional("polars", "to_polars").from_arrow(arrow_table(release))


def surprise_dataset(release: Release) -> Any:
    """A `surprise.Dataset`: `build_full_trainset()` makes a `Trainset` of it, `cross_validate` takes it as it
    is.

        Surprise clips its predictions to the scale of its reader, which is the declared one and not the range of the
        private ratings.
    """
    surprise = optional("surprise", "to_surprise")
    reader = surprise.Reader(rating_scale=(release.scale.low, release.scale.high))
    return surprise.Dataset.load_from_df(pandas_frame(release)[["user", "item", "rating"]], reader)
