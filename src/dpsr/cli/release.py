"""`dpsr release`: ratings in, release folder out, charged to a ledger."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from dpsr.cli.interrupts import InterruptedByHandError, interrupted, once_is_enough, too_late
from dpsr.cli.keys import open_key
from dpsr.cli.ledger import LEDGER_HELP, Dataset
from dpsr.cli.likes import NO_RATINGS, Likes, LikesReading, NamedColumns, Weight, reads_likes, said
from dpsr.cli.reading import (
    Delimiter,
    Duplicates,
    Item,
    Items,
    OnDuplicates,
    OptionalScale,
    Query,
    Rating,
    RatingsFile,
    RatingsSource,
    Reading,
    Snap,
    Timestamp,
    User,
)
from dpsr.cli.release_messages import preview, record, report
from dpsr.cli.terminal import err, out, showing_stages
from dpsr.cli.units import DeltaOption, MadeUpOption, PeopleOption, Unit, UnitOption, check_people, chosen_unit

if TYPE_CHECKING:
    from dpsr.pipeline.account import Account
    from dpsr.pipeline.publish import RawRows
    from dpsr.privacy.vault.journal import Journal

EXAMPLE = "Example: dpsr release ratings.csv --scale 1:5:1 --epsilon 1 --out release/ --ledger ledger.db --yes"


class Engine(StrEnum):
    """Where the ratings are kept while a release is made."""

    memory = "memory"
    disk = "disk"
    spark = "spark"


class Method(StrEnum):
    """Which pipeline makes the release."""

    default = "default"
    paper = "paper"
    published = "as-published"


def release(
    ratings: RatingsFile,
    epsilon: Annotated[float, typer.Option(help="Privacy budget; smaller is more private.")],
    out_dir: Annotated[Path, typer.Option("--out", help="Folder to write; it appears whole or not at all.")],
    scale: OptionalScale = None,
    likes: Likes = False,
    unit: UnitOption = None,
    delta: DeltaOption = None,
    users: PeopleOption = None,
    people: MadeUpOption = None,
    ledger: Annotated[
        str | None, typer.Option(envvar="DPSR_LEDGER", help=f"Charge the budget kept here first: {LEDGER_HELP}")
    ] = None,
    dataset: Dataset = None,
    same_data: Annotated[
        bool, typer.Option("--same-data", help="The same ratings may be charged to more than one data set.")
    ] = False,
    another_file: Annotated[
        bool, typer.Option("--another-file", help="The data set may have grown or changed since its last charge.")
    ] = False,
    note: Annotated[str, typer.Option(help="A line for the ledger's history, such as what the release is for.")] = "",
    items: Items = None,
    method: Annotated[
        Method, typer.Option(help="Pipeline: ours, the paper's (repaired), or exactly as published.")
    ] = Method.default,
    user: User = None,
    item: Item = None,
    rating: Rating = None,
    weight: Weight = None,
    timestamp: Timestamp = None,
    timestamps: Annotated[
        bool, typer.Option("--timestamps", help="Release when each rating was given, exactly. Left out otherwise.")
    ] = False,
    delimiter: Delimiter = None,
    duplicates: OnDuplicates = Duplicates.error,
    snap: Snap = False,
    query: Query = None,
    engine: Annotated[
        Engine, typer.Option(help="Where the ratings are kept meanwhile: in memory, in blocks on disk, or on Spark.")
    ] = Engine.memory,
    memory: Annotated[
        str | None, typer.Option(help="With --engine disk: how much memory may be used; 2GB unless told.")
    ] = None,
    work: Annotated[
        Path | None, typer.Option(help="With --engine disk: the folder for blocks; a killed run goes on from it.")
    ] = None,
    sign: Annotated[
        Path | None, typer.Option(metavar="KEY", help="Sign the release with this private key (dpsr keys new).")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing release folder.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before spending the budget.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for scripts; needs --yes.")] = False,
) -> None:
    """Turn ratings into a private release: a table or an item side, a model and a certificate.

    With --unit rating or user the release knows nobody: serve people with dpsr personalise.
    """
    account, shown = None, err if as_json else out
    try:
        from dpsr.data.files.catalogue import read_catalogue
        from dpsr.engine.work_folder import left_behind
        from dpsr.errors import ReleaseError
        from dpsr.pipeline.account import Account
        from dpsr.pipeline.dpsr import build
        from dpsr.pipeline.estimator import check_timed
        from dpsr.pipeline.likes import check_likes
        from dpsr.pipeline.made_up import check_made_up
        from dpsr.pipeline.publish import census_of, check_order, check_table, publish
        from dpsr.privacy.vault.journal import noted_charge

        check_asking(as_json, yes, ratings)
        check_engine(engine, memory, work)
        signer = None if sign is None else open_key(sign)
        catalogue = None if items is None else read_catalogue(items, also=item)
        rows = reads_likes(likes, scale, ratings, NamedColumns(user, item, rating, weight, delimiter))
        check_method(method, unit, delta, likes=rows)
        if rows:
            protects = Unit.user if unit is None else unit
            check_likes(protects.value, epsilon, delta)
        else:
            protects = chosen_unit(unit, ask=not yes, shown=shown) if method is Method.default else Unit.value
        check_people(protects, delta, users)
        check_made_up(protects.value, people)
        estimator = build(method.value, epsilon, unit=protects.value, delta=delta, items=catalogue)
        estimator.check()
        account = None
        if ledger is None:  # typer passes over an empty variable
            ledger = os.environ.get("DPSR_LEDGER")
        resumes = None if work is None else noted_charge(work)
        if ledger is None and resumes is not None:
            raise ReleaseError(
                "this working folder goes on from a run that was charged to a ledger, and what it releases is recorded "
                "there. Nothing was read. Give the same --ledger, or an empty folder with --work to begin anew."
            )
        if ledger is not None:  # an empty one is a variable nobody set, and no wish to go uncharged
            account = Account.open(ledger, dataset, epsilon, note, unit=protects, delta=delta, resumes=resumes)
        try:
            check_order(estimator, out_dir, account=account, overwrite=force, signer=signer)
        except ReleaseError as error:
            left = ""
            if work is not None:
                released = account is not None and account.is_released(noted_charge(work), out_dir)
                left = left_behind(work, released=released)
            raise ReleaseError(f"{error} {left}".rstrip()) from error
        when = timestamp if timestamps else ""
        reading: Reading | LikesReading = LikesReading(ratings, user, item, weight, "", delimiter, query)
        if not rows:
            reading = Reading(ratings, scale or "", user, item, rating, when, delimiter, duplicates, snap, query)
        elif not likes:
            shown.print(f"[yellow]{NO_RATINGS}[/yellow]")
        with gathered(reading, engine, estimator, out_dir, "2GB" if memory is None else memory, work) as (
            table,
            journal,
        ):
            check_table(table, out_dir)
            if timestamps:
                check_timed(census_of(table), protects.value)
            if account is not None and protects is Unit.value:
                account = resolve_mismatch(account, table, same_data, another_file, ask=not yes)
            taken = said(reading.taken, getattr(table, "notes", ())) if engine is not Engine.memory else reading.taken
            shown.print(preview(ratings.name, taken, table, estimator, account))
            if not yes:
                agree()
            with showing_stages():
                done = publish(
                    table,
                    estimator,
                    out_dir,
                    account=account,
                    overwrite=force,
                    journal=journal,
                    signer=signer,
                    last_call=too_late,
                    catalogue=catalogue,
                    people=people,
                )
    except BaseException as error:
        if not interrupted(error):
            raise
        once_is_enough()
        kept = account is not None and work is not None and noted_charge(work) == account.charge_id
        spent = "nothing was spent." if account is None else account.spent(kept=kept)
        raise InterruptedByHandError(f"interrupted; nothing was written; {spent}") from None
    if as_json:
        typer.echo(json.dumps(record(done, account), indent=2))
    else:
        out.print(report(done, account))


@contextmanager
def gathered(
    reading: Reading | LikesReading, engine: Engine, estimator: Any, beside: Path, memory: str, work: Path | None
) -> Iterator[tuple[RawRows, Journal | None]]:
    """The ratings where they are to be kept, and the answers of a run that was killed, if this one resumes it."""
    if engine is Engine.memory:
        yield reading.read(), None
        return
    from dpsr.pipeline.out_of_core import bytes_of, large_table
    from dpsr.types import Scale

    options: dict[str, Any] = {**reading.columns, "delimiter": reading.delimiter}
    scale, path = None, reading.file
    if isinstance(reading, Reading):
        options["duplicates"] = reading.duplicates.value
        scale = Scale.parse(reading.scale, snap=reading.snap)
    with showing_stages(), ExitStack() as stack:
        opened = large_table(
            engine.value, path, beside, estimator, scale=scale, memory=bytes_of(memory), work=work, **options
        )
        found = stack.enter_context(opened)
        keep = stack.pop_all()
    with keep:
        yield found


def check_method(method: Method, unit: Unit | None, delta: float | None, *, likes: bool = False) -> None:
    """The paper protects values, and nothing else."""
    from dpsr.errors import ParameterError

    if method is not Method.default and likes:
        raise ParameterError("the paper's pipelines need ratings; these are interactions. Use --method default.")

    if method is not Method.default and (unit not in (None, Unit.value) or delta is not None):
        raise ParameterError(
            "the paper's pipelines protect the value of a rating: --unit rating, --unit user and --delta are for "
            "--method default."
        )


def check_engine(engine: Engine, memory: str | None, work: Path | None) -> None:
    """Options that only one engine reads are not passed over in silence by the others."""
    from dpsr.errors import ParameterError

    if engine is not Engine.disk and (memory is not None or work is not None):
        raise ParameterError("--memory and --work are for ratings kept on disk. Add --engine disk, or leave them out.")


def check_asking(as_json: bool, yes: bool, ratings: RatingsSource) -> None:
    """A script cannot be asked."""
    from dpsr.errors import ParameterError

    if ratings.is_stdin and not yes:
        raise ParameterError("the ratings come where an answer would come from: agree beforehand with --yes.")

    if as_json and not yes:
        raise ParameterError(
            "--json prints JSON and asks nothing, so the budget must be agreed to beforehand: add --yes."
        )


def resolve_mismatch(account: Account, table: RawRows, same: bool, another: bool, *, ask: bool) -> Account:
    """The account with an answer for ratings that do not fit their name: by option, or by a person if one may ask."""
    from dpsr.pipeline.account import fingerprint_of
    from dpsr.pipeline.publish import census_of

    account, found = replace(account, same_data=same, another_file=another), fingerprint_of(census_of(table))
    while ask and (mismatch := account.mismatch(found)) is not None:
        out.print(f"[yellow]Careful[/yellow]: {escape(mismatch.words)}")
        agree("Go on all the same?")
        account = account.accepting(mismatch)
    account.check(found)
    return account


def agree(question: str = "Spend this budget and write the release?") -> None:
    """Ask before anything is spent; no is exit code 1."""
    out.print(f"{question} [bold]\\[y/N][/bold] ", end="")
    try:
        answer = input()
    except EOFError:
        answer = ""
        out.print()
    if answer.strip().lower() not in ("y", "yes"):
        out.print("Nothing was spent and nothing was written.")
        raise typer.Exit(1)
