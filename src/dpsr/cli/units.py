"""The unit of protection on the command line: one vocabulary, asked for where nobody named it."""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import Annotated

import typer
from rich.console import Console

from dpsr.cli.terminal import out


class Unit(StrEnum):
    """What is protected."""

    value = "value"
    rating = "rating"
    user = "user"


SENTENCES = {
    Unit.value: "how much somebody liked something; who rated what is public, and the release has a row for each",
    Unit.rating: "that a rating exists; the release has what is known about items, and nobody in it",
    Unit.user: "every person with all their ratings; the release has what is known about items, and nobody in it",
}

UnitOption = Annotated[
    Unit | None,
    typer.Option(
        "--unit", help="What is protected: value (of every rating), rating (that it exists), or user (whole people)."
    ),
]
DeltaOption = Annotated[
    float | None,
    typer.Option(help="For --unit rating or user: as if with this chance nothing were promised, such as 1e-6."),
]
PeopleOption = Annotated[
    int | None,
    typer.Option("--users", min=1, help="For --unit rating or user: about how many people, if that is public."),
]


MadeUpOption = Annotated[
    int | None,
    typer.Option(
        "--people",
        min=0,
        help="For --unit rating or user: made-up people in the release; about as many as there are unless told.",
    ),
]


def chosen_unit(unit: Unit | None, *, ask: bool, shown: Console) -> Unit:
    """The unit that was named; a person at a terminal is asked, a script gets `value` and is told so where it looks."""
    if unit is not None:
        return unit
    if not (ask and sys.stdin.isatty() and out.is_terminal):
        shown.print("[yellow]No --unit was named: value[/yellow], so who rated what is public. Others: rating, user.")
        return Unit.value
    out.print("What is to be protected?")
    for one, words in SENTENCES.items():
        out.print(f"  [bold]{one.value:7}[/bold] {words}")
    while True:
        out.print("Unit [bold]\\[value/rating/user][/bold]: ", end="")
        try:
            answer = input().strip().lower()
        except EOFError:
            out.print()
            raise typer.Exit(1) from None
        if answer in set(Unit):
            return Unit(answer)


def check_people(unit: Unit, delta: float | None, users: int | None) -> None:
    """Refuse a delta that a single person could hide in, before anything is spent."""
    from dpsr.errors import ParameterError, PrivacyError

    if unit is Unit.value and users is not None:
        raise ParameterError("--users is for --unit rating or user, whose delta it is compared with: leave it out.")
    if unit is not Unit.value and delta is not None and users is not None and delta * users >= 1:
        raise PrivacyError(
            f"delta must be below one over the number of people, 1 / {users:,}, found {delta:g}: with a larger one a "
            "release could give somebody away and still keep its promise. Use a smaller one, such as "
            f"{0.1 / users:.0e}."
        )
