"""`dpsr verify`: recompute a release's promise and check every byte of its folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from dpsr.cli.ledger import LEDGER_HELP, Dataset
from dpsr.cli.terminal import out, verdict

EXAMPLE = "Example: dpsr verify release/"


def verify(
    release: Annotated[Path, typer.Argument(help="A release folder.")],
    allow_not_private: Annotated[
        bool, typer.Option("--allow-not-private", help="Accept a release that rightly calls itself NOT PRIVATE.")
    ] = False,
    ledger: Annotated[str | None, typer.Option(help=f"Require that it is recorded here: {LEDGER_HELP}")] = None,
    dataset: Dataset = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")] = False,
) -> None:
    """Recompute what a release promises from its own tables, and check every byte of its folder.

    Exit code 0: everything holds. 1: something does not, or the release is not private. 2: there is no release there.
    """
    from dpsr.release import verify as check
    from dpsr.release.verify import LIMIT

    result = check(release)
    if ledger is not None:
        from dpsr.pipeline.publish import recorded_in

        result = recorded_in(result, ledger, dataset)
    accepted = result.private or (allow_not_private and result.intact)
    if as_json:
        typer.echo(json.dumps({**result.to_dict(), "accepted": accepted}, indent=2))
        raise typer.Exit(not accepted)
    for words in result.holds:
        out.print(f"[green]holds[/green]  {escape(words)}", soft_wrap=True)
    for words in result.fails:
        out.print(f"[red]FAILS[/red]  {escape(words)}", soft_wrap=True)
    if result.fails:
        out.print(f"[red]Not verified[/red]: {len(result.fails)} of what should hold does not. Do not use this folder.")
    elif result.certificate is not None:
        word = "[green]Verified[/green]," if result.private else "Intact, its figures are true, and it is"
        out.print(f"{word} {verdict(result.certificate)}")
        out.print(f"SHA-256 of the certificate: {result.certificate_sha256}\n{LIMIT}", soft_wrap=True)
    raise typer.Exit(not accepted)
