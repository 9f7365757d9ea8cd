"""`dpsr release`: ratings in, release folder out, charged to a ledger."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from dpsr.cli.interrupts import InterruptedByHandError, too_late
from dpsr.cli.ledger import LEDGER_HELP, Dataset
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
from dpsr.cli.stages import showing_stages
from dpsr.cli.terminal import err, out, promise, verdict

if TYPE_CHECKING:
    from dpsr.pipeline.curate import Account, Curated
    from dpsr.types.raw import RawRatings

EXAMPLE = "Example: dpsr release ratings.csv --scale 1:5:1 --epsilon 1 --out release/ --ledger ledger.db --yes"

NO_LEDGER = (
    "No ledger: nobody adds this up with other releases of the same ratings. To keep count: dpsr ledger init --help."
)


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
    ledger: Annotated[
        str | None, typer.Option(envvar="DPSR_LEDGER", help=f"Charge the budget kept here first: {LEDGER_HELP}")
    ] = None,
    dataset: Dataset = None,
    note: Annotated[str, typer.Option(help="A line for the ledger's history, such as what the release is for.")] = "",
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
    query: Query = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing release folder.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before spending the budget.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for scripts; needs --yes.")] = False,
) -> None:
    """Turn ratings into a private release: a rating table, a model and a certificate."""
    account, shown = None, err if as_json else out
    try:
        from dpsr.pipeline.curate import Account, check_order, check_space, curate
        from dpsr.pipeline.methods import build

        check_asking(as_json, yes)
        estimator = build(method.value, epsilon)
        account = Account.open(ledger, dataset, epsilon, note) if ledger else None
        check_order(estimator, out_dir, account=account, overwrite=force)
        reading = Reading(ratings, scale, user, item, rating, timestamp, delimiter, duplicates, snap, query)
        table = reading.read()
        check_space(table, out_dir)
        shown.print(preview(ratings.name, table, epsilon, account))
        if not yes:
            agree()
        with showing_stages():
            done = curate(table, estimator, out_dir, account=account, overwrite=force, last_call=too_late)
    except KeyboardInterrupt:
        spent = "nothing was spent." if account is None else account.spent()
        raise InterruptedByHandError(f"interrupted; nothing was written; {spent}") from None
    if as_json:
        typer.echo(json.dumps(record(done, account), indent=2))
    else:
        out.print(report(done, account))


def check_asking(as_json: bool, yes: bool) -> None:
    """A script cannot be asked."""
    from dpsr.errors import ParameterError

    if as_json and not yes:
        raise ParameterError(
            "--json prints JSON and asks nothing, so the budget must be agreed to beforehand: add --yes."
        )


def preview(name: str, table: RawRatings, epsilon: float, account: Account | None) -> str:
    """What is there, what is promised, and what it will cost, before anything is spent."""
    counts = f"{len(table):,} ratings, {table.mask.n_users:,} users, {table.mask.n_items:,} items."
    return "\n".join([f"{escape(name)}: {counts}", promise(epsilon), NO_LEDGER if account is None else price(account)])


def price(account: Account) -> str:
    """What the ledger has, and will have."""
    from dpsr.privacy.amounts import written_down

    budget = account.budget
    after = written_down(budget.left_epsilon - account.price)
    return (
        f"Charges [bold]{escape(account.dataset)}[/bold] in {escape(str(account.ledger))}: epsilon = "
        f"{written_down(budget.left_epsilon)} is left of {written_down(budget.epsilon)}, {after} will be. "
        "A charge is never refunded."
    )


def agree() -> None:
    """Ask before anything is spent; no is exit code 1."""
    out.print("Spend this budget and write the release? [bold]\\[y/N][/bold] ", end="")
    try:
        answer = input()
    except EOFError:
        answer = ""
        out.print()
    if answer.strip().lower() not in ("y", "yes"):
        out.print("Nothing was spent and nothing was written.")
        raise typer.Exit(1)


def report(done: Curated, account: Account | None) -> str:
    """What it cost, and where it is."""
    from dpsr.privacy.amounts import written_down

    lines = [verdict(done.certificate)]
    if account is not None and done.budget is not None:
        left, total = written_down(done.budget.left_epsilon), written_down(done.budget.epsilon)
        lines.append(f"The ledger has epsilon = {left} left of {total} for {escape(account.dataset)}.")
    lines.append(f"Release written to [bold]{escape(str(done.folder))}[/bold]: ratings.parquet is the table to share.")
    return "\n".join(lines)


def record(done: Curated, account: Account | None) -> dict[str, Any]:
    """The same for scripts."""
    from dpsr.cli.ledger import budget_record

    certificate = done.certificate
    return {
        "folder": str(done.folder),
        "private": certificate.private,
        "reasons": list(certificate.reasons),
        "epsilon": certificate.epsilon,
        "delta": certificate.delta,
        "nominal": certificate.nominal,
        "public": certificate.public,
        "charge": None if account is None else account.charge_id,
        "budget": None if done.budget is None else budget_record(done.budget),
    }
