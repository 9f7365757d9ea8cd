"""Who did what, without a rating: clicks, plays, purchases, visits, as users of the library meet them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from os import PathLike
from typing import Any, NamedTuple, Self

import numpy as np
import pyarrow as pa

from dpsr.arrays import Bools, Floats, Ints
from dpsr.data.coding import RatingColumns, canonical_order, code_cells, read_times, read_weights
from dpsr.data.columns import INTERACTION_ROWS
from dpsr.data.files.read import columns_of_file
from dpsr.data.frames import columns_of_arrays, columns_of_frame
from dpsr.data.rows_in_memory import RowsInMemory
from dpsr.engine.raw import RawInteractions
from dpsr.errors import DataError, ParameterError
from dpsr.quoting import quoted
from dpsr.types.coordinates import Mask


@dataclass(frozen=True, eq=False, repr=False)  # the inherited repr shows no weight, a generated one would
class Interactions(RowsInMemory, RawInteractions):
    """Raw interactions: a user, an item, perhaps a weight or count, perhaps a time; there is no scale. Made by
    `from_arrays`, `from_frame`, `read`, `from_sql` or `Ratings.liked`, given to `fit` at the unit "user" or "rating".

    Ids are integers or strings. Interactions of one pair are added up, and `notes` say how many were, and which
    column that looks like a rating was not read. A weight is above zero; every row weighs one where none is given. The
    time of a pair, in Unix seconds, is that of its latest interaction. `mask` (who did what) and `weights` are secret.

    >>> likes = Interactions.from_arrays(["ann", "bob", "bob", "bob"], [10, 20, 10, 10])
    >>> likes
    Interactions(3 interactions, 2 users, 2 items)
    >>> likes.weights
    array([1., 2., 1.])
    >>> likes.notes
    ('1 interaction repeats an earlier one of the same user and item: their weights were added up.',)
    """

    notes: tuple[str, ...] = ()

    _noun = "interaction"

    @classmethod
    def from_arrays(cls, users: Any, items: Any, weights: Any | None = None, timestamps: Any | None = None) -> Self:
        """Interactions from lists, numpy arrays, Series or Arrow arrays of equal length.

        Args:
            users: Who, one id a row.
            items: What, one id a row.
            weights: How much or how often, above zero; one for every row unless told.
            timestamps: When, in Unix seconds, if it is known.

        Returns:
            The interactions, sorted by user and item, one for each pair.
        """
        given = {"users": users, "items": items, "weights": weights, "timestamps": timestamps}
        return cls._assembled(columns_of_arrays(INTERACTION_ROWS, **given))

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        user: str | None = None,
        item: str | None = None,
        weight: str | None = None,
        timestamp: str | None = None,
    ) -> Self:
        """Interactions from a pandas, polars or Spark DataFrame or an Arrow table.

        Args:
            frame: One row an interaction; of Spark, it is brought into the memory of this process.
            user: Name of the column of users; one with a conventional name (`userId`, `customer`, ...) is found.
            item: Likewise of items (`product_id`, `sku`, ...).
            weight: Likewise of weights (`count`, `plays`, ...), if there is one; `""` lets every row weigh one.
            timestamp: Likewise of times, if there is one; `""` leaves times out although there is.

        Returns:
            The interactions, sorted by user and item, one for each pair.
        """
        named = {"user": user, "item": item, "weight": weight, "timestamp": timestamp}
        return cls._assembled(columns_of_frame(frame, INTERACTION_ROWS, **named))

    @classmethod
    def read(
        cls,
        path: str | PathLike[str],
        *,
        user: str | None = None,
        item: str | None = None,
        weight: str | None = None,
        timestamp: str | None = None,
        delimiter: str | None = None,
    ) -> Self:
        """Interactions from a file of any kind that `Ratings.read` takes; two columns are enough.

        Args:
            path: The file.
            user: Name of the column of users, as in `from_frame`.
            item: Likewise of items.
            weight: Likewise of weights.
            timestamp: Likewise of times.
            delimiter: What separates fields of text, if it is not found: one mark, a tab, a space or `::`.

        Returns:
            The interactions, sorted by user and item, one for each pair.
        """
        named = {"user": user, "item": item, "weight": weight, "timestamp": timestamp, "delimiter": delimiter}
        read = cls._assembled(columns_of_file(path, INTERACTION_ROWS, **named))
        pa.default_memory_pool().release_unused()  # Arrow would keep the file's columns for its next use
        return read

    @classmethod
    def from_sql(
        cls,
        url: str | PathLike[str],
        query: str,
        *,
        user: str | None = None,
        item: str | None = None,
        weight: str | None = None,
        timestamp: str | None = None,
    ) -> Self:
        """Interactions from a database; the query is run read-only and its answer streamed.

        Args:
            url: `sqlite:///file.db`, the path of such a file, or `postgresql://user@host/database`.
            query: One SELECT.
            user: Name of the query's column of users, as in `from_frame`.
            item: Likewise of items.
            weight: Likewise of weights.
            timestamp: Likewise of times.

        Returns:
            The interactions, sorted by user and item, one for each pair.
        """
        from dpsr.data.sql import columns_of_query  # here, so that reading files does not wait for SQLAlchemy

        named = {"user": user, "item": item, "weight": weight, "timestamp": timestamp}
        return cls._assembled(columns_of_query(url, query, INTERACTION_ROWS, **named))

    @classmethod
    def of_mask(cls, mask: Mask, source: str) -> Self:
        """Every observed cell of a table as one interaction; users and items without one are left out."""
        if not mask.n_ratings:
            raise DataError(f"{source}: there are none, so nobody likes anything. Choose another threshold.")
        return cls.from_arrays(*mask.id_pairs(), timestamps=mask.timestamps)

    @classmethod
    def _assembled(cls, columns: RatingColumns) -> Self:
        mask, weights, n_repeated = _assemble(columns)
        return cls(mask, weights, tuple(notes_of(n_repeated, columns.unread)))

    @property
    def user_ids(self) -> pa.Array:
        """Everybody, ascending; a user's code is the position here."""
        return self.mask.user_ids

    @property
    def item_ids(self) -> pa.Array:
        """Every item, ascending; an item's code is the position here."""
        return self.mask.item_ids

    def hold_out_people(self, people: float = 0.2, items: float = 0.2, *, seed: int | None = None) -> HeldOutPeople:
        """For evaluation: a share of the people apart, and of each of them a share of their items hidden.

        Only people with two items or more are held out, so that each has something to show and something hidden.

        Args:
            people: The share of people who are held out.
            items: The share of their items that is hidden, at least one of each.
            seed: The same seed gives the same parts.

        Returns:
            `train`, which knows nobody who is held out, and `shown` and `hidden`; items keep their codes in all three.
        """
        for name, share in (("people", people), ("items", items)):
            if not 0 < share < 1:
                raise ParameterError(f"{name} is a share between 0 and 1, found {share}. A common choice is 0.2.")
        rng = np.random.default_rng(seed)
        able = np.flatnonzero(self.mask.user_counts >= 2)
        n_out = round(people * len(able))
        if not 0 < n_out < self.n_users:
            raise DataError(
                f"held-out people need two interactions each and somebody to learn from; {len(able):,} of "
                f"{self.n_users:,} people have two. Choose another share of people or give more interactions."
            )
        out = np.zeros(self.n_users, dtype=np.bool_)
        out[rng.permutation(able)[:n_out]] = True
        hidden = _hidden_rows(self.mask, items, rng)[out[self.mask.users]]
        theirs = self.of_people(np.flatnonzero(out))
        return HeldOutPeople(self.of_people(np.flatnonzero(~out)), theirs[~hidden], theirs[hidden])

    def hide_items(self, items: float = 0.2, *, seed: int | None = None) -> tuple[Self, Self]:
        """For evaluation: a share of everybody's items apart.

        Args:
            items: The share that is hidden, at least one of everybody who has two.
            seed: The same seed gives the same parts.

        Returns:
            What is shown, and what is hidden.
        """
        if not 0 < items < 1:
            raise ParameterError(f"items is a share between 0 and 1, found {items}. A common choice is 0.2.")
        hidden = _hidden_rows(self.mask, items, np.random.default_rng(seed))
        return self[~hidden], self[hidden]

    def of_people(self, codes: Ints) -> Self:
        """The interactions of some people, by ascending codes; only they are known to what comes out."""
        chosen = np.zeros(self.n_users, dtype=np.bool_)
        chosen[codes] = True
        rows = chosen[self.mask.users]
        mask = self.mask.select(rows)
        edges = np.concatenate([[0], mask.indptr[1:][chosen]])
        return type(self)(
            replace(mask, user_ids=mask.user_ids.filter(pa.array(chosen)), indptr=edges), self.weights[rows]
        )

    def _select(self, rows: Bools) -> Self:
        return type(self)(self.mask.select(rows), self.weights[rows])

    def _value_column(self) -> dict[str, Floats]:
        return {"weight": self.weights}


