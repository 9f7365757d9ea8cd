"""Lists as tables: Arrow, pandas, polars, and HTML where a notebook shows them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from html import escape
from typing import Any

import pyarrow as pa

from dpsr.quoting import printable
from dpsr.release.adapters.frames import optional

_SHOWN = 20
"""Rows that a notebook shows."""


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
class RecommendationLists(Tabular):
    """The lists of several users, in the order they were asked for: user, rank, item, score and perhaps title."""

    rows: pa.Table

    def to_arrow(self) -> pa.Table:
        return self.rows

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        return f"RecommendationLists({len(self.rows):,} rows: {', '.join(self.rows.column_names)})"


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
