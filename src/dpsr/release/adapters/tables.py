"""The private ratings as a table: user, item, rating and perhaps timestamp, one row each, in canonical order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from dpsr.release.adapters.optional import optional

if TYPE_CHECKING:
    from dpsr.release.release import Release


def arrow_table(release: Release) -> pa.Table:
    """What `ratings.parquet` holds, as an Arrow table."""
    mask = release.mask
    columns = {
        "user": mask.user_ids.take(pa.array(mask.users)),
        "item": mask.item_ids.take(pa.array(mask.items)),
        "rating": pa.array(release.ratings),
    }
    if mask.timestamps is not None:
        columns["timestamp"] = pa.array(mask.timestamps)
    return pa.table(columns)


def pandas_frame(release: Release) -> Any:
    """A pandas DataFrame; integer ids stay integers, strings stay strings."""
    optional("pandas", "to_pandas")
    return arrow_table(release).to_pandas()


def polars_frame(release: Release) -> Any:
    """A polars DataFrame that shares its memory with Arrow where it can."""
    return optional("polars", "to_polars").from_arrow(arrow_table(release))
