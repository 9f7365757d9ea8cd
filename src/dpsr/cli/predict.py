"""`dpsr predict`: predicted ratings for a file of pairs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpsr.cli.reading import Delimiter, Item, User
from dpsr.cli.release_folder import ReleaseFolder, open_release
from dpsr.cli.rows import Format, FormatOption, JsonRows, show
from dpsr.cli.terminal import out
from dpsr.quoting import for_terminal

EXAMPLE = "Example: dpsr predict release/ pairs.csv --out predictions.csv"


def predict(
    release: ReleaseFolder,
    pairs: Annotated[Path, typer.Argument(help="CSV, TSV or Parquet with a user and an item in each row.")],
    out_file: Annotated[
        Path | None, typer.Option("--out", help="Write a file, .parquet or .csv, instead of printing.")
    ] = None,
    user: User = None,
    item: Item = None,
    delimiter: Delimiter = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    how: FormatOption = Format.table,
    as_json: JsonRows = False,
) -> None:
    """Predict the rating of every (user, item) pair of a file; a column says what each prediction rests on."""
    from dpsr.data.files.pairs import read_pairs
    from dpsr.release.atomic import check_file
    from dpsr.release.lists.predictions import predict_all, write_predictions

    if out_file is not None:
        check_file(out_file, overwrite=force)
    loaded = open_release(release)
    batches = read_pairs(pairs, user=user, item=item, delimiter=delimiter)
    if out_file is None:
        rows, more = predict_all(loaded, batches), "--format csv prints them all, --out writes them to a file"
        show(rows, Format.json if as_json else how, title=f"Predictions for {pairs.name}", more=more)
        return
    total = write_predictions(loaded, batches, out_file, overwrite=force)
    out.print(f"{total:,} predictions written to [bold]{for_terminal(out_file, 400)}[/bold].")
