"""`dpsr release`: ratings in, release folder out."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from dpsr.cli.reading import (
    Delimiter,
    Duplicates,
    Item,
    OnDuplicates,
    Rating,
    RatingsFile,
    Reading,
    ScaleText,
    Snap,
    Timestamp,
    User,
)
from dpsr.cli.terminal import out, promise, verdict

EXAMPLE = "Example: dpsr release ratings.csv --scale 1:5:1 --epsilon 1 --out release/ --yes"


class Method(StrEnum):
    """Which pipeline makes the release."""

    default = "default"
    paper = "paper"
    published = "as-published"


def release(
    ratings: RatingsFile,
    scale: ScaleText,
    epsilon: Annotated[float, typer.Option(help="Privacy budget per rating; smaller is more private.")],
    out_dir: Annotated[Path, typer.Option("--out", help="Folder to write; it appears whole or not at all.")],
    method: Annotated[
        Method, typer.Option(help="Pipeline: ours, the paper's (repaired), or exactly as published.")
    ] = Method.default,
    user: User = None,
    item: Item = None,
    rating: Rating = None,
    timestamp: Timestamp = None,
    delimiter: Delimiter = None,
    duplicates: OnDuplicates = Duplicates.error,
    snap: Snap = False,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing release folder.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before spending the budget.")] = False,
) -> None:
    """Turn ratings into a private release: a rating table, a model and a certificate."""
    from dpsr.pipeline.methods import build
    from dpsr.privacy.mechanisms import check_epsilon
    from dpsr.release import check_target

    check_epsilon(epsilon)
    check_target(out_dir, overwrite=force)
    table = Reading(ratings, scale, user, item, rating, timestamp, delimiter, duplicates, snap).read()
    out.print(f"{ratings.name}: {len(table):,} ratings, {table.mask.n_users:,} users, {table.mask.n_items:,} items.")
    out.print(promise(epsilon))
    if not yes:
        typer.confirm("Spend this budget and write the release?", abort=True)
    with out.status("Adding noise, denoising, completing ..."):
        model = build(method.value, epsilon).fit(table)
        folder = model.save(out_dir, overwrite=force)
    out.print(verdict(model.certificate))
    out.print(f"Release written to [bold]{folder}[/bold]: ratings.parquet is the table to share.")
