"""`dpsr compare`: releases side by side."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpsr.certify.amounts import epsilon_text
from dpsr.cli.release_folder import open_any_release
from dpsr.cli.rows import Json
from dpsr.cli.terminal import out
from dpsr.quoting import for_terminal

if TYPE_CHECKING:
    from dpsr.pipeline.compare import Column, Comparison

EXAMPLE = "Example: dpsr compare release-a/ release-b/"

NOTE = (
    "Expected accuracy is RMSE as a share of predicting one constant, from public counts; differences are in rating "
    "points over {pairs:,} common pairs, overlap is the share of top-10 lists in common over {users:,} common users."
)

NOTE_MADE_UP = (
    "These releases know nobody: {users:,} people who do not exist were drawn from the first and served by each. "
    "Differences are in rating points; overlap is the share of top-10 lists in common. Parts are mu, and their "
    "squares add up."
)


def compare(
    releases: Annotated[
        list[Path], typer.Argument(metavar="RELEASE", file_okay=False, help="Release folders to put side by side.")
    ],
    as_json: Json = False,
) -> None:
    """Put releases side by side: method, exact epsilon, shape, expected accuracy, and how far their answers differ."""
    from dpsr.pipeline.compare import compare as put_side_by_side

    loaded: list[Any] = [open_any_release(folder) for folder in releases]
    comparison = put_side_by_side(loaded, [str(folder) for folder in releases])
    if as_json:
        typer.echo(json.dumps(comparison.to_dict(), indent=2, allow_nan=False))
        return
    _print(comparison)


def _print(comparison: Comparison) -> None:
    from rich.table import Table

    columns = comparison.columns
    parts = list(dict.fromkeys(name for column in columns for name in column.parts))
    facts = [_facts(column, parts) for column in columns]
    shown = Table("", *(for_terminal(column.name) for column in columns))
    for name in facts[0]:
        if any(column[name] for column in facts):
            shown.add_row(name, *(column[name] for column in facts))
    out.print(shown)
    if len(columns) > 1 and not comparison.between:
        out.print("They have no user or no item in common, so there are no answers to compare.")
    elif len(columns) > 1:
        _print_between(comparison)


def _print_between(comparison: Comparison) -> None:
    from rich.table import Table

    shown = Table("between", "mean difference", "top-10 overlap")
    for pair in comparison.between:
        none = "no ratings" if comparison.columns[0].scale is None else "scales differ"
        apart = none if pair.difference is None else f"{pair.difference:.3f}"
        shown.add_row(f"{for_terminal(pair.a)} and {for_terminal(pair.b)}", apart, f"{pair.overlap:.1%}")
    out.print(shown)
    note = NOTE_MADE_UP if comparison.made_up else NOTE
    out.print(note.format(pairs=comparison.n_pairs, users=comparison.n_users))


def _facts(column: Column, parts: list[str]) -> dict[str, str]:
    return {
        "method": for_terminal(column.method),
        "protects": column.unit,
        "promise": "private" if column.private else "[red]NOT PRIVATE[/red]",
        "exact epsilon": epsilon_text(column.epsilon, 6),
        "asked for": "" if column.nominal is None else f"{column.nominal:g}",
        "delta": epsilon_text(column.delta),
        **{
            f"  {for_terminal(name)}": epsilon_text(column.parts[name]) if name in column.parts else ""
            for name in parts
        },
        "expected accuracy": "" if column.expected is None else f"{column.expected:.3f}",
        "scale": column.scale or "none: interactions",
        "users": "nobody" if column.n_users is None else f"{column.n_users:,}",
        "items": f"{column.n_items:,}",
        "ratings": "none" if column.n_ratings is None else f"{column.n_ratings:,}",
    }
