"""Rows for people and for scripts: a table, JSON or CSV on stdout."""

from __future__ import annotations

import sys
from enum import StrEnum
from io import BytesIO
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpsr.cli.terminal import out
from dpsr.quoting import for_terminal, json_text, without_controls

if TYPE_CHECKING:
    import pyarrow as pa

SHOWN = 50
"""Rows of a table on the terminal; all of them go to JSON, CSV and files."""


class Format(StrEnum):
    """How rows are printed."""

    table = "table"
    json = "json"
    csv = "csv"


FormatOption = Annotated[Format, typer.Option("--format", help="How to print the rows.")]
JsonRows = Annotated[bool, typer.Option("--json", help="Short for --format json.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]


def show(rows: pa.Table, how: Format, *, title: str = "", more: str = "--format csv prints them all") -> None:
    """Print every row, or the first fifty as a table and in words how to see `more`."""
    if how is Format.table:
        _as_table(rows, title, more)
        return
    text = _as_csv(rows) if how is Format.csv else f"{json_text(rows.to_pylist())}\n"
    # to a file or a script byte for byte, in UTF-8; to a terminal without what could steer it
    typer.echo(without_controls(text) if sys.stdout.isatty() else text.encode(), nl=False)


def _as_csv(rows: pa.Table) -> str:
    from pyarrow.csv import write_csv

    buffer = BytesIO()
    write_csv(rows, buffer)
    return buffer.getvalue().decode("utf-8")


def _as_table(rows: pa.Table, title: str, more: str) -> None:
    from rich.table import Table

    shown = Table(title=for_terminal(title) or None, title_justify="left")
    for name, column in zip(rows.column_names, rows.columns, strict=True):
        shown.add_column(name, justify="right" if str(column.type) in ("double", "int32") else "left")
    for row in rows.slice(0, SHOWN).to_pylist():
        shown.add_row(*(_cell(value) for value in row.values()))
    out.print(shown)
    if len(rows) > SHOWN:
        out.print(f"and {len(rows) - SHOWN:,} more rows: {more}.")


def _cell(value: Any) -> str:
    if value is None:  # a title that the catalogue does not have
        return ""
    return f"{value:.3f}" if isinstance(value, float) else for_terminal(value)
