"""`dpsr doctor`: is this machine fit for releasing ratings?"""

from __future__ import annotations

import json

import typer

from dpsr.cli.rows import Json, clean
from dpsr.cli.terminal import out

EXAMPLE = "Example: dpsr doctor --json"

COLOURS = {"ok": "green", "absent": "dim", "warning": "yellow", "broken": "bold red"}


def doctor(as_json: Json = False) -> None:
    """Check versions, threads, disk, the system's randomness and the sampler; exit 1 if something is broken."""
    from rich.table import Table

    from dpsr.doctor import examine

    found = examine()
    if as_json:
        typer.echo(json.dumps(found.to_dict(), indent=2))
        raise typer.Exit(0 if found.healthy else 1)
    shown = Table("", "what", "", "detail", show_lines=False)
    for check in found.checks:
        shown.add_row(check.area, clean(check.name), f"[{COLOURS[check.status]}]{check.status}[/]", clean(check.detail))
    out.print(shown)
    out.print("[green]Nothing is broken.[/]" if found.healthy else "[bold red]Repair what is broken first.[/]")
    raise typer.Exit(0 if found.healthy else 1)
