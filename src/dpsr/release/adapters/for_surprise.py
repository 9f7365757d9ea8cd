"""The private ratings for scikit-surprise, with the declared rating scale and raw ids."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dpsr.release.adapters.optional import optional
from dpsr.release.adapters.tables import pandas_frame

if TYPE_CHECKING:
    from dpsr.release.release import Release


def dataset(release: Release) -> Any:
    """A `surprise.Dataset`: `build_full_trainset()` makes a `Trainset` of it, `cross_validate` takes it as it is.

    Surprise clips its predictions to the scale of its reader, which is the declared one and not the range of the
    private ratings.
    """
    surprise = optional("surprise", "to_surprise")
    reader = surprise.Reader(rating_scale=(release.scale.low, release.scale.high))
    return surprise.Dataset.load_from_df(pandas_frame(release)[["user", "item", "rating"]], reader)
