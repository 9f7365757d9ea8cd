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
from dpsr.errors import DataError, ParameterError
from dpsr.quoting import quoted
from dpsr.types.raw import RawRatings
from dpsr.types.scale import Scale, ScaleLike

Duplicates = Literal["error", "first", "last"]


@dataclass(frozen=True, eq=False, repr=False)  # the inherited repr shows no value, a generated one would
class Ratings(RawRatings):
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
        return cls._assembled(columns_of_arrays(users, items, values, timestamps), scale, duplicates)

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

        See `dpsr.data.layouts` for how the layout is recognised, `from_frame` for the columns.
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

    def split(
        self, test_size: float = 0.2, *, seed: int | None = None, by: Literal["random", "time"] = "random"
    ) -> tuple[Self, Self]:
        """Train and test parts with the same users and items, so that codes agree.

        "random" draws round(test_size * N) ratings from the canonical order: the same seed gives the same parts however
        the input was ordered. "time" takes as many of the latest ratings, equal times in canonical order.
        """
        if not 0 < test_size < 1:
            raise ParameterError(f"test_size is a share between 0 and 1, found {test_size}. A common choice is 0.2.")
        n_test = round(test_size * len(self))
        if not 0 < n_test < len(self):
            raise DataError(
                f"a split needs a rating on either side, test_size={test_size} of {len(self):,} ratings puts "
                f"{n_test:,} in the test part. Choose another test_size or give more ratings."
            )
        held_out = np.zeros(len(self), dtype=bool)
        held_out[self._order(by, seed)[len(self) - n_test :]] = True
        return self._select(~held_out), self._select(held_out)

    def _order(self, by: str, seed: int | None) -> npt.NDArray[np.int64]:
        """All ratings in the order in which they are dealt, the test part last."""
        if by == "random":
            return np.random.default_rng(seed).permutation(len(self))
        if by != "time":
            raise ParameterError(f'a split is by "random" or by "time", found {quoted(by)}.')
        if self.mask.timestamps is None:
            raise DataError(
                'a split by time needs timestamps, these ratings have none. Name their column with timestamp="..." '
                '(or --timestamp COLUMN), or split by="random".'
            )
        return np.argsort(self.mask.timestamps, kind="stable")

    @property
    def shape(self) -> tuple[int]:
        """How many ratings, as an array would say."""
        return (len(self),)

    def __getitem__(self, rows: Any) -> Self:
        """Some of the ratings, by position or truth value; users and items keep their codes.

        With `score` this is what scikit-learn's model selection asks of data: `cross_val_score(DPSR(1.0), ratings)`.
        """
        chosen = np.zeros(len(self), dtype=np.bool_)
        chosen[rows[0] if isinstance(rows, tuple) else rows] = True
        return self._select(chosen)

    def _select(self, rows: npt.NDArray[np.bool_]) -> Self:
        return type(self)(self.mask.select(rows), self.levels[rows], self.scale)

    def to_arrow(self) -> pa.Table:
        """The raw table, for the curator: user, item, rating and perhaps timestamp, in canonical order."""
        columns = {
            "user": self.mask.user_ids.take(pa.array(self.mask.users)),
            "item": self.mask.item_ids.take(pa.array(self.mask.items)),
            "rating": pa.array(self.values),
        }
        if self.mask.timestamps is not None:
            columns["timestamp"] = pa.array(self.mask.timestamps)
        return pa.table(columns)

    def to_frame(self) -> Any:
        """`to_arrow` as a pandas DataFrame."""
        try:
            return self.to_arrow().to_pandas()
        except ModuleNotFoundError as error:
            raise DataError(
                "to_frame makes a pandas DataFrame, and pandas is not installed. Install dpsr[frames], or use to_arrow."
            ) from error
