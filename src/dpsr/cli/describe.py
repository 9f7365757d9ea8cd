"""`dpsr describe`: the shape of a rating file, without its values."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from dpsr.cli.likes import NO_RATINGS, Likes, LikesReading, NamedColumns, Weight, has_no_rating
from dpsr.cli.reading import (
    Delimiter,
    Duplicates,
    Item,
    Query,
    Rating,
    RatingsFile,
    Reading,
    Timestamp,
    User,
    local_file,
)
from dpsr.cli.rows import Json
from dpsr.cli.terminal import out

if TYPE_CHECKING:
    from dpsr.data.shape import Shape

EXAMPLE = "Example: dpsr describe ratings.csv"

NOTE = (
    "No rating was looked at, but this is of raw data: for your eyes only until it is decided what is protected. A "
    "release at the unit value publishes users, items and counts, and times with --timestamps; a person with k ratings "
    "is protected there at k times epsilon as a whole. At rating and user a release has none of this."
)

NOTE_LIKES = (
    "[red]Read from raw interactions: not private, for your eyes only.[/red] Who did what is their secret, so a "
    "release has none of this: it protects people (--unit user) or single interactions (--unit rating)."
)

_KINDS = {"int64": "whole numbers", "string": "text"}


def describe(
    ratings: RatingsFile,
    user: User = None,
    item: Item = None,
    rating: Rating = None,
    weight: Weight = None,
    timestamp: Timestamp = None,
    delimiter: Delimiter = None,
    query: Query = None,
    likes: Likes = False,
    columns_only: Annotated[
        bool, typer.Option("--columns", help="Only the names of the columns, and which is taken for what.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Show the shape of a rating file (users, items, counts, times) without looking at a single rating.

    A file of interactions (--likes, or no rating column) is described, too, for the curator's eyes.
    """
    from dpsr.data.shape import describe_file, describe_query

    ratings.check(query)
    if columns_only:
        _print_columns(ratings.text, delimiter, as_json=as_json)
        return
    likes = likes or weight is not None
    if likes or has_no_rating(ratings, NamedColumns(user, item, rating, weight, delimiter)):
        rows = LikesReading(ratings, user, item, weight, timestamp, delimiter, query)
        _describe_likes(rows, asked=likes, as_json=as_json)
        return
    columns = {"user": user, "item": item, "rating": rating, "timestamp": timestamp}
    taken = ""
    if query is None:
        reading = Reading(ratings, "", user, item, rating, timestamp, delimiter, Duplicates.error, snap=False)
        with local_file(ratings) as path:
            taken = reading.columns_in(path)
            shape = describe_file(path, **columns, delimiter=delimiter)
    else:
        shape = describe_query(ratings.text, query, **columns)
    if as_json:
        typer.echo(json.dumps(shape.to_dict(), indent=2))
        return
    _print(shape, taken)


def _describe_likes(reading: LikesReading, *, asked: bool, as_json: bool) -> None:
    """The same of a file whose rows are interactions; how it was read is said first."""
    from dpsr.data.columns import INTERACTION_ROWS
    from dpsr.data.shape import describe_interactions, describe_query

    taken = ""
    if reading.query is not None:
        shape = describe_query(reading.source.text, reading.query, INTERACTION_ROWS, **reading.columns)
    else:
        with local_file(reading.source) as path:
            taken = reading.columns_in(path)
            shape = describe_interactions(path, **reading.columns, delimiter=reading.delimiter)
    if as_json:
        typer.echo(json.dumps(shape.to_dict(), indent=2))
        return
    if not asked:
        out.print(f"[yellow]{NO_RATINGS}[/yellow]")
    _print(shape, taken, likes=True)


def _print_columns(file: str, delimiter: str | None, *, as_json: bool) -> None:
    from dpsr.data.files.read import columns_in
    from dpsr.database import is_address
    from dpsr.errors import ParameterError
    from dpsr.quoting import for_terminal

    if file == "-" or is_address(file):
        raise ParameterError("--columns names the columns of a file, and there is none. Name them in the query.")
    found = columns_in(Path(file), delimiter=delimiter)
    if as_json:
        typer.echo(json.dumps(found.to_dict(), indent=2))
        return
    parts = {name: role for role, name in found.taken.items() if name is not None}
    for name in found.names:
        out.print(f"{for_terminal(name)}{f': {parts[name]}' if name in parts else ''}")


def _print(shape: Shape, taken: str, *, likes: bool = False) -> None:
    from rich.table import Table

    facts = Table(show_header=False, title=shape.source, title_justify="left")
    thing = "interactions" if likes else "ratings"
    for name, value in _facts(shape, likes=likes).items():
        facts.add_row(name, value)
    spread = Table(f"{thing} per", *shape.per_user, title="How they are spread", title_justify="left")
    spread.add_row("user", *(f"{count:,}" for count in shape.per_user.values()))
    spread.add_row("item", *(f"{count:,}" for count in shape.per_item.values()))
    out.print(facts)
    if taken:
        out.print(escape(taken))
    out.print(spread)
    out.print(NOTE_LIKES if likes else NOTE)


def _facts(shape: Shape, *, likes: bool = False) -> dict[str, str]:
    choice = " (their weights are added up)" if likes else " (choose with --duplicates first or last)"
    repeated = f"{shape.duplicates:,}" + (choice if shape.duplicates else "")
    times = "none found (--timestamp COLUMN)" if shape.first is None else f"{shape.first} to {shape.last} (UTC)"
    return {
        "users": f"{shape.n_users:,} (ids are {_KINDS.get(shape.ids['user'], shape.ids['user'])})",
        "items": f"{shape.n_items:,} (ids are {_KINDS.get(shape.ids['item'], shape.ids['item'])})",
        "interactions" if likes else "ratings": f"{shape.n_ratings:,}",
        "share of cells taken" if likes else "share of cells rated": f"{shape.density:.3%}",
        "rows that repeat a pair": repeated,
        "timestamps": times,
    }
