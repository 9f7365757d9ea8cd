"""`dpsr plan`: what accuracy to expect at each epsilon, before anything is spent."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

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
    RatingsSource,
    Reading,
    ScaleText,
    Snap,
    Timestamp,
    User,
)
from dpsr.cli.terminal import out
from dpsr.cli.units import DeltaOption, Unit, UnitOption
from dpsr.errors import ParameterError

if TYPE_CHECKING:
    from dpsr.pipeline.plan import Plan
    from dpsr.pipeline.plan_people import PeoplePlan

EXAMPLE = "Example: dpsr plan ratings.csv --scale 1:5:1 --spread 1.1"

NOTE = (
    "RMSE: how far a prediction is off, in rating points{assumed}. Constant: the same as a part of what predicting one "
    "number for everything would make. Last three: what the squared error consists of. A forecast from who rated what; "
    "no rating was used and nothing was spent."
)
ASSUMED = ", if ratings spread by {spread:g} (assumed; --spread if you know it)"


Totals = tuple[int | None, int | None, int | None]

NOTE_PEOPLE = (
    "RMSE: how far a prediction is off, in rating points{assumed}; beside it, against people's own means. Factors: "
    "whether directions of taste would be asked for, and how many people like these it takes. {source}"
)
FROM_TOTALS = "A forecast from the totals you declared; nothing was read and nothing was spent."
FROM_FILE = "[red]Read from the raw file: not private, for your eyes only.[/red] Nothing was spent."


def plan(
    scale: ScaleText,
    ratings: Annotated[
        RatingsSource | None,
        typer.Argument(parser=RatingsSource, help="A file of ratings, or - or a database with --query."),
    ] = None,
    epsilon: Annotated[str, typer.Option(help="Budgets to compare, separated by commas.")] = "0.1,0.5,1,2,3,5,10",
    spread: Annotated[
        float | None, typer.Option(help="Standard deviation of ratings, if you know it; assumed otherwise.")
    ] = None,
    unit: UnitOption = None,
    delta: DeltaOption = None,
    users: Annotated[
        int | None, typer.Option("--users", min=1, help="With --unit user or rating: how many people.")
    ] = None,
    n_items: Annotated[
        int | None, typer.Option("--items", min=1, help="With --unit user or rating: how many items.")
    ] = None,
    n_ratings: Annotated[
        int | None, typer.Option("--ratings", min=1, help="With --unit user or rating: how many ratings in all.")
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
    """Say what accuracy to expect at each epsilon, before anything is spent.

    With --unit user or rating from totals that may be known (--users, --items, --ratings), or from a file, which is not
    private.
    """
    from dpsr.pipeline.plan import Plan, plan_table
    from dpsr.pipeline.plan_people import plan_people
    from dpsr.types import Scale

    chosen, totals = unit or Unit.value, (users, n_items, n_ratings)
    check_source(chosen, ratings, delta, totals)
    table, taken = None, ""
    if ratings is not None:
        reading = Reading(ratings, scale, user, item, rating, timestamp, delimiter, duplicates, snap, query)
        table, taken = reading.read(), reading.taken
    if table is not None and chosen is Unit.value:
        report: Plan | PeoplePlan = plan_table(table, epsilon, spread=spread)
    else:
        known = Scale.parse(scale, snap=snap)
        report = plan_people(known, epsilon, delta, unit=chosen.value, ratings=table, totals=totals, spread=spread)
    if as_json:
        typer.echo(json.dumps(report.to_dict(), indent=2))
        return
    if ratings is not None and table is not None:
        out.print(escape(f"{ratings.name}: {len(table):,} ratings. {taken}".rstrip()))
    _show(report, values=isinstance(report, Plan))


def check_source(unit: Unit, ratings: RatingsSource | None, delta: float | None, totals: Totals) -> None:
    """Values are planned from who rated what, which is public there; people from totals, or from a file."""
    given = any(total is not None for total in totals)
    if unit is Unit.value and ratings is None:
        raise ParameterError(
            "a plan at the unit value reads who rated what: name a file, or --unit user (or rating) and totals."
        )
    if unit is Unit.value and (delta is not None or given):
        raise ParameterError("--delta, --users, --items and --ratings are for --unit user and rating: leave them out.")
    if ratings is not None and given:
        raise ParameterError("a plan is made from a file or from totals, not from both. Leave one of them out.")


def _show(report: Plan | PeoplePlan, *, values: bool) -> None:
    shown = Table(title="What to expect", title_justify="left")
    heads = ("constant", "unknowable", "too few ratings", "privacy") if values else ("own means", "factors", "people")
    for name in ("epsilon", "RMSE", *heads):
        shown.add_column(name, justify="right")
    for row in report.rows():
        shown.add_row(*row)
    out.print(shown)
    assumed = ASSUMED.format(spread=report.spread) if report.assumed else ""
    source = FROM_FILE if getattr(report, "raw", False) else FROM_TOTALS
    out.print((NOTE if values else NOTE_PEOPLE).format(assumed=assumed, source=source))
