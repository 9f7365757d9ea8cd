"""`dpsr verify`: recompute a release's promise and check every byte of its folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpsr.cli.ledger import LEDGER_HELP, Dataset
from dpsr.cli.rows import Json
from dpsr.cli.terminal import line, out, receipt
from dpsr.cli.units import Unit

if TYPE_CHECKING:
    from dpsr.release import Verification

EXAMPLE = "Example: dpsr verify release/ --signer officer.pub"


def verify(
    release: Annotated[Path, typer.Argument(help="A release folder.")],
    allow_not_private: Annotated[
        bool, typer.Option("--allow-not-private", help="Accept a release that rightly calls itself NOT PRIVATE.")
    ] = False,
    ledger: Annotated[str | None, typer.Option(help=f"Require that it is recorded here: {LEDGER_HELP}")] = None,
    dataset: Dataset = None,
    signer: Annotated[
        Path | None, typer.Option(metavar="PUBKEY", help="Require a valid signature by this public key.")
    ] = None,
    unit: Annotated[
        Unit | None, typer.Option(help="Require that this is protected: a value, that a rating exists, a person.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Recompute what a release promises from its own tables, and check every byte of its folder.

    Exit code 0: everything holds. 1: something does not, or the release is not private. 2: there is no release there.
    """
    from dpsr.certify.signature import read_public_key
    from dpsr.pipeline.verification import verify_release

    key = None if signer is None else read_public_key(signer)
    result = verify_release(release, ledger=ledger, dataset=dataset, signer=key, unit=unit)
    accepted = result.private or (allow_not_private and result.intact)
    if as_json:
        typer.echo(json.dumps({**result.to_dict(), "accepted": accepted}, indent=2))
    else:
        _show(result)
    raise typer.Exit(not accepted)


def _show(result: Verification) -> None:
    for words in result.holds:
        line("holds", "green", words)
    for words in result.notes:
        line("note", "yellow", words)
    for words in result.fails:
        line("FAILS", "red", words)
    if result.fails:
        out.print(f"[red]Not verified[/red]: {len(result.fails)} of what should hold does not. Do not use this folder.")
    elif result.certificate is not None:
        word = "[green]Verified[/green]," if result.private else "Intact, its figures are true, and it is"
        out.print(f"{word} {receipt(result.certificate)}")
        out.print(f"SHA-256 of the manifest: {result.manifest_sha256}\n{result.limit}", soft_wrap=True)
