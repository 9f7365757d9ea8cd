"""`dpsr audit`: what can be found out at least, beside what is promised at most."""

from __future__ import annotations

import json
from pathlib import Path
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
    Snap,
    Timestamp,
    User,
)
from dpsr.cli.release import Method
from dpsr.cli.rows import Json
from dpsr.cli.terminal import err, out
from dpsr.cli.units import DeltaOption, Unit, UnitOption

if TYPE_CHECKING:
    from dpsr.audit import AuditReport

EXAMPLE = "Example: dpsr audit --scale 1:5:1 --epsilon 0.1 --method as-published"

MEANING = (
    "Claim: epsilon is at most this. Found: it is at least this, all lines together at {confidence:.0%} confidence. "
    "Found above claim refutes it; found below claim proves nothing by itself, the certificate does."
)


def audit(
    source: Annotated[
        RatingsSource | None,
        typer.Argument(
            parser=RatingsSource,
            help="A ratings file, a database with --query, or a release folder; without it ratings are made up.",
        ),
    ] = None,
    scale: Annotated[str | None, typer.Option(help="The rating scale, LOW:HIGH:STEP.")] = None,
    epsilon: Annotated[float | None, typer.Option(help="The epsilon claimed, for one unit.")] = None,
    unit: UnitOption = None,
    likes: Annotated[
        bool, typer.Option("--likes", help="Audit releases of interactions: canary people who do not rate.")
    ] = False,
    delta: DeltaOption = None,
    method: Annotated[Method, typer.Option(help="Pipeline to audit.")] = Method.default,
    demo: Annotated[bool, typer.Option("--demo", help="Audit on the embedded sample, at epsilon = 1.")] = False,
    planted: Annotated[
        bool, typer.Option("--planted", help="Audit mechanisms with planted errors: each is to be rejected.")
    ] = False,
    seed: Annotated[int | None, typer.Option(help="Repeatable randomness, for experiments.")] = None,
    user: User = None,
    item: Item = None,
    rating: Rating = None,
    timestamp: Timestamp = None,
    delimiter: Delimiter = None,
    duplicates: OnDuplicates = Duplicates.error,
    snap: Snap = False,
    query: Query = None,
    as_json: Json = False,
) -> None:
    """Bound epsilon from below by attacking: Stage 1 over all pairs of levels, the whole pipeline by canaries.

    With --unit user or rating: canary people who are there or not, question by question and in one run; with
    --likes the same where nobody rates.

    Exit code 0: no claim is refuted. 1: a claim is refuted (with --planted: an error was overlooked). 2: bad input.
    """
    from dpsr.audit import AuditRequest
    from dpsr.release import load_release
    from dpsr.types import Scale

    folder = Path(source.text) if source is not None and not source.is_database else None
    folder = folder if folder is not None and folder.is_dir() else None
    ratings = None
    if source is not None and folder is None and scale is not None:
        named = (user, item, rating, timestamp, delimiter)
        ratings = Reading(source, scale, *named, duplicates, snap, query).read()
    request = AuditRequest(
        method=method.value,
        scale=Scale.parse(scale, snap=snap) if scale else None,
        epsilon=epsilon,
        release=None if folder is None else load_release(folder),
        ratings=ratings,
        demo=demo,
        planted=planted,
        seed=seed,
        unit=(unit or (Unit.user if likes else Unit.value)).value,
        delta=delta,
        likes=likes,
    )
    with err.status("Auditing ...") as status:
        report = request.answer(lambda what: status.update(f"Auditing: {escape(what)} ..."))
    if as_json:
        typer.echo(json.dumps(report.to_dict(), indent=2))
    else:
        _show(report)
    raise typer.Exit(report.overlooked if planted else report.rejected)


def _show(report: AuditReport) -> None:
    from dpsr.audit.findings import CURATOR_ONLY

    shown = Table("what was attacked", title=escape(report.subject), title_justify="left")
    for name in ("claim", "found", "trials"):
        shown.add_column(name, justify="right")
    shown.add_column("verdict")
    for finding in report.findings:
        verdict = "[red]REJECTED[/red]" if finding.rejected else "not rejected"
        numbers = (f"{finding.claimed:.4f}", f"{finding.lower:.4f}", f"{finding.trials:,}")
        shown.add_row(escape(finding.what), *numbers, verdict)
    out.print(shown)
    out.print(MEANING.format(confidence=report.confidence))
    if report.curator_only:
        out.print(f"[red]{CURATOR_ONLY}[/red]")
