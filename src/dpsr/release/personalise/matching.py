"""People's own rows in the codes of a release: who is known, which cells it holds, what each of them has rated."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from dpsr.arrays import Bools, Codes, Floats, Ints
from dpsr.types import Mask, OwnRows


@dataclass(frozen=True, eq=False)
class OwnRatings:
    """Raw ratings of some people at items that a release knows, person by person, items ascending.

    `users` are codes in the release, -1 for strangers; `places` where its mask holds the cell, -1 where it does not.
    `rated` (with `rated_indptr`) is everything a person rated, here or in the release. `dropped` counts the rows at
    unknown items.
    """

    user_ids: pa.Array
    users: Ints
    indptr: Ints
    items: Codes
    values: Floats
    places: Ints
    rated_indptr: Ints
    rated: Codes
    dropped: int

    @property
    def counts(self) -> Ints:
        return np.diff(self.indptr)

    def select(self, people: Ints) -> OwnRatings:
        """Some of these people, in the order given."""
        at, indptr = _gather(self.indptr, people)
        rated_at, rated_indptr = _gather(self.rated_indptr, people)
        return OwnRatings(
            self.user_ids.take(pa.array(people)),
            self.users[people],
            indptr,
            self.items[at],
            self.values[at],
            self.places[at],
            rated_indptr,
            self.rated[rated_at],
            0,
        )


@dataclass(frozen=True, eq=False)
class ReleaseCodes:
    """Codes in a release of all people and items of a table of ratings, -1 for unknown ones: looked up once."""

    users: Ints
    items: Ints

    @classmethod
    def of(cls, ratings: Mask, release: Mask) -> ReleaseCodes:
        return cls(release.user_codes(ratings.user_ids), release.item_codes(ratings.item_ids))


def matched(rows: OwnRows, users: Ints, item_codes: Ints, mask: Mask) -> OwnRatings:
    """The rows of some people in the codes of a release with this mask."""
    n, codes = mask.n_items, item_codes[rows.items]
    people = np.repeat(np.arange(len(users)), np.diff(rows.indptr))
    known = codes >= 0
    cells = people[known] * n + codes[known]
    order = np.argsort(cells, kind="stable")
    cells, values = cells[order], rows.values[known][order]
    released, at = _released_cells(users, mask)
    place = np.minimum(np.searchsorted(released, cells), max(len(released) - 1, 0))
    found: Bools = released[place] == cells if len(released) else np.zeros(len(cells), dtype=bool)
    rated = np.union1d(cells, released)
    return OwnRatings(
        rows.user_ids,
        users,
        _indptr(cells, len(users), n),
        (cells % n).astype(np.int32),
        values,
        np.where(found, at[place], -1) if len(released) else np.full(len(cells), -1),
        _indptr(rated, len(users), n),
        (rated % n).astype(np.int32),
        int(np.count_nonzero(~known)),
    )


def _released_cells(users: Ints, mask: Mask) -> tuple[Ints, Ints]:
    """The cells that the mask holds of these people, and their places in it."""
    there = np.flatnonzero(users >= 0)
    at, indptr = _gather(mask.indptr, users[there])
    return np.repeat(there, np.diff(indptr)) * mask.n_items + mask.items[at], at


def _gather(indptr: Ints, rows: Ints) -> tuple[Ints, Ints]:
    """Positions of the entries of some rows, and their own pointers."""
    counts = indptr[rows + 1] - indptr[rows]
    own = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return np.arange(own[-1]) + np.repeat(indptr[rows] - own[:-1], counts), own


def _indptr(cells: Ints, n_people: int, n_items: int) -> Ints:
    return np.searchsorted(cells, np.arange(n_people + 1) * n_items).astype(np.int64)