class HeldOutPeople(NamedTuple):
    """People to learn from, and other people with what they show and what is hidden, under the same user codes."""

    train: Interactions
    shown: Interactions
    hidden: Interactions


def _hidden_rows(mask: Mask, share: float, rng: np.random.Generator) -> Bools:
    """A random share of everybody's rows, rounded, and one at least of those who have two."""
    order = np.lexsort((rng.random(mask.n_ratings), mask.users))
    place = np.arange(mask.n_ratings) - mask.indptr[mask.users]
    n_hidden = np.minimum(np.maximum(1, np.rint(share * mask.user_counts).astype(np.int64)), mask.user_counts - 1)
    hidden = np.zeros(mask.n_ratings, dtype=np.bool_)
    hidden[order[place < n_hidden[mask.users]]] = True
    return hidden


def notes_of(n_repeated: int, unread: str | None) -> list[str]:
    """What was made of the rows, in words."""
    notes = []
    if n_repeated:
        many = n_repeated > 1
        notes.append(
            f"{n_repeated:,} interaction{'s repeat' if many else ' repeats'} an earlier one of the same user and item: "
            "their weights were added up."
        )
    if unread is not None:
        notes.append(
            f"the column {quoted(unread)} looks like a rating and was not read: every row is one interaction. "
            "For likes only, read ratings in Python and use liked(at_least=...); to take it as a weight, "
            f"weight={quoted(unread)} (or --weight {quoted(unread)})."
        )
    return notes


def _assemble(columns: RatingColumns) -> tuple[Mask, Floats, int]:
    """The mask, the weight of each of its interactions, and how many rows repeated a pair and were added to it.

    The time of a pair is that of its latest interaction.
    """
    source = columns.source
    if not len(columns.ratings):
        raise DataError(f"{source.name}: there are no interactions. Give at least one row with a user and an item.")
    cells, user_ids, item_ids = code_cells(columns)
    weights = read_weights(columns.ratings, source)
    times = None if columns.timestamps is None else read_times(columns.timestamps, source)
    order, cells = canonical_order(cells, len(user_ids) * len(item_ids))
    first = np.flatnonzero(np.concatenate([[True], cells[1:] != cells[:-1]]))
    with np.errstate(over="ignore"):
        total = np.add.reduceat(weights[order], first)
    if not np.isfinite(total).all():
        raise DataError(f"{source.name}: the weights of one pair add up to more than a number can hold. Rescale them.")
    latest = None if times is None else np.maximum.reduceat(times[order], first)
    return Mask.of_cells(cells[first], user_ids, item_ids, latest), total, len(cells) - len(first)
