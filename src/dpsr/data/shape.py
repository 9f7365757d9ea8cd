"""The shape of a rating table: who rated what, how often and when. Ratings are never looked at.

Everything here is public by the definition of the promise, so it may be shown to anybody who may know that these people
rated these items. No scale is needed, because no rating is read.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from os import PathLike
from typing import Any

import numpy as np

from dpsr.arrays import Ints
from dpsr.data.coding import RatingColumns, code_ids, read_times
from dpsr.data.columns import INTERACTION_ROWS, RATING_ROWS, RowKind
from dpsr.data.files.read import columns_of_file
from dpsr.errors import DataError

SHARES = {"least": 0.0, "5 %": 0.05, "25 %": 0.25, "median": 0.5, "75 %": 0.75, "95 %": 0.95, "most": 1.0}


@dataclass(frozen=True)
class Shape:
    """Counts of a rating table. A pair in several rows is one of `n_ratings`; `duplicates` counts the other rows."""

    source: str
    n_rows: int
    n_users: int
    n_items: int
    n_ratings: int
    duplicates: int
    per_user: dict[str, int]
    per_item: dict[str, int]
    ids: dict[str, str]
    first: str | None
    last: str | None

    @property
    def density(self) -> float:
        """The share of all cells that are rated."""
        return self.n_ratings / (self.n_users * self.n_items)

    def to_dict(self) -> dict[str, Any]:
        """For scripts."""
        return {**asdict(self), "density": self.density}


def describe_file(path: str | PathLike[str], **columns: str | None) -> Shape:
    """The shape of a file in any layout that `Ratings.read` takes, with the same names for its columns."""
    return shape_of(columns_of_file(path, **columns))


def describe_query(url: str, query: str, kind: RowKind = RATING_ROWS, /, **columns: str | None) -> Shape:
    """The shape of what a query on a database gives, with the arguments of `from_sql`."""
    from dpsr.data.sql import columns_of_query  # here, so that files do not wait for SQLAlchemy

    names = {name: columns.get(name) for name in ("user", "item", kind.value, "timestamp")}
    return shape_of(columns_of_query(url, query, kind, **names))


def describe_interactions(path: str | PathLike[str], **columns: str | None) -> Shape:
    """The shape of a file of interactions. Who did what is their secret: this is for the curator's eyes."""
    return shape_of(columns_of_file(path, INTERACTION_ROWS, **columns))


def shape_of(found: RatingColumns) -> Shape:
    """Counts of users, items and pairs; the ratings are there and are left alone."""
    if not len(found.users):
        raise DataError(f"{found.source.name}: there are no ratings. Give at least one row with a user and an item.")
    users, user_ids = code_ids(found.users, "user", found.source)
    items, item_ids = code_ids(found.items, "item", found.source)
    cells = np.unique(users * len(item_ids) + items)
    times = None if found.timestamps is None else read_times(found.timestamps, found.source)
    return Shape(
        source=found.source.name,
        n_rows=len(users),
        n_users=len(user_ids),
        n_items=len(item_ids),
        n_ratings=len(cells),
        duplicates=len(users) - len(cells),
        per_user=_spread(np.bincount(cells // len(item_ids))),
        per_item=_spread(np.bincount(cells % len(item_ids))),
        ids={"user": str(user_ids.type), "item": str(item_ids.type)},
        first=None if times is None else _utc(times.min()),
        last=None if times is None else _utc(times.max()),
    )


def _spread(counts: Ints) -> dict[str, int]:
    """Counts that some row really has: quantiles of the kind that do not interpolate."""
    values = np.quantile(counts, list(SHARES.values()), method="inverted_cdf")
    return dict(zip(SHARES, (int(value) for value in values), strict=True))


def _utc(seconds: int) -> str:
    """Unix seconds as a time people read; a number that no calendar has stays a number."""
    try:
        return datetime.fromtimestamp(int(seconds), UTC).isoformat(sep=" ").removesuffix("+00:00")
    except (ValueError, OverflowError, OSError):
        return str(int(seconds))
