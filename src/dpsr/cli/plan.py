"""`dpsr plan`: what accuracy to expect at each epsilon, before anything is spent."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.table import Table

from dpsr.cli.likes import NO_RATINGS, Likes, LikesReading, NamedColumns, Weight, reads_likes
from dpsr.cli.reading import (
    Delimiter,
    Duplicates,
    Item,
    OnDuplicates,
    OptionalScale,
    Query,
    Rating,
    RatingsSource,
    Reading,
    Snap,
    Timestamp,
    User,
)
from dpsr.cli.rows import Json
from dpsr.cli.terminal import out
from dpsr.cli.units import DeltaOption, Unit, UnitOption
from dpsr.errors import ParameterError

if TYPE_CHECKING:
    from dpsr.pipeline.plan import Plan
    from dpsr.pipeline.plan_likes import LikesPlan
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
NOTE_LIKES = (
    "Lists: what lists of twenty are worth next to those by popularity without noise, which are 1. Popularity is what "
    "noise leaves of these; taste what other people's habits add, looked for among so many frequent items. No list: "
    "lists where no list of items is declared (release --items), so that items must be named first. A rough forecast. "
    "{source}"
)
FROM_TOTALS = "From the totals you declared; nothing was read and nothing was spent."
FROM_FILE = "[red]Read from the raw file: not private, for your eyes only.[/red] Nothing was spent."


def plan(
    ratings: Annotated[
        RatingsSource | None,
        typer.Argument(parser=RatingsSource, help="A file of ratings, or - or a database with --query."),
    ] = None,
    scale: OptionalScale = None,
    likes: Likes = False,
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
        int | None,
        typer.Option("--ratings", min=1, help="With --unit user or rating: how many ratings, or interactions, in all."),
    ] = None,
    user: User = None,
    item: Item = None,
    rating: Rating = None,
    weight: Weight = None,
    timestamp: Timestamp = None,
    delimiter: Delimiter = None,
    duplicates: OnDuplicates = Duplicates.error,
    snap: Snap = False,
    query: Query = None,
    as_json: Json = False,
) -> None:
    """Say what accuracy to expect at each epsilon, before anything is spent.

    With --unit user or rating from totals that may be known (--users, --items, --ratings), or from a file, which is not
    private. With --likes, or a file without a rating column: what lists would be worth.
    """
    from dpsr.pipeline.plan import Plan, plan_table
    from dpsr.pipeline.plan_people import plan_people
    from dpsr.types import Scale

    totals = (users, n_items, n_ratings)
    if _of_likes(likes, scale, ratings, NamedColumns(user, item, rating, weight, delimiter)):
        reading = None
        if ratings is not None:
            reading = LikesReading(ratings, user, item, weight, timestamp, delimiter, query)
        _plan_likes(reading, epsilon, unit or Unit.user, delta, totals, asked=likes, as_json=as_json)
        return
    assert scale is not None
    chosen = unit or Unit.value
    check_source(chosen, ratings, delta, totals)
    table, taken = None, ""
    if ratings is not None:
        of_ratings = Reading(ratings, scale, user, item, rating, timestamp, delimiter, duplicates, snap, query)
        table, taken = of_ratings.read(), of_ratings.taken
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


def _of_likes(likes: bool, scale: str | None, source: RatingsSource | None, named: NamedColumns) -> bool:
    """Whether interactions are planned; from totals alone only where they are asked for."""
    if source is not None:
        return reads_likes(likes, scale, source, named)
    if not likes and scale is None:
        raise ParameterError(
            "a plan of ratings needs their scale, LOW:HIGH:STEP as printed on the rating form (--scale 1:5:1); one of "
            "clicks, plays or purchases needs --likes."
        )
    return likes


def _plan_likes(
    reading: LikesReading | None,
    epsilon: str,
    unit: Unit,
    delta: float | None,
    totals: Totals,
    *,
    asked: bool,
    as_json: bool,
) -> None:
    from dpsr.pipeline.plan_likes import plan_likes

    check_source(unit, None if reading is None else reading.source, delta, totals, likes=True)
    table = None if reading is None else reading.read()
    report = plan_likes(epsilon, delta, unit=unit.value, likes=table, totals=totals)
    if as_json:
        typer.echo(json.dumps(report.to_dict(), indent=2))
        return
    if not asked:
        out.print(f"[yellow]{NO_RATINGS}[/yellow]")
    if reading is not None and table is not None:
        out.print(escape(f"{reading.source.name}: {len(table):,} interactions. {reading.taken}".rstrip()))
    _print_rows(report, ("lists", "popularity", "taste", "items asked", "no list"))
    out.print(NOTE_LIKES.format(source=FROM_FILE if report.raw else FROM_TOTALS))


def check_source(
    unit: Unit, ratings: RatingsSource | None, delta: float | None, totals: Totals, *, likes: bool = False
) -> None:
    """Values are planned from who rated what, which is public there; people from totals, or from a file."""
    given = any(total is not None for total in totals)
    if unit is Unit.value and ratings is None and not likes:
        raise ParameterError(
            "a plan at the unit value reads who rated what: name a file, or --unit user (or rating) and totals."
        )
    if unit is Unit.value and (delta is not None or given) and not likes:
        raise ParameterError("--delta, --users, --items and --ratings are for --unit user and rating: leave them out.")
    if ratings is not None and given:
        raise ParameterError("a plan is made from a file or from totals, not from both. Leave one of them out.")


def _show(report: Plan | PeoplePlan, *, values: bool) -> None:
    heads = ("constant", "unknowable", "too few ratings", "privacy") if values else ("own means", "factors", "people")
    _print_rows(report, ("RMSE", *heads))
    assumed = ASSUMED.format(spread=report.spread) if report.assumed else ""
    source = FROM_FILE if getattr(report, "raw", False) else FROM_TOTALS
    out.print((NOTE if values else NOTE_PEOPLE).format(assumed=assumed, source=source))


def _print_rows(report: Plan | PeoplePlan | LikesPlan, heads: tuple[str, ...]) -> None:
    shown = Table(title="What to expect", title_justify="left")
    for name in ("epsilon", *heads):
        shown.add_column(name, justify="right")
    for row in report.rows():
        shown.add_row(*row)
    out.print(shown)
