"""`dpsr release`: ratings in, release folder out."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from dpsr.cli.terminal import out, promise, verdict

EXAMPLE = "Example: dpsr release ratings.csv --scale 1:5:1 --epsilon 1 --out release/ --yes"


class Method(StrEnum):
    """Which pipeline makes the release."""

    paper = "paper"
    published = "as-published"


class Duplicates(StrEnum):
    """What to do when a user rated an item twice."""

    error = "error"
    first = "first"
    last = "last"


def release(
    ratings: Annotated[Path, typer.Argument(help="CSV, TSV, Parquet or a MovieLens file (u.data, ratings.dat).")],
    scale: Annotated[str, typer.Option(help="The rating scale, LOW:HIGH:STEP, as printed on the rating form.")],
    epsilon: Annotated[float, typer.Option(help="Privacy budget per rating; smaller is more private.")],
    out_dir: Annotated[Path, typer.Option("--out", help="Folder to write; it appears whole or not at all.")],
    method: Annotated[
        Method, typer.Option(help="Pipeline: the paper's (repaired), or exactly as published.")
    ] = Method.paper,
    user: Annotated[str | None, typer.Option(help="Name of the user column, if it is not found.")] = None,
    item: Annotated[str | None, typer.Option(help="Name of the item column, if it is not found.")] = None,
    rating: Annotated[str | None, typer.Option(help="Name of the rating column, if it is not found.")] = None,
    timestamp: Annotated[str | None, typer.Option(help="Name of the timestamp column, if it is not found.")] = None,
    delimiter: Annotated[str | None, typer.Option(help="Field separator of a text file, if it is not found.")] = None,
    duplicates: Annotated[Duplicates, typer.Option(help="A (user, item) pair rated twice.")] = Duplicates.error,
    snap: Annotated[bool, typer.Option("--snap", help="Put continuous ratings on the scale's grid.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing release folder.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before spending the budget.")] = False,
) -> None:
    """Turn ratings into a private release: a rating table, a model and a certificate."""
    from dpsr import DPSR, Ratings, Scale
    from dpsr.privacy.mechanisms import check_epsilon
    from dpsr.release import check_target

    check_epsilon(epsilon)
    check_target(out_dir, overwrite=force)
    table = Ratings.read(
        ratings,
        scale=Scale.parse(scale, snap=snap),
        user=user,
        item=item,
        rating=rating,
        timestamp=timestamp,
        delimiter=delimiter,
        duplicates=duplicates.value,
    )
    out.print(f"{ratings.name}: {len(table):,} ratings, {table.mask.n_users:,} users, {table.mask.n_items:,} items.")
    out.print(promise(epsilon))
    if not yes:
        typer.confirm("Spend this budget and write the release?", abort=True)
    with out.status("Adding noise, denoising, completing ..."):
        model = DPSR.paper(epsilon, as_published=method is Method.published).fit(table)
        folder = model.save(out_dir, overwrite=force)
    out.print(verdict(model.certificate))
    out.print(f"Release written to [bold]{folder}[/bold]: ratings.parquet is the table to share.")
