"""`dpsr doctor`: is this machine fit for releasing ratings?"""

from __future__ import annotations

import json

import typer

from dpsr.cli.rows import Json
from dpsr.cli.terminal import out
from dpsr.quoting import for_terminal

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
        status = f"[{COLOURS[check.status]}]{check.status}[/]"
        shown.add_row(check.area, for_terminal(check.name), status, for_terminal(check.detail))
    out.print(shown)
    out.print("[green]Nothing is broken.[/]" if found.healthy else "[bold red]Repair what is broken first.[/]")
    raise typer.Exit(0 if found.healthy else 1)
