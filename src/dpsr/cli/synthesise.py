"""`dpsr synthesise`: people who do not exist, from a release that protects real ones."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpsr.cli.release_folder import ReleaseFolder, open_any_release
from dpsr.cli.terminal import out
from dpsr.quoting import for_terminal

EXAMPLE = "Example: dpsr synthesise release/ --people 100000 --out people.parquet"


def synthesise(
    release: ReleaseFolder,
    out_file: Annotated[
        Path, typer.Option("--out", help="File to write, .parquet or .csv: user, item, rating (of likes: user, item).")
    ],
    people: Annotated[
        int | None, typer.Option("--people", min=1, help="How many; about as many as there are unless told.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Public: the same number and seed give the same people.")] = 0,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
) -> None:
    """Write rows of made-up people, drawn from a release alone: free, and any recommender can learn from them."""
    from dpsr.pipeline.made_up import more_made_up
    from dpsr.release import Release
    from dpsr.release.atomic import check_file

    check_file(out_file, overwrite=force)
    loaded = open_any_release(release)
    table = more_made_up(loaded, people, out_file, seed=seed, overwrite=force)
    rows = "ratings" if "rating" in table.column_names else "interactions"
    out.print(f"{table.num_rows:,} made-up {rows} written to [bold]{for_terminal(out_file, 400)}[/bold].")
    out.print("Nobody in it exists. Nothing but the release was read, so nothing was spent.")
    if not isinstance(loaded, Release) and loaded.index.declared is None:
        out.print("Items that may not be named are called by their cell, such as cell:7; a declared list has none.")
