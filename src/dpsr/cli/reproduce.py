"""`dpsr reproduce`: the paper's experiment."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from dpsr.cli.terminal import err, out

EXAMPLE = "Example: dpsr reproduce --out reproduction --seeds 5"


def reproduce(
    out_dir: Annotated[Path, typer.Option("--out", help="Folder for tables and figures.")],
    seeds: Annotated[int, typer.Option(min=2, help="How many seeds; the paper uses 5.")] = 5,
) -> None:
    """Run the paper's experiment: all methods, its tables and figures with ours beside them."""
    from dpsr.evaluate.reproduction import reproduce as run

    columns = (TextColumn("{task.description:40}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=err) as bar:
        task = bar.add_task("starting", total=None)

        def report(done: int, total: int, what: str) -> None:
            bar.update(task, completed=done, total=total, description=what)

        result = run(out_dir, seeds=seeds, progress=report)
    out.print(f"{len(result.files)} tables and figures in [bold]{out_dir}[/bold]; read {result.report.name} first.")
