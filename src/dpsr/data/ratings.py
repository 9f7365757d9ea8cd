"""The rating table as users of the library meet it: made from arrays, frames or files, split, handed back.

A pair has one rating: repeated ones are refused, or chosen from.
"""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dpsr.arrays import Ints
from dpsr.data.coding import RatingColumns, canonical_order, code_cells, code_ratings, read_times
from dpsr.data.files.read import columns_of_file
from dpsr.data.frames import columns_of_arrays, columns_of_frame, is_spark_frame
from dpsr.data.interactions import Interactions
from dpsr.data.rows_in_memory import RowsInMemory
from dpsr.engine.raw import RawInteractions, RawRatings
from dpsr.errors import DataError, ParameterError
from dpsr.quoting import Source, quoted, quoted_id
from dpsr.types.coordinates import Mask, Scale, ScaleLike

Duplicates = Literal["error", "first", "last"]
DUPLICATES = ("error", "first", "last")


@dataclass(frozen=True, eq=False, repr=False)  # the inherited repr shows no value, a generated one would
class Ratings(RowsInMemory, RawRatings):
    """Raw ratings on a declared scale: made by `from_arrays`, `from_frame`, `read` or `from_sql`, given to `fit`.

    All four take:

    * `scale`: the one printed on the rating form, as `Scale(1, 5)`, `"1:5:1"` (low, high, step) or `(1, 5)`. It is
      never guessed: the observed range is private.
    * `duplicates`: a pair of user and item has one rating; more are refused ("error"), or the "first" or "last" of
      them in the order of the input is kept.

    Ids are integers or strings. Times are Unix seconds. `mask` is who rated what, which is public at the unit "value";
    the ratings themselves are secret, and no message or `repr` shows one.

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
        """Ratings from lists, numpy arrays, Series or Arrow arrays of equal length.

        Args:
            users: Who rated, one id a rating.
            items: What was rated, one id a rating.
            values: The ratings, on the scale.
            scale: See `Ratings`.
            timestamps: When, in Unix seconds, if it is known.
            duplicates: See `Ratings`.

        Returns:
            The ratings, sorted by user and item.
        """
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
        """Ratings from a pandas, polars or Spark DataFrame or an Arrow table.

        Args:
            frame: One row a rating; of Spark, it is brought into the memory of this process.
            scale: See `Ratings`.
            user: Name of the column of users; one with a conventional name (`userId`, `customer`, ...) is found.
            item: Likewise of items (`movie_id`, `asin`, ...).
            rating: Likewise of ratings (`rating`, `stars`, ...).
            timestamp: Likewise of times, if there is one; `""` leaves times out although there is.
            duplicates: See `Ratings`; "error" alone of Spark, whose rows have no order.

        Returns:
            The ratings, sorted by user and item.
        """
        if is_spark_frame(frame) and duplicates in ("first", "last"):
            raise ParameterError(
                f"rows of a Spark DataFrame have no order, so none of a pair is its {duplicates}. Keep one rating of "
                'each pair beforehand (dropDuplicates(["user", "item"])), and leave duplicates="error".'
            )
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
        """Ratings from CSV, TSV, JSON lines, Parquet or a MovieLens file (`u.data`, `ratings.dat`, `ratings.csv`).

        Text may be compressed (`.gz`, `.bz2`, `.zst`, `.lz4`) and needs no header where its columns are user, item,
        rating and perhaps time, in this order.

        Args:
            path: The file.
            scale: See `Ratings`.
            user: Name of the column of users, as in `from_frame`.
            item: Likewise of items.
            rating: Likewise of ratings.
            timestamp: Likewise of times.
            delimiter: What separates fields of text, if it is not found: one mark, a tab, a space or `::`.
            duplicates: See `Ratings`.

        Returns:
            The ratings, sorted by user and item.
        """
        columns = columns_of_file(path, user=user, item=item, rating=rating, timestamp=timestamp, delimiter=delimiter)
        ratings = cls._assembled(columns, scale, duplicates)
        del columns
        pa.default_memory_pool().release_unused()  # Arrow would keep the file's columns for its next use
        return ratings

    @classmethod
    def from_sql(
        cls,
        url: str | PathLike[str],
        query: str,
        *,
        scale: ScaleLike,
        user: str | None = None,
        item: str | None = None,
        rating: str | None = None,
        timestamp: str | None = None,
        duplicates: Duplicates = "error",
    ) -> Self:
        """Ratings from a database; the query is run read-only and its answer streamed.

        Args:
            url: `sqlite:///file.db`, the path of such a file, or `postgresql://user@host/database`.
            query: One SELECT.
            scale: See `Ratings`.
            user: Name of the query's column of users, as in `from_frame`.
            item: Likewise of items.
            rating: Likewise of ratings.
            timestamp: Likewise of times.
            duplicates: See `Ratings`.

        Returns:
            The ratings, sorted by user and item.
        """
        from dpsr.data.sql import columns_of_query  # here, so that reading files does not wait for SQLAlchemy

        columns = columns_of_query(url, query, user=user, item=item, rating=rating, timestamp=timestamp)
        return cls._assembled(columns, scale, duplicates)

    @classmethod
    def _assembled(cls, columns: RatingColumns, scale: ScaleLike, duplicates: str) -> Self:
        declared = Scale.of(scale)
        mask, levels = _assemble(columns, scale=declared, duplicates=duplicates)
        return cls(mask, levels, declared)

    def liked(self, at_least: float) -> Interactions:
        """What people liked, without how much: who and what has no such rating is left out.

        Args:
            at_least: The lowest rating that counts, for example 4 of 5.

        Returns:
            Interactions, each of weight one.

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


