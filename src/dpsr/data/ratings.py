"""The rating table as users of the library meet it: made from arrays, frames or files, split, handed back."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dpsr.data.assemble import RatingColumns, assemble
from dpsr.data.files.read import columns_of_file
from dpsr.data.frames import columns_of_arrays, columns_of_frame
from dpsr.data.interactions import Interactions
from dpsr.data.rows_in_memory import RowsInMemory
from dpsr.engine.raw import RawRatings
from dpsr.errors import ParameterError
from dpsr.quoting import quoted
from dpsr.types.scale import Scale, ScaleLike

Duplicates = Literal["error", "first", "last"]


@dataclass(frozen=True, eq=False, repr=False)  # the inherited repr shows no value, a generated one would
class Ratings(RowsInMemory, RawRatings):
    """Raw ratings on a declared scale, with everything needed to get them in.

    Ids may be integers or strings. A pair of user and item has one rating: `duplicates` says what to do about more,
    refuse them ("error") or keep the "first" or "last" in the order of the input. Timestamps are Unix seconds. A scale
    may be written `Scale(1, 5)`, `"1:5:1"` or `(1, 5)`.

    >>> ratings = Ratings.from_arrays(["ann", "bob", "bob"], [10, 20, 10], [5, 3, 1], scale=Scale(1, 5))
    >>> ratings
    Ratings(3 ratings, 2 users, 2 items, scale 1:5:1)
    >>> ratings.values
    array([5., 1., 3.])
    """

    _noun = "rating"

    @classmethod
    def from_arrays(
        cls,
        users: Any,
        items: Any,
        values: Any,
        *,
        scale: ScaleLike,
        timestamps: Any | None = None,
        duplicates: Duplicates = "error",
    ) -> Self:
        """Ratings from lists, numpy arrays, Series or Arrow arrays of equal length."""
        columns = columns_of_arrays(users=users, items=items, values=values, timestamps=timestamps)
        return cls._assembled(columns, scale, duplicates)

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        scale: ScaleLike,
        user: str | None = None,
        item: str | None = None,
        rating: str | None = None,
        timestamp: str | None = None,
        duplicates: Duplicates = "error",
    ) -> Self:
        """Ratings from a pandas or polars DataFrame or an Arrow table.

        Columns with conventional names (`userId`, `movie_id`, `rating`, ...) are found; others are named.
        `timestamp=""` leaves the times out.
        """
        columns = columns_of_frame(frame, user=user, item=item, rating=rating, timestamp=timestamp)
        return cls._assembled(columns, scale, duplicates)

    @classmethod
    def read(
        cls,
        path: str | PathLike[str],
        *,
        scale: ScaleLike,
        user: str | None = None,
        item: str | None = None,
        rating: str | None = None,
        timestamp: str | None = None,
        delimiter: str | None = None,
        duplicates: Duplicates = "error",
    ) -> Self:
        """Ratings from CSV, TSV, Parquet or a MovieLens file (`u.data`, `ratings.dat`, `ratings.csv`).

        See `dpsr.data.files.layouts` for how the layout is recognised, `from_frame` for the columns.
        """
        columns = columns_of_file(path, user=user, item=item, rating=rating, timestamp=timestamp, delimiter=delimiter)
        ratings = cls._assembled(columns, scale, duplicates)
        del columns
        pa.default_memory_pool().release_unused()  # Arrow would keep the file's columns for its next use
        return ratings

    @classmethod
    def from_sql(
        cls,
        url: str,
        query: str,
        *,
        scale: ScaleLike,
        user: str | None = None,
        item: str | None = None,
        rating: str | None = None,
        timestamp: str | None = None,
        duplicates: Duplicates = "error",
    ) -> Self:
        """Ratings from a database: `sqlite:///file.db` or `postgresql://user@host/database`, and one SELECT.

        The query is run read-only and its answer streamed; see `from_frame` for the columns.
        """
        from dpsr.data.sql import columns_of_query  # here, so that reading files does not wait for SQLAlchemy

        columns = columns_of_query(url, query, user=user, item=item, rating=rating, timestamp=timestamp)
        return cls._assembled(columns, scale, duplicates)

    @classmethod
    def _assembled(cls, columns: RatingColumns, scale: ScaleLike, duplicates: str) -> Self:
        declared = Scale.of(scale)
        mask, levels = assemble(columns, scale=declared, duplicates=duplicates)
        return cls(mask, levels, declared)

    def liked(self, at_least: float) -> Interactions:
        """The ratings of `at_least` so much as interactions, each of weight one; who and what has none is left out.

        >>> ratings = Ratings.from_arrays(["ann", "ann", "bob", "bob"], [1, 2, 2, 3], [5, 2, 4, 4], scale=(1, 5))
        >>> ratings.liked(at_least=4)
        Interactions(3 interactions, 2 users, 3 items)
        """
        if not self.scale.low <= at_least <= self.scale.high:
            raise ParameterError(
                f"at_least is a rating from {self.scale.low:g} to {self.scale.high:g}, the ends of the scale, "
                f"found {quoted(at_least)}. A common choice is 4 of 5."
            )
        chosen = self.mask.select(self.values >= at_least)
        return Interactions.of_mask(chosen, f"ratings of at least {at_least:g}")

    def _select(self, rows: npt.NDArray[np.bool_]) -> Self:
        return type(self)(self.mask.select(rows), self.levels[rows], self.scale)

    def _value_column(self) -> dict[str, npt.NDArray[np.float64]]:
        return {"rating": self.values}
