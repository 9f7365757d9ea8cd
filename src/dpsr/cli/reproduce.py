"""`dpsr reproduce`: the paper's experiment."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpsr.cli.studies import run_with_progress
from dpsr.cli.terminal import out

EXAMPLE = "Example: dpsr reproduce --out reproduction --seeds 5"


def reproduce(
    out_dir: Annotated[Path, typer.Option("--out", help="Folder for tables and figures; an old run is resumed.")],
    seeds: Annotated[int, typer.Option(min=2, help="How many seeds; the paper uses 5.")] = 5,
) -> None:
    """Run the paper's experiment: all methods, its tables and figures with ours beside them."""
    from dpsr.evaluate.studies.paper import paper_study

    result = run_with_progress(paper_study(seeds=seeds), out_dir)
    out.print(f"{len(result.files)} tables and figures in [bold]{out_dir}[/bold]; read {result.report.name} first.")