def checked_ratings(ratings: object) -> RawRatings:
    """Ratings on a declared scale; for anything else, what to write instead."""
    if isinstance(ratings, RawRatings):
        return ratings
    if isinstance(ratings, RawInteractions):
        raise DataError("ratings are needed here, and these are interactions. Use DPSR(..., unit='user').")
    kind = type(ratings).__name__
    if hasattr(ratings, "columns") or hasattr(ratings, "__arrow_c_stream__"):
        write = 'Ratings.from_frame(df, scale="1:5:1")'
    elif isinstance(ratings, str | Path):
        write = 'Ratings.read(path, scale="1:5:1")'
    else:
        write = 'Ratings.from_arrays(users, items, values, scale="1:5:1")'
    raise DataError(
        f"Ratings on a declared scale are needed, found {kind}. Write {write}, with the scale printed on your rating "
        "form: it is never guessed, because the observed range is private."
    )


def _assemble(columns: RatingColumns, *, scale: Scale, duplicates: str) -> tuple[Mask, npt.NDArray[np.uint16]]:
    """The mask and the level of each of its ratings. `duplicates` says which rating of a repeated pair stays."""
    if duplicates not in DUPLICATES:
        raise ParameterError(f"duplicates is one of {', '.join(DUPLICATES)}, found {quoted(duplicates)}.")
    source = columns.source
    if not len(columns.ratings):
        raise DataError(
            f"{source.name}: there are no ratings. Give at least one row with a user, an item and a rating."
        )
    cells, user_ids, item_ids = code_cells(columns)
    levels = code_ratings(columns.ratings, scale, source)
    times = None if columns.timestamps is None else read_times(columns.timestamps, source)
    order, cells = canonical_order(cells, len(user_ids) * len(item_ids))
    kept = _without_duplicates(order, cells, duplicates, _Pairs(columns, source))
    order, cells = order[kept], cells[kept]
    mask = Mask.of_cells(cells, user_ids, item_ids, None if times is None else times[order])
    return mask, levels[order]


@dataclass(frozen=True, eq=False)
class _Pairs:
    """The pairs as they were given, for the message about a repeated one."""

    columns: RatingColumns
    source: Source

    def refuse(self, row: int, earlier: int) -> DataError:
        pair = self.columns.users[row].as_py(), self.columns.items[row].as_py()
        return repeated_pair_error(pair, row, earlier, self.source)


def repeated_pair_error(pair: tuple[object, object], row: int, earlier: int, source: Source) -> DataError:
    """The error for a pair that is rated twice."""
    return DataError(
        f"{source.at(row)}: user {quoted_id(pair[0])} rates item {quoted_id(pair[1])} again, as before at "
        f"{source.place(earlier)}. "
        'Keep one of them with duplicates="first" or "last" (or --duplicates first).'
    )


def _without_duplicates(order: Ints, cells: Ints, duplicates: str, pairs: _Pairs) -> npt.NDArray[np.bool_] | slice:
    repeats = cells[1:] == cells[:-1]
    if not repeats.any():
        return slice(None)
    if duplicates == "error":
        later = np.flatnonzero(repeats) + 1
        place = later[np.argmin(order[later])]  # the first row of the input that repeats an earlier one
        raise pairs.refuse(int(order[place]), int(order[np.searchsorted(cells, cells[place])]))
    edge = np.array([False])
    return ~np.concatenate([edge, repeats] if duplicates == "first" else [repeats, edge])
