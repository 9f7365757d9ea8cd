"""`dpsr plan`: what accuracy to expect at each epsilon, before anything is spent."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from dpsr.cli.reading import (
    Delimiter,
    Duplicates,
    Item,
    OnDuplicates,
    Query,
    Rating,
    RatingsFile,
    Reading,
    ScaleText,
    Snap,
    Timestamp,
    User,
)
from dpsr.cli.terminal import out

EXAMPLE = "Example: dpsr plan ratings.csv --scale 1:5:1 --spread 1.1"

NOTE = (
    "RMSE: how far a prediction is off, in rating points{assumed}. Constant: the same as a part of what predicting one "
    "number for everything would make. Last three: what the squared error consists of. A forecast from who rated what; "
    "no rating was used and nothing was spent."
)
ASSUMED = ", if ratings spread by {spread:g} (assumed; --spread if you know it)"


def plan(
    ratings: RatingsFile,
    scale: ScaleText,
    epsilon: Annotated[str, typer.Option(help="Budgets to compare, separated by commas.")] = "0.1,0.5,1,2,3,5,10",
    spread: Annotated[
        float | None, typer.Option(help="Standard deviation of ratings, if you know it; assumed otherwise.")
    ] = None,
    user: User = None,
    item: Item = None,
    rating: Rating = None,
    timestamp: Timestamp = None,
    delimiter: Delimiter = None,
    duplicates: OnDuplicates = Duplicates.error,
    snap: Snap = False,
    query: Query = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")] = False,
) -> None:
    """Say what accuracy to expect at each epsilon, before anything is spent."""
    from dpsr.pipeline.plan import plan_table

    reading = Reading(ratings, scale, user, item, rating, timestamp, delimiter, duplicates, snap, query)
    table = reading.read()
    report = plan_table(table, epsilon, spread=spread)
    if as_json:
        typer.echo(json.dumps(report.to_dict(), indent=2))
        return
    out.print(escape(f"{ratings.name}: {len(table):,} ratings. {reading.taken}".rstrip()))
    shown = Table(title="What to expect", title_justify="left")
    for name in ("epsilon", "RMSE", "constant", "unknowable", "too few ratings", "privacy"):
        shown.add_column(name, justify="right")
    for row in report.rows():
        shown.add_row(*row)
    out.print(shown)
    out.print(NOTE.format(assumed=ASSUMED.format(spread=report.spread) if report.assumed else ""))
