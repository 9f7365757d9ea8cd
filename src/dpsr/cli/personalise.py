"""`dpsr personalise`: everybody's lists or predictions from their own ratings and a release."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from dpsr.cli.likes import LikesReading, Weight
from dpsr.cli.reading import (
    Delimiter,
    Duplicates,
    Item,
    OnDuplicates,
    Query,
    Rating,
    RatingsFile,
    Reading,
    Snap,
    Timestamp,
    User,
)
from dpsr.cli.release_folder import ReleaseFolder, open_any_release
from dpsr.cli.terminal import err, out, showing_stages
from dpsr.errors import ScaleError
from dpsr.quoting import for_terminal

if TYPE_CHECKING:
    from dpsr import Ratings
    from dpsr.release.personalise.personal_answers import PersonalAnswers

    Personal: TypeAlias = PersonalAnswers[Any]

EXAMPLE = "Example: dpsr personalise release/ ratings.csv --out lists.parquet"


def personalise(
    release: ReleaseFolder,
    ratings: RatingsFile,
    out_file: Annotated[Path, typer.Option("--out", help="File to write, .parquet: user, rank, item, score.")],
    n: Annotated[int, typer.Option("-n", "--n", "--number", help="Items in a list.")] = 10,
    pairs: Annotated[
        Path | None,
        typer.Option(
            "--predict",
            help="Predict the pairs of this file (user, item, or called as in the ratings) instead of making lists.",
        ),
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
    block: Annotated[int | None, typer.Option(min=1, help="People at a time; bounds memory, changes no list.")] = None,
    new_people: Annotated[
        bool,
        typer.Option("--new-people", help="They were not in the data of this release (of units rating and user)."),
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
) -> None:
    """Write everybody's list from their own raw ratings and a release: each for its own person, for nobody else."""
    import pyarrow.parquet as pq

    from dpsr.pipeline.dpsr import say_compiling
    from dpsr.release.likes import LikesRelease
    from dpsr.release.lists.single import why_empty
    from dpsr.release.people import check_takes_new_people
    from dpsr.release.personalise import kernels
    from dpsr.release.personalise.files import check_file, write_personal_predictions

    check_file(out_file, overwrite=force)
    loaded = open_any_release(release)
    if new_people:
        check_takes_new_people(loaded)
    if isinstance(loaded, LikesRelease):
        likes = LikesReading(ratings, user, item, weight, timestamp, delimiter, query)
        personal: Personal = loaded.personalise(likes.read(), block=block)
        taken = likes.taken
    else:
        scale, named = loaded.scale, (user, item, rating, timestamp, delimiter)
        reading = Reading(ratings, str(scale), *named, duplicates, snap or scale.snap, query)
        how = {"new_people": True} if new_people else {}
        personal = loaded.personalise(_read(reading), block=block, **how)
        taken = reading.taken
    if taken:
        out.print(for_terminal(taken, 1_000))
    if loaded.certificate.unit == "value":
        with showing_stages():
            say_compiling(kernels)
    if pairs is None:
        _write_lists(personal, out_file, n, force)
        out.print(f"Lists of {personal.n_people:,} people written to [bold]{for_terminal(out_file, 400)}[/bold].")
        if pq.read_metadata(out_file).num_rows == 0:
            out.print(f"[yellow]{why_empty(loaded)}[/yellow]")
    else:
        from dpsr.data.files.pairs import read_pairs

        total = write_personal_predictions(personal, read_pairs(pairs, also=(user, item)), out_file, overwrite=force)
        out.print(f"{total:,} predictions written to [bold]{for_terminal(out_file, 400)}[/bold].")
    _say(personal)


def _read(reading: Reading) -> Ratings:
    """People's own ratings; where one is off the scale, it is said whose scale that is."""
    try:
        return reading.read()
    except ScaleError as error:
        raise ScaleError(f"{error} Here the scale is the release's, {reading.scale}.") from None


def _write_lists(personal: Personal, out_file: Path, n: int, force: bool) -> None:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as bar:
        task = bar.add_task("people", total=personal.n_people)
        personal.save(out_file, n, overwrite=force, progress=lambda done, _: bar.update(task, completed=done))


def _say(personal: Personal) -> None:
    """For whom it is, and what was left out; numbers are for the curator's eyes."""
    for note in personal.notes:
        out.print(note)
    out.print(for_terminal(personal.statement, 1_000))
