"""`dpsr card`: the card of a release folder, drawn again, and its plots as pictures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from dpsr.cli.rows import Json
from dpsr.cli.terminal import out
from dpsr.quoting import for_terminal

EXAMPLE = "Example: dpsr card release/ --out card.html --plots plots/"


def card(
    release: Annotated[Path, typer.Argument(help="A release folder.")],
    out_file: Annotated[Path, typer.Option("--out", help="HTML file to write.")] = Path("card.html"),
    plots: Annotated[
        Path | None, typer.Option(help="Folder for the plots as SVG and PNG, each with its numbers as CSV.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace files that exist.")] = False,
    as_json: Json = False,
) -> None:
    """Draw the card of a release again, and its plots as pictures beside their data."""
    from dpsr.pipeline.cards import redraw

    written = redraw(release, out_file, plots, overwrite=force)
    if as_json:
        typer.echo(json.dumps({"card": str(written[0]), "plots": [str(path) for path in written[1:]]}))
        return
    out.print(f"Card written to [bold]{for_terminal(written[0], 400)}[/bold]; open it in any browser.", soft_wrap=True)
    if plots is not None:
        out.print(
            f"{len(written) - 1} files in [bold]{for_terminal(plots, 400)}[/bold]: SVG, PNG and CSV of each plot.",
            soft_wrap=True,
        )
