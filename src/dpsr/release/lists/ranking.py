"""The score a list is ordered by, to the last bit the same however it is computed, and lists as tables for people.

    predicted_uj = A_u . B_j                                    summed in the order of the factors
    score_uj     = predicted_uj                                 without an affinity
                 = max(R_u . S_j, 1e-6) Phi((predicted_uj - overall) / sigma)     with one: see `Model.liked`

A matrix product gives sums whose last bits depend on the library, its threads and where a row stands in the matrix,
and a last bit decides between two equal items. Here every pair is one fixed sequence of multiplications and additions,
element by element, so that one user alone and everybody at once get the same list, and items with equal factors tie.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dpsr.arrays import AnyInts, Floats, Ints
from dpsr.errors import ParameterError
from dpsr.quoting import printable
from dpsr.release.adapters.frames import optional
from dpsr.types import Model


class PairScores(NamedTuple):
    """What pairs are ordered by, and the unclipped ratings predicted for them."""

    scores: Floats
    predicted: Floats


def score_pairs(model: Model, users: Ints, items: Ints) -> PairScores:
    """Scores of known users and items, one per pair; the two arrays broadcast."""
    predicted = ordered_dots(model.user_factors, users, model.item_factors, items)
    if model.affinity is None:
        return PairScores(predicted, predicted)
    meets = ordered_dots(model.affinity.users, users, model.affinity.items, items)
    return PairScores(model.weigh(predicted, meets), predicted)


def ordered_dots(left: Floats, rows: AnyInts, right: Floats, columns: AnyInts) -> Floats:
    """left[rows] . right[columns], one factor after the other."""
    total = np.zeros(np.broadcast_shapes(rows.shape, columns.shape))
    for factor in range(left.shape[1]):
        total += left[rows, factor] * right[columns, factor]
    return total


class Tabular(ABC):
    """Something that is a table in whichever shape its reader likes."""

    @abstractmethod
    def to_arrow(self) -> pa.Table:
        """The rows as an Arrow table."""

    def to_pandas(self) -> Any:
        """The rows as a pandas DataFrame."""
        optional("pandas", "to_pandas")
        return self.to_arrow().to_pandas()

    def to_polars(self) -> Any:
        """The rows as a polars DataFrame."""
        return optional("polars", "to_polars").from_arrow(self.to_arrow())

    def _repr_html_(self) -> str:
        return html_table(self.to_arrow())


@dataclass(frozen=True, eq=False)
class Recommendations(Tabular):
    """Items for one person, best first, with their predicted ratings: `items, scores = release.recommend(42)`.

    The order may weigh how likely the person is to meet an item at all; the scores are ratings on the scale. `titles`
    are there if the release knows any.
    """

    items: list[Any]
    scores: Floats
    titles: list[str | None] | None = None

    def __iter__(self) -> Iterator[Any]:
        return iter((self.items, self.scores))

    def __len__(self) -> int:
        return len(self.items)

    def to_arrow(self) -> pa.Table:
        """rank, item, score and perhaps title."""
        ranks = pa.array(np.arange(1, len(self.items) + 1), type=pa.int32())
        columns: dict[str, Any] = {"rank": ranks, "item": self.items, "score": self.scores}
        return pa.table(columns if self.titles is None else columns | {"title": pa.array(self.titles, pa.string())})

    def __repr__(self) -> str:
        shown = ", ".join(f"{item!r}: {score:.2f}" for item, score in zip(self.items[:5], self.scores, strict=False))
        return f"Recommendations({shown}{', …' if len(self.items) > 5 else ''})"


@dataclass(frozen=True, eq=False)
class RecommendationLists(Tabular):
    """The lists of several users, in the order they were asked for: user, rank, item, score and perhaps title."""

    rows: pa.Table

    def to_arrow(self) -> pa.Table:
        return self.rows

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        return f"RecommendationLists({len(self.rows):,} rows: {', '.join(self.rows.column_names)})"


def check_number(n: object) -> None:
    """Refuse a length that no list has."""
    if isinstance(n, bool) or not isinstance(n, Integral) or n < 1:
        raise ParameterError(f"n must be at least 1, found {n!r}. Ask for the number of items you want to show.")


def best_items(model: Model, scores: Floats, predicted: Floats, rated: npt.ArrayLike, n: int) -> Recommendations:
    """The `n` unrated items of highest score; equal scores keep the order of the items."""
    check_number(n)
    allowed = np.ones(len(scores), dtype=bool)
    allowed[np.asarray(rated, dtype=np.int64)] = False
    open_items = np.flatnonzero(allowed)
    if n < len(open_items):  # only what reaches the n-th score is sorted; ties with it are still there
        least = np.partition(scores[open_items], len(open_items) - n)[len(open_items) - n]
        open_items = open_items[scores[open_items] >= least]
    order = open_items[np.argsort(-scores[open_items], kind="stable")[:n]]
    return Recommendations(model.mask.item_ids.take(pa.array(order)).to_pylist(), model.scale.clip(predicted[order]))


_SHOWN = 20
"""Rows that a notebook shows."""


def html_table(rows: pa.Table) -> str:
    """The first rows for a notebook; ids and titles are text by strangers, so nothing of them is markup."""
    head = "".join(f"<th>{escape(name)}</th>" for name in rows.column_names)
    body = "".join(
        "<tr>" + "".join(f"<td>{_cell(value)}</td>" for value in row.values()) + "</tr>"
        for row in rows.slice(0, _SHOWN).to_pylist()
    )
    more = f"<p>and {len(rows) - _SHOWN:,} more rows</p>" if len(rows) > _SHOWN else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def _cell(value: object) -> str:
    if value is None:
        return ""
    return f"{value:.2f}" if isinstance(value, float) else escape(printable(str(value), 120))
